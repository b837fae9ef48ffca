"""Rubric files: found by the version a scenario names, read strictly, fingerprinted."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import InputError
from ..schemas import PlannedRubric, PlannedScenario, Rubric
from ..store.input_files import read_user_file
from ..store.package_data import data_folder
from ..store.strict_json import sha256


def known_rubrics() -> list[str]:
    return sorted(path.stem for path in data_folder("rubrics").glob("*.json"))


def load_rubric(version: str) -> PlannedRubric:
    path = data_folder("rubrics") / f"{version}.json"
    data, rubric = read_user_file(path, Rubric)
    if rubric.rubric_version != version:
        raise InputError(f"{path}: field rubric_version: {rubric.rubric_version!r} does not match the file name.")
    return PlannedRubric(sha256=sha256(data), rubric=rubric)


def load_rubrics(scenarios: Iterable[PlannedScenario]) -> dict[str, PlannedRubric]:
    """The rubric of every scenario, by version."""
    found: dict[str, PlannedRubric] = {}
    for planned in scenarios:
        version = planned.scenario.rubric_version
        if version not in known_rubrics():
            known = ", ".join(known_rubrics())
            raise InputError(f"{planned.path}: field rubric_version: {version!r} is not known. Use {known}.")
        if version not in found:
            found[version] = load_rubric(version)
    return found
