"""The tables of docs/findings.md are lines of a real report, and its counts those of a real export."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from src.exports.export import TABLES_BY_NAME
from src.exports.tables import TABLES
from src.findings.drift import FLOOR
from src.findings.read_run import REVIEWS_SHOWN
from src.reports.write import write_report

from ..docs import blocks
from ..helpers import ROOT
from ..runs import make_run

GUIDE = ROOT / "docs" / "findings.md"
TEXT = GUIDE.read_text(encoding="utf-8")
MARK = "<!-- from report.md -->"


def tables_of(text: str) -> list[list[str]]:
    """The tables behind a mark, line by line."""
    found = []
    for part in text.split(f"{MARK}\n")[1:]:
        found.append(part.split("\n\n")[0].splitlines())
    return found


@pytest.mark.slow
def test_every_table_of_the_guide_is_in_the_report_of_its_run(tmp_path: Path) -> None:
    command = next(iter(blocks(GUIDE))).command.split()
    assert command[:2] == ["medicare-eval", "run"]
    run = make_run(tmp_path / "runs", *(word for word in command[2:] if word != "--quiet"))
    write_report([run], tmp_path / "report")
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    lines = re.sub(r"\[([^]]*)\]\(evidence/[^)]*\)", r"\1", text).splitlines()
    listed = tables_of(TEXT)
    assert len(listed) == 5
    for table in listed:
        assert len(table) > 2
        assert [line for line in table if line not in lines] == []
    pytest.importorskip("pandas")
    from src.exports.export import to_frame

    counts = dict(re.findall(r"^\| (\w+) \| ([\d,]+) \| ", TEXT[TEXT.index("## export") :], re.MULTILINE))
    assert {name: int(count.replace(",", "")) for name, count in counts.items()} == {
        table.name: len(to_frame(run, table.name)) for table in TABLES
    }


def test_numbers_of_the_guide_are_those_of_the_code() -> None:
    text = " ".join(TEXT.split())
    assert f"up to {REVIEWS_SHOWN} trials of each run in full" in text
    assert f"at least as large as the floor ({FLOOR})" in text
    assert "trials" in TABLES_BY_NAME
    enough = next(n for n in range(1, 100) if 1 - 0.05 ** (1 / n) < FLOOR)
    assert f"with the default floor, {enough} scenarios are needed" in text
    topics = len(list((ROOT / "scenarios" / "v1" / "topics").glob("*.json")))
    assert f"For {topics} scenarios that is {1 - 0.05 ** (1 / topics):.3f}" in text
