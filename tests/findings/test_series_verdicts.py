"""Verdicts of a series on points made by hand: a target that changed, judges that did, and what nobody can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from src.records.series import (
    ClusterDesign,
    LineLimit,
    MissingAnswers,
    Outcome,
    PlanParts,
    Point,
    PointCost,
    RightLabels,
    RunReference,
    ScenarioValue,
    Segment,
    Series,
    TargetPoint,
)
from src.series.findings import SeriesFindings, series_findings
from src.series.folder import SeriesLines

HASH, OTHER = "0" * 64, "1" * 64
GOOD: Outcome = "accurate_complete"
TARGET, SECOND = "openai:one", "openai:two"
JUDGE = "google:judge"
SCENARIOS = [f"s{n}" for n in range(12)]
REPLIES = [f"r{n}" for n in range(20)]
NOISE = (0.03, -0.02, 0.0, 0.02, -0.03, 0.01, -0.01, 0.0, 0.02, -0.02, 0.01, -0.01)
"""Added to the scenarios, in another order at every point."""


def limit(names: Sequence[str]) -> LineLimit:
    clusters = {name: ClusterDesign(weight=3, answers=6) for name in names}
    return LineLimit(clusters=clusters, points=24, level=0.05, limit=5.0, series=1, seed=1)


def segment(number: int = 1, judging: int = 1) -> Segment:
    parts = PlanParts(
        plan_year=2026, key=HASH, rubric=HASH, judging=HASH, asking=HASH, questions=HASH, files=HASH, targets={}
    )
    return Segment(
        number=number, reasons=("the series begins",), judging=judging, parts=parts, study={}, verifiers=(JUDGE, JUDGE),
        extractor=JUDGE, scorer=JUDGE, adjudicator=None, targets={GOOD: limit(SCENARIOS)},
        frozen={GOOD: limit(SCENARIOS)}, anchors=limit(REPLIES),
    )  # fmt: skip


def values(place: int, level: float) -> dict[str, ScenarioValue]:
    noise = NOISE[place % 12 :] + NOISE[: place % 12]
    return {
        name: ScenarioValue(value=min(1.0, max(0.0, level + one)), questions=3)
        for name, one in zip(SCENARIOS, noise, strict=True)
    }


def point(
    place: int,
    levels: Mapping[str, float],
    *,
    again: Mapping[str, float] | None = None,
    right: int | None = 9,
    missing: int = 0,
    gold: str = HASH,
    restated: bool = False,
) -> Point:
    """`again`: what the first transcripts are worth now. `right`: right labels of 10 in each labeled reply."""
    run = RunReference(folder=f"r{place}", run_id=f"r{place}", results_head=HASH, manifest_sha256=HASH)
    return Point(
        segment=1, period=f"2026-{place + 1:02}", date=f"2026-{place + 1:02}-05", restated=restated, run=run,
        targets={
            name: TargetPoint(
                values={GOOD: values(place, level)}, missing={GOOD: MissingAnswers(missing=missing, of=100)}, served=(),
            )
            for name, level in levels.items()
        },
        rejudged={name: {GOOD: values(0, level)} for name, level in (again or {}).items()},
        anchors={JUDGE: {name: RightLabels(right=right, of=10) for name in REPLIES}} if right is not None else {},
        gold=gold if right is not None else None, judges={}, facts=HASH, cost=PointCost(run=0.0),
    )  # fmt: skip


def found(points: Sequence[Point]) -> SeriesFindings:
    series = Series(
        title="t", created="", versions={}, study={}, cadence="month", outcomes=(GOOD,), floor=0.05, alpha=0.05,
        points=24, anchors=None, seed=1,
    )  # fmt: skip
    return series_findings(Path("x"), series, SeriesLines((segment(), *points), HASH))


def said(points: Sequence[Point], target: str = TARGET) -> tuple[str, str]:
    one = next(one for one in found(points).segments[-1].targets if one.target == target)
    return one.verdict, one.why


def level(place: int, drop: float = 0.3) -> float:
    """It drops at the fifth point."""
    return 0.7 if place < 4 else 0.7 - drop


def test_a_drop_with_steady_judges_is_the_targets() -> None:
    verdict, why = said([point(n, {TARGET: level(n)}, again={TARGET: 0.7}) for n in range(7)])
    assert verdict == "drifted"
    assert why.startswith("accurate and complete answers fell from 2026-05 on: the alarm was raised in 2026-05")


def test_a_judge_that_drifted_with_the_drop_is_named_and_nobody_can_tell() -> None:
    points = [point(n, {TARGET: level(n)}, again={TARGET: 0.7}, right=9 if n < 4 else 5) for n in range(7)]
    assert said(points)[0] == "cannot tell"
    assert f"the judge {JUDGE} drifted from 2026-05 on" in said(points)[1]


def test_what_a_judge_showed_stays_when_the_labels_change() -> None:
    """Otherwise other labels would turn what nobody could tell into a drift."""
    points = [
        point(n, {TARGET: level(n)}, again={TARGET: 0.7}, right=9 if n < 3 else 5, gold=HASH if n < 6 else OTHER)
        for n in range(8)
    ]
    assert said(points)[0] == "cannot tell"


def test_a_drift_that_came_before_that_of_the_judges_stays() -> None:
    points = [point(n, {TARGET: level(n)}, again={TARGET: 0.7}, right=9 if n < 6 else 4) for n in range(9)]
    assert said(points)[0] == "drifted"


def test_judges_that_turn_against_one_target_are_found_on_its_own_transcripts() -> None:
    """Not on the mean over all targets, where it would be a fifth as large."""
    others = {f"openai:other{n}": 0.6 for n in range(4)}
    points = [
        point(n, {TARGET: level(n), **others}, again={TARGET: level(n), **others}, right=None if n else 9)
        for n in range(7)
    ]
    verdict, why = said(points)
    assert verdict == "cannot tell"
    assert f"unchanged transcripts of {TARGET} drifted" in why or "the judges moved as well" in why


def test_judges_that_explain_half_of_a_drop_are_enough_to_doubt_it() -> None:
    """Also if they themselves have no alarm."""
    points = [
        point(n, {TARGET: level(n, 0.12)}, again={TARGET: 0.7 - (0.07 if n >= 4 else 0.0)}, right=None)
        for n in range(6)
    ]
    verdict, why = said(points)
    assert verdict == "cannot tell", why


def test_an_alarm_where_the_judges_were_not_checked_is_doubted() -> None:
    unchecked = [point(n, {TARGET: level(n)}, right=None, again={TARGET: 0.7} if not n else None) for n in range(6)]
    assert said(unchecked) == (
        "cannot tell",
        "accurate and complete answers fell from 2026-05 on, but the judges were not checked in 2026-05",
    )
    once = [*unchecked[:4], point(4, {TARGET: level(4)}, right=9)]
    assert said(once)[0] == "cannot tell", "one check has nothing to be compared with"


def test_points_that_one_panel_judged_again_need_no_check_of_it() -> None:
    points = [
        point(n, {TARGET: level(n)}, again={TARGET: 0.7} if not n else None, right=None, restated=True)
        for n in range(6)
    ]
    assert said([*points, point(6, {TARGET: level(6)}, again={TARGET: 0.7})])[0] == "drifted"


def test_missing_answers_are_neither_a_drift_nor_a_quiet_point() -> None:
    drop = [point(n, {TARGET: level(n)}, again={TARGET: 0.7}, missing=60 if n == 4 else 0) for n in range(6)]
    assert said(drop) == (
        "cannot tell", "accurate and complete answers fell from 2026-05 on, but 60 of 100 answers are missing in 2026-05",
    )  # fmt: skip
    quiet = [point(n, {TARGET: 0.7}, again={TARGET: 0.7}, missing=60 if n == 5 else 0) for n in range(6)]
    assert said(quiet) == ("cannot tell", "60 of 100 answers are missing in 2026-06")


def test_a_target_that_did_not_change_has_no_alarm_beside_one_that_did() -> None:
    points = [point(n, {TARGET: level(n), SECOND: 0.5}, again={TARGET: 0.7, SECOND: 0.5}) for n in range(7)]
    assert said(points)[0] == "drifted"
    assert said(points, SECOND) == ("no alarm", "no alarm in 7 points")
    assert found(points).verdict == "drifted"
