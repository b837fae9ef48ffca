"""What people read stays as it was, or somebody has read what changed (`tests/frozen.py`)."""

from __future__ import annotations

from pathlib import Path

from tests import frozen

AGAIN = "Read the difference (python -m tests.frozen --to DIR, before and after), then: python -m tests.frozen --write"


def test_reports_tables_exports_and_pages_are_as_they_were_frozen(tmp_path: Path) -> None:
    found = frozen.corpus(tmp_path / "frozen")
    for name, text in frozen.kept_texts(found).items():
        assert text.splitlines() == (frozen.KEPT / name).read_text(encoding="utf-8").splitlines(), f"{name}. {AGAIN}"
    now, before = frozen.index(found).splitlines(), (frozen.KEPT / frozen.INDEX).read_text().splitlines()
    assert sorted(set(now) ^ set(before), key=lambda line: line[18:]) == [], AGAIN
