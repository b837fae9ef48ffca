"""Series with real SDKs on loopback: a played year, batches, budgets, outages, and no key in any file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import src as me
from src.errors import IncompleteRun
from src.records.series import Point
from src.series.carry_out import spent_in
from src.series.findings import SeriesFindings
from src.series.folder import FOLDER, read_lines
from tests.batch_server import BatchServer
from tests.batch_server import redirect as redirect_batches
from tests.loopback import Loopback
from tests.played_series import JUDGES, STUDY, TARGET, on, played
from tests.runs import ONE, call, replays
from tests.test_wire_runs import SENTINEL, redirect, sensible

MONTHS = (
    "2026-06", "2026-07", "2026-08", "2026-09", "2026-10", "2026-11", "2026-12", "2027-01", "2027-02", "2027-03",
    "2027-04", "2027-05",
)  # fmt: skip
ANCHORS = 12


def verdicts(found: SeriesFindings) -> list[str]:
    return [target.verdict for target in found.segments[-1].targets]


@pytest.mark.slow
def test_in_a_played_year_every_change_is_named_for_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point 7: another model behind the same name. Point 8: January. Point 9: a judge that changed."""
    folder = tmp_path / "monthly"
    said: dict[int, tuple[str, str]] = {}
    with played(monkeypatch, ANCHORS) as (world, _):
        on(monkeypatch, world, "2026-06-05")
        me.init_series(folder, STUDY, anchors=ANCHORS)
        for number, month in enumerate(MONTHS, 1):
            world.unsure = 0.9 if number >= 7 else 0.1
            world.strict = JUDGES[1] if number >= 9 else ""
            on(monkeypatch, world, f"{month}-05")
            found = me.run_series(folder, max_cost=50.0)
            (target,) = found.segments[-1].targets
            said[number] = (target.verdict, target.why)
    assert [said[number][0] for number in range(1, 7)] == ["no alarm"] * 6
    verdict, why = said[7]
    assert verdict == "drifted"
    assert why.startswith("accurate and complete answers fell from 2026-12 on: the alarm was raised in 2026-12")
    assert said[8] == (
        "no alarm", "2027-01 is the first point of its segment, so there is nothing to compare yet",
    )  # fmt: skip
    for number in range(9, 13):
        assert said[number] == ("cannot tell", f"the judge {JUDGES[1]} drifted from 2027-02 on")
    assert [one.segment.reasons for one in found.segments] == [("the series begins",), ("plan year 2027",)]
    assert [target.verdict for target in found.segments[0].targets] == ["drifted"]
    named = [(event.period, event.kind, event.subject) for event in found.events]
    assert ("2026-12", "alarm", TARGET) in named
    assert ("2027-01", "segment", "") in named
    assert ("2027-02", "judge drifted", JUDGES[1]) in named
    assert JUDGES[0] not in [event.subject for event in found.events]
    assert not [event for event in found.events if event.kind == "served"]  # it was silent
    assert me.verify_series(folder).points == 12
    first = read_lines(folder).points[0]
    replays(folder / first.run.folder)
    code, out, _ = call("series", "status", folder, "--html", tmp_path / "page.html", "--junit", tmp_path / "j.xml")
    assert (code, "cannot tell" in out) == (8, True)
    assert "Earlier segment, 2026-06 to 2026-12 (the series begins): openai:gpt-5.5 drifted" in " ".join(out.split())
    no_key_in(tmp_path)


def no_key_in(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            assert SENTINEL.encode() not in path.read_bytes(), path


@pytest.mark.slow
def test_another_served_id_is_an_event_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "monthly"
    with Loopback(lambda request: sensible(request, served="gpt-5.5-2026-04-23")) as server:
        redirect(monkeypatch, server)
        monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
        settings: dict[str, Any] = {"judges": ["offline:rules"], "anchors": 0, "points": 3}
        me.init_series(folder, scenarios=[ONE], targets=[TARGET], **settings)
        me.run_series(folder, max_cost=5.0)
    with Loopback(lambda request: sensible(request, served="gpt-5.5-2026-07-01")) as server:
        redirect(monkeypatch, server)
        monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-07-05")
        found = me.run_series(folder, max_cost=5.0)
    (event,) = (event for event in found.events if event.kind == "served")
    assert (event.period, event.subject) == ("2026-07", TARGET)
    assert event.text == "served by gpt-5.5-2026-07-01, before by gpt-5.5-2026-04-23"


def judged_series(folder: Path, **settings: Any) -> SeriesFindings:
    study = {
        "scenarios": [ONE],
        "targets": ["fake:partial", "fake:wrong"],
        "judges": ["openai:gpt-5.5-2026-04-23"],
        "adjudicator": "none",
        "no_probe": True,
    }
    return me.init_series(folder, study, anchors=2, points=3, **settings)


def numbers(point: Point) -> dict[str, Any]:
    return point.model_dump(mode="json", exclude={"run", "frozen", "check", "cost"})


@pytest.mark.slow
def test_judges_in_batches_give_the_same_points_for_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, tuple[Point, ...]] = {}
    for how in ("live", "batch"):
        folder = tmp_path / how
        with BatchServer(sensible) as server:
            redirect_batches(monkeypatch, server)
            monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
            judged_series(folder)
            for day in ("2026-06-05", "2026-07-05"):
                monkeypatch.setenv("MEDICARE_EVAL_TODAY", day)
                code, _, err = call(
                    "series",
                    "run",
                    folder,
                    "--max-cost",
                    9,
                    "--quiet",
                    "--batch",
                    "judges" if how == "batch" else "none",
                )
                assert code == 0, err
            assert bool(server.batches) == (how == "batch")
            assert max(server.billed.values()) <= 6  # three steps ask the same of two points; no call is paid twice
        made[how] = read_lines(folder).points
        me.verify_series(folder)
    assert [numbers(one) for one in made["live"]] == [numbers(one) for one in made["batch"]]
    for live, batch in zip(made["live"], made["batch"], strict=True):
        assert live.cost.total and batch.cost.total
        assert batch.cost.total < 0.6 * live.cost.total


@pytest.mark.slow
def test_a_point_waits_for_its_batches_and_the_same_command_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "monthly"
    with BatchServer(sensible, polls=1_000_000) as server:
        redirect_batches(monkeypatch, server)
        monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
        judged_series(folder)
        command = ["series", "run", folder, "--max-cost", 9, "--quiet", "--batch", "judges", "--batch-wait", 0]
        stops = 0
        while True:
            code, _, err = call(*command)
            if code == 0:
                break
            assert code == 4, err
            assert f"To continue: medicare-eval series run {folder} --max-cost 9" in err
            stops += 1
            assert stops < 50
            server.polls = 0
            for batch in server.batches:
                batch.polls = 0
        assert stops
        assert max(server.billed.values()) <= 3
    assert [point.period for point in read_lines(folder).points] == ["2026-06"]


@pytest.mark.slow
def test_a_point_stops_at_its_budget_and_goes_on_with_a_higher_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try may pay for a part of what is left, so the point needs several, and each stays within its budget."""
    folder = tmp_path / "monthly"

    def spent() -> float:
        return sum(cost for _, cost in spent_in(folder / FOLDER / "2026-06"))

    with Loopback(sensible) as server:
        redirect(monkeypatch, server)
        monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
        judged_series(folder)
        stops, budget = 0, 0.02
        while True:
            code, _, err = call("series", "run", folder, "--max-cost", budget, "--quiet")
            if code == 0:
                break
            assert (code, "--max-cost" in err) == (4, True), err
            assert f"To continue: medicare-eval series run {folder}" in err
            assert spent() <= budget
            stops += 1
            budget *= 2
            assert stops < 20
        assert stops
        (point,) = read_lines(folder).points
        assert point.cost.total == pytest.approx(spent())
    no_key_in(folder)


@pytest.mark.slow
def test_an_outage_stops_a_point_and_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "monthly"
    with played(monkeypatch, 2) as (world, _):
        on(monkeypatch, world, "2026-06-05")
        settings: dict[str, Any] = {"judges": ["offline:rules"], "adjudicator": "none"}
        study = {**STUDY, "scenarios": STUDY["scenarios"][:2], **settings}
        me.init_series(folder, study, anchors=0, points=3)
        world.down = True
        with pytest.raises(IncompleteRun, match="To continue: medicare-eval series run"):
            me.run_series(folder, max_cost=5.0, max_outage=0.5)
        assert not read_lines(folder).points
        world.down = False
        found = me.run_series(folder, max_cost=5.0)
    (point,) = found.segments[0].points
    assert point.targets[TARGET].missing["incorrect"].missing == 0


def test_missing_answers_are_not_taken_for_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that fails on a tenth of the answers leaves them missing, and the verdict says so."""
    folder = tmp_path / "monthly"
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
    me.init_series(folder, scenarios=[ONE], targets=["fake:careful"], anchors=0, points=3)
    me.run_series(folder, max_cost=1.0)
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-07-05")
    me.run_series(folder, max_cost=1.0)
    lines = read_lines(folder)
    from src.records.series import MissingAnswers
    from src.series.findings import series_findings
    from src.series.folder import SeriesLines, read_series

    last = lines.points[-1]
    target = last.targets["fake:careful"]
    lost = target.model_copy(update={"missing": {name: MissingAnswers(missing=1, of=4) for name in target.missing}})
    changed = last.model_copy(update={"targets": {"fake:careful": lost}})
    found = series_findings(folder, read_series(folder), SeriesLines((*lines.lines[:-1], changed), lines.head))
    assert verdicts(found) == ["cannot tell"]
    assert found.segments[-1].targets[0].why == "1 of 4 answers are missing in 2026-07"
    assert json.loads(call("series", "status", folder, "--json").out)["verdict"] == "no alarm"
