"""`kill -9` at every step of a series: nothing is lost, and nothing is counted twice."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import src as me
from src import storage
from src.records.series import Point
from src.series.folder import FOLDER, POINTS, read_lines
from src.store.failpoints import VARIABLE
from tests.failpoint_names import SERIES_NAMES
from tests.runs import ONE, call, process
from tests.suites import sample

JUNE, JULY = "2026-06-05", "2026-07-05"
KILLED = -9
INIT = ["series", "init"]
SETTINGS = ["--scenario", ONE, "--target", "fake:careful", "--target", "fake:wrong", "--anchors", 2, "--points", 3]


@pytest.fixture(scope="module")
def june(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series with its first point."""
    folder = tmp_path_factory.mktemp("series") / "monthly"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDICARE_EVAL_TODAY", JUNE)
        assert call(*INIT, folder, *SETTINGS).code == 0
        assert call("series", "run", folder, "--max-cost", 1, "--quiet").code == 0
    return folder


@pytest.fixture(scope="module")
def july(june: Path, tmp_path_factory: pytest.TempPathFactory) -> Point:
    """Its second point, made without a kill."""
    folder = tmp_path_factory.mktemp("whole") / "monthly"
    shutil.copytree(june, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDICARE_EVAL_TODAY", JULY)
        assert call("series", "run", folder, "--max-cost", 1, "--quiet").code == 0
    return read_lines(folder).points[-1]


def numbers(point: Point) -> dict[str, Any]:
    """A point without the names and hashes of its folders."""
    return point.model_dump(mode="json", exclude={"run", "frozen", "check", "transcripts"})


def calls_in(folder: Path) -> Counter[str]:
    """How often each call of a point is in a journal, by the folder of its step."""
    found: Counter[str] = Counter()
    for journal in folder.rglob(storage.JOURNAL):
        for line in journal.read_text(encoding="utf-8").splitlines():
            try:
                document = json.loads(line)
            except ValueError:
                continue  # a line that the kill left incomplete
            if "call" in document:
                found[f"{journal.parent.parent.name} {document['call']}"] += 1
    return found


PLACES = (
    "run.after_mkdir:1", "manifest.before_link:1", "manifest.after_link:1", "journal.torn_write:9",
    "journal.after_write:9", "results.torn_write:1", "seal.before_link:1", "seal.after_link:1", "check.before_link:1",
    *(f"{name}:1" for name in SERIES_NAMES if name not in ("series.before_link", "series.after_link")),
)  # fmt: skip
ENDS_OF_STEPS = ("seal.after_link:1", "check.after_link:1", "seal.after_link:1")
"""Of the run, the judge check and the re-judging: a kill at the end of one leads to the next."""


@pytest.mark.slow
@pytest.mark.parametrize("place", sample(PLACES, ["journal.torn_write:9", "series.before_line:1"]))
def test_a_point_that_was_killed_anywhere_ends_as_if_it_had_not_been(
    place: str, june: Path, july: Point, tmp_path: Path
) -> None:
    """Every step is killed at the place, and then at its end."""
    folder = tmp_path / "monthly"
    shutil.copytree(june, folder)

    def run(failpoint: str) -> int:
        env = {"MEDICARE_EVAL_TODAY": JULY, VARIABLE: failpoint}
        return process("series", "run", folder, "--max-cost", 1, "--quiet", env=env).returncode

    kills = 0
    for end in ENDS_OF_STEPS:
        kills += run(place) == KILLED
        if len(read_lines(folder).points) == 2:
            break
        assert run(end) in (KILLED, 0)
    done = process("series", "run", folder, "--max-cost", 1, "--quiet", env={"MEDICARE_EVAL_TODAY": JULY})
    assert done.returncode == 0 or "already has a point" in done.stderr
    assert kills
    points = read_lines(folder).points
    assert [point.period for point in points] == ["2026-06", "2026-07"]
    assert numbers(points[-1]) == numbers(july)
    assert set(calls_in(folder / FOLDER / "2026-07").values()) == {1}
    assert me.verify_series(folder).points == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    sample(["series.before_link", "series.after_link", "series.before_line", "series.torn_line"], ["series.torn_line"]),
)
def test_a_series_that_was_killed_while_it_was_made_can_be_used_or_made_again(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "monthly"
    env = {"MEDICARE_EVAL_TODAY": JUNE}
    assert process(*INIT, folder, *SETTINGS, env={**env, VARIABLE: place}).returncode == KILLED
    if place == "series.before_link":
        assert process(*INIT, folder, *SETTINGS, env=env).returncode == 0
    done = process("series", "run", folder, "--max-cost", 1, "--quiet", env=env)
    assert done.returncode == 0, done.stderr
    assert me.verify_series(folder).points == 1


@pytest.mark.slow
def test_a_full_disk_stops_a_point_and_leaves_it_to_be_finished(june: Path, july: Point, tmp_path: Path) -> None:
    folder = tmp_path / "monthly"
    shutil.copytree(june, folder)
    before = (folder / POINTS).read_bytes()
    env = {"MEDICARE_EVAL_TODAY": JULY, VARIABLE: "series.before_line:1:ENOSPC"}
    full = process("series", "run", folder, "--max-cost", 1, "--quiet", env=env)
    assert (full.returncode, "No space left on device" in full.stderr) == (6, True)
    assert (folder / POINTS).read_bytes() == before
    done = process("series", "run", folder, "--max-cost", 1, "--quiet", env={"MEDICARE_EVAL_TODAY": JULY})
    assert done.returncode == 0, done.stderr
    assert numbers(read_lines(folder).points[-1]) == numbers(july)


@pytest.mark.slow
def test_a_point_that_was_killed_last_month_is_finished_before_the_next(
    june: Path, july: Point, tmp_path: Path
) -> None:
    folder = tmp_path / "monthly"
    shutil.copytree(june, folder)
    env = {"MEDICARE_EVAL_TODAY": JULY, VARIABLE: "journal.after_write:9"}
    assert process("series", "run", folder, "--max-cost", 1, "--quiet", env=env).returncode == KILLED
    env = {"MEDICARE_EVAL_TODAY": "2026-08-05"}
    done = process("series", "run", folder, "--max-cost", 1, "--quiet", env=env)
    assert done.returncode == 0, done.stderr
    points = read_lines(folder).points
    assert [(point.period, point.date) for point in points[1:]] == [("2026-07", JULY), ("2026-08", "2026-08-05")]
    assert numbers(points[1]) == numbers(july)
    me.verify_series(folder)
