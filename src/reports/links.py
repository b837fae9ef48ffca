"""Where the evidence behind a number is: the addresses of evidence pages, relative to the report's folder.

    evidence/1-fake-careful/index.html                 one target: its scenarios
    evidence/1-fake-careful/study.html#g-3             one question group of the published study, over its scenarios
    evidence/1-fake-careful/scenario_001.html#q-Q2     one scenario: its trials and questions
    evidence/1-fake-careful/scenario_001.p2.html       the same, from the 201st trial on
    evidence/1-fake-careful/scenario_001.v-hmo.t1.html#r3-Q2    repetition 3 of one variant, at turn Q2

An address is made of ids and numbers alone, so it can be written before the page is. A name that other characters than
small letters, digits, - and _ are in gets part of its hash: no two names share a file, on any file system, and none
leaves the folder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from ..store.strict_json import sha256
from ..trials.row import Row

SAFE_ADDRESS = re.compile(r"https?://[^\s\"'<>\\^`{|}]+")
"""Of the web, and with nothing in it that could end an attribute."""
FOLDER = "evidence"
INDEX = "index.html"
STUDY = "study.html"
TRIALS_ON_A_PAGE = 10
"""Repetitions 1 to 10 of a script are on its first page, 11 to 20 on its second."""
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ANCHOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,130}")
_TAKEN = re.compile(r"index|study|con|prn|aux|nul|com\d|lpt\d")
"""Pages of our own, and names that Windows keeps for devices."""


class Trials(Protocol):
    """What an address needs to know of the trials of a target."""

    @property
    def place(self) -> int: ...
    @property
    def target(self) -> str: ...
    @property
    def rows(self) -> Sequence[Row]: ...


def folder_of(series: Trials) -> str:
    """The folder of a target's pages, inside the evidence folder."""
    return f"{series.place}-{slug(series.target)}"


def scenario_file(scenario_id: str, page: int = 1) -> str:
    return f"{_file_name(scenario_id)}.html" if page == 1 else f"{_file_name(scenario_id)}.p{page}.html"


def trial_file(scenario_id: str, variant: str | None, page: int) -> str:
    """The page of some repetitions of one script: a scenario, or one variant of it."""
    part = f".v-{_file_name(variant)}" if variant is not None else ""
    return f"{_file_name(scenario_id)}{part}.t{page}.html"


def trial_page(repetition: int) -> int:
    return max(0, repetition - 1) // TRIALS_ON_A_PAGE + 1


def file_of_row(row: Row) -> str:
    """The page of a trial, inside the target's folder."""
    return trial_file(row.scenario_id, row.variant, trial_page(row.repetition))


def question_anchor(group: str) -> str:
    return f"q-{anchor(group)}"


def group_anchor(number: int) -> str:
    return f"g-{number}"


def trial_anchor(repetition: int) -> str:
    return f"r{repetition}"


def turn_anchor(repetition: int, turn_id: str) -> str:
    return f"r{repetition}-{anchor(turn_id)}"


def code_anchor(repetition: int, group: str) -> str:
    """The code of a question in one trial."""
    return f"r{repetition}-q-{anchor(group)}"


def claim_anchor(repetition: int, claim_id: str) -> str:
    return f"r{repetition}-c-{anchor(claim_id)}"


def of_everything() -> str:
    """All targets of the report."""
    return f"{FOLDER}/{INDEX}"


def of_target(series: Trials) -> str:
    return _inside(series, INDEX)


def of_scenario(series: Trials, scenario_id: str) -> str:
    return _inside(series, scenario_file(scenario_id))


def of_question(series: Trials, scenario_id: str, group: str) -> str:
    """A question group of a scenario: its codes, its points and its answers."""
    return f"{of_scenario(series, scenario_id)}#{question_anchor(group)}"


def of_study(series: Trials) -> str:
    """All question groups of the published study."""
    return _inside(series, STUDY)


def of_study_group(series: Trials, number: int) -> str:
    """A question group of the published study: its codes in each script, with links to the questions."""
    return f"{_inside(series, STUDY)}#{group_anchor(number)}"


def of_trial(series: Trials, trial_id: str) -> str:
    """A trial of the series; the target's page if the series has no such trial."""
    row = _row(series, trial_id)
    return f"{_inside(series, file_of_row(row))}#{trial_anchor(row.repetition)}" if row else of_target(series)


def of_claim(series: Trials, trial_id: str, claim_id: str) -> str:
    """A claim with its verdicts and facts."""
    row = _row(series, trial_id)
    if row is None:
        return of_target(series)
    return f"{_inside(series, file_of_row(row))}#{claim_anchor(row.repetition, claim_id)}"


def _row(series: Trials, trial_id: str) -> Row | None:
    return next((row for row in series.rows if row.trial_id == trial_id), None)


def _inside(series: Trials, page: str) -> str:
    return f"{FOLDER}/{folder_of(series)}/{page}"


def _file_name(name: str) -> str:
    if _FILE_NAME.fullmatch(name) and not _TAKEN.fullmatch(name):
        return name
    return f"{slug(name)}.x{sha256(name)[:8]}"


def slug(text: str) -> str:
    """A name for a file or an id: letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "x"


def anchor(name: str) -> str:
    return name if _ANCHOR.fullmatch(name) else f"{slug(name)}.x{sha256(name)[:8]}"
