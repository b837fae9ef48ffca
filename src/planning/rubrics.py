"""Rubric files: found by the version a scenario names, read strictly, fingerprinted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..errors import InputError
from ..schemas import PlannedRubric, PlannedScenario, Rubric
from ..store.input_files import read_user_file
from ..store.package_data import data_folder
from ..store.strict_json import sha256
from .scenario_files import RUBRICS, ScenarioFile

SPECIFICATION = "v0.1"
"""The rubric of scenarios whose `rubric_version` names none: the specification's scores and nothing else."""


def rubric_files(scenario: Path | None = None) -> dict[str, Path]:
    """Every rubric by version: the bundled ones, and those in a `rubrics` folder beside the scenario, which win."""
    folders = [data_folder("rubrics"), *([scenario.parent / RUBRICS] if scenario else [])]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.json"))}


def load_rubric(version: str, scenario: Path | None = None) -> PlannedRubric:
    """The rubric of that version, or the specification's if there is none."""
    files = rubric_files(scenario)
    path = files.get(version, files[SPECIFICATION])
    data, rubric = read_user_file(path, Rubric)
    if rubric.rubric_version != path.stem:
        raise InputError(f"{path}: field rubric_version: {rubric.rubric_version!r} does not match the file name.")
    return PlannedRubric(sha256=sha256(data), rubric=rubric)


def load_rubrics(files: Iterable[ScenarioFile]) -> dict[str, PlannedRubric]:
    """The rubric of every scenario, by the version that the scenario names."""
    found: dict[str, PlannedRubric] = {}
    for file in files:
        version = file.scenario.rubric_version
        rubric = load_rubric(version, file.path)
        if found.setdefault(version, rubric) != rubric:
            raise InputError(
                f"{file.path}: field rubric_version: {version!r} is another rubric here than for the scenarios before "
                "it. Give the rubric beside this scenario a name of its own."
            )
    return found


def check_study_points(planned: PlannedScenario, rubric: Rubric) -> None:
    """Every point of the study must be one that an answer to this scenario could make, but for lack of a figure."""
    scenario = planned.scenario
    listed = [fact for fact in scenario.answer_key.canonical_facts if fact.library]
    held = {fact.library: fact.fact_id for fact in listed if not fact.not_published}
    for group in dict.fromkeys(turn.group for turn in scenario.scripted_turns):
        named: dict[frozenset[str], str] = {}
        for point in rubric.rule(group).study_points:
            facts = frozenset(held[library] for library in point.any_of if library in held)
            where = f"scenario {scenario.scenario_id}: question group {group}: the study's point {point.name!r}"
            if not facts and set(planned.left_out).intersection(point.any_of):
                continue
            if not facts:
                raise InputError(
                    f"{where} cannot be made, because the key has none of its facts. "
                    f"Refer to one of them in answer_key.library_facts: {', '.join(point.any_of)}."
                )
            if facts in named:
                raise InputError(
                    f"{where} cannot be told from {named[facts]!r}, because the key has the same facts for both. "
                    f"Refer in answer_key.library_facts to more of: {', '.join(point.any_of)}."
                )
            named[facts] = point.name
