"""The figures of a language model as judge on the judging page come from kept records of judge checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from src.cli.judge_check import confusion_table, measure_table
from src.findings.analysis.judge_agreement import read_check
from tests.helpers import ROOT

RECORDS = sorted((ROOT / "docs" / "measured").glob("language_model_*.json"))


def shown(path: Path) -> str:
    """What the page shows of a record."""
    measured = read_check(path).end_to_end
    assert measured is not None
    return f"{measure_table([measured])}\n\n{confusion_table(measured)}"


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_judging_page_shows_what_the_record_says(path: Path) -> None:
    page = (ROOT / "docs" / "judging.md").read_text(encoding="utf-8")
    assert f"measured/{path.name}" in page
    for line in filter(str.strip, shown(path).splitlines()):
        assert line.rstrip() in page, line


def test_at_least_100_claims_were_judged_on_each_part() -> None:
    assert len(RECORDS) == 3
    claims = {path.stem: read_check(path).claims for path in RECORDS}
    assert all(count >= 100 for count in claims.values()), claims
