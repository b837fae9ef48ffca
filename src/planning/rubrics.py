"""Rubric files: found by the version a scenario names, read strictly, fingerprinted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..errors import InputError
from ..schemas import PlannedRubric, Rubric
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
