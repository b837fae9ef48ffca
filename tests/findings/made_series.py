"""A series of monthly points made by hand from small runs: a silent change of one target, and a January."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from src import storage
from src.findings.read_run import Findings, gather
from src.records.series import (
    Anchors,
    ClusterDesign,
    EndedTarget,
    FoundShare,
    LineLimit,
    Outcome,
    PlanParts,
    Point,
    PointCost,
    RightLabels,
    RunReference,
    Segment,
    Series,
    SimulatedPower,
)
from src.schemas import StudyCode, TrialResult
from src.series.folder import append_lines
from src.series.points import target_points
from src.store.failpoints import Failpoints
from src.store.run_files import encode_record
from src.store.run_folder import SERIES
from src.store.strict_json import fingerprint, sha256
from tests.helpers import HASH, manifest, plan, result, scenario

from .report_run import code, coded, write_run

STEADY, CHANGED = "fake:steady", "fake:changed"
OUTCOMES: tuple[Outcome, ...] = ("accurate_complete", "incorrect")
SCENARIOS = tuple(f"s{number:02}" for number in range(1, 25))
JUDGE = "offline:rules"
QUESTION = "Does a Medicare Advantage plan have a network?"
RIGHT = (
    "Yes. Most plans have a network of doctors and hospitals, and care outside of it may cost more or not be covered."
)
WRONG = "No. With Medicare Advantage you can see any doctor in the country at the same price."


@dataclass(frozen=True)
class Made:
    """What differs between series of these tests."""

    months: int = 10
    january: int | None = 8
    """The place of the point that begins a new segment."""
    change: int | None = 4
    """The place of the point from which on one target is wrong more often."""
    judge: int | None = None
    """The place of the point from which on the judges' labels of the anchors are worse."""
    targets: tuple[str, str] = (STEADY, CHANGED)
    wrong: str = WRONG
    asked: str = QUESTION
    title: str = "Monthly check"
    ended: int | None = None
    """The place of the point from which on the first target is no longer asked."""
    no_price: bool = False
    skip: int | None = None
    """The place of the point from which on everything is a month late."""

    def period(self, place: int) -> str:
        return month(place + (self.skip is not None and place >= self.skip))


def month(place: int) -> str:
    """From May 2026 on."""
    years, months = divmod(place + 4, 12)
    return f"{2026 + years}-{months + 1:02}"


def make_series(folder: Path, made: Made | None = None) -> Path:
    """A folder with `series.json`, `points.jsonl` and the run of every point."""
    of = made or Made()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SERIES).write_bytes(encode_record(_series(of)) + b"\n")
    lines: list[Segment | Point] = [_segment(1, ("the series begins",), 2026)]
    segment, first = 1, 0
    for place in range(of.months):
        if place == of.january:
            segment, first = 2, place
            lines.append(_segment(2, ("plan year 2027",), 2027))
        lines.append(_point(folder, of, place, segment, first))
    append_lines(folder, lines, Failpoints(None))
    return folder


def _series(of: Made) -> Series:
    return Series(
        title=of.title,
        created="2026-05-01T00:00:00Z",
        versions={"medicare-eval": "0"},
        study={"targets": list(of.targets)},
        cadence="month",
        outcomes=OUTCOMES,
        floor=0.05,
        alpha=0.05,
        points=24,
        anchors=Anchors(split="held_out", limit=None),
        seed=7,
    )


def limit(names: Sequence[str], *, level: float = 0.0125, threshold: float = 4.1235, power: bool = True) -> LineLimit:
    found = SimulatedPower(
        drop=0.05, after=6, alarm=FoundShare(share=0.62, delay=7.0), claim=FoundShare(share=0.21, delay=None)
    )
    return LineLimit(
        clusters={name: ClusterDesign(weight=1, answers=1) for name in names},
        points=24,
        level=level,
        limit=threshold,
        series=2_000,
        seed=7,
        power=found if power else None,
    )


def _segment(number: int, reasons: tuple[str, ...], year: int) -> Segment:
    limits: dict[Outcome, LineLimit] = {name: limit(SCENARIOS) for name in OUTCOMES}
    return Segment(
        number=number,
        reasons=reasons,
        judging=1,
        parts=PlanParts(
            plan_year=year,
            key=sha256(str(year)),
            rubric=HASH,
            judging=HASH,
            asking=HASH,
            questions=HASH,
            files=HASH,
            targets={},
        ),
        study={},
        verifiers=(JUDGE, JUDGE),
        extractor=JUDGE,
        scorer=JUDGE,
        adjudicator=None,
        targets=limits,
        frozen={name: limit(SCENARIOS, power=False) for name in OUTCOMES},
        anchors=limit([f"reply {number}" for number in range(1, 21)], power=False),
    )


def _point(folder: Path, of: Made, place: int, segment: int, first: int) -> Point:
    found = gather(_run(folder, of, place))
    frozen = gather(_folder(folder, of.period(first)))
    served = target_points(found, OUTCOMES)
    changed = of.change is not None and place >= of.change
    late = of.judge is not None and place >= of.judge
    replies = {f"reply {number}": RightLabels(right=3 if late and number % 2 else 5, of=6) for number in range(1, 21)}
    ended = of.ended is not None and place == of.ended
    return Point(
        segment=segment,
        period=of.period(place),
        date=f"{of.period(place)}-03",
        run=_reference(folder, found),
        frozen=_reference(folder, frozen) if place > first else None,
        targets={
            name: one.model_copy(
                update={"served": (f"{name[5:]}-{'b' if changed and name == of.targets[1] else 'a'}",)}
            )
            for name, one in served.items()
        },
        rejudged={name: one.values for name, one in target_points(frozen, OUTCOMES).items()},
        anchors={"all judges, end to end": replies},
        judges={JUDGE: ("rules-1",)},
        facts=HASH,
        ended=(EndedTarget(target=of.targets[0], why="the provider retired it"),) if ended else (),
        cost=PointCost(run=None if of.no_price else 1.25, frozen=0.5 if place > first else 0.0, anchors=0.25),
    )


def _reference(folder: Path, found: Findings) -> RunReference:
    return RunReference(
        folder=found.folder.relative_to(folder).as_posix(),
        run_id=found.manifest.run_id,
        results_head=found.head,
        manifest_sha256=storage.manifest_sha256(found.folder),
    )


def _folder(folder: Path, period: str) -> Path:
    return folder / "points" / period / "run" / f"{period.replace('-', '')}03T060000Z"


def _run(folder: Path, of: Made, place: int) -> Path:
    targets = of.targets[1:] if of.ended is not None and place >= of.ended else of.targets
    year = 2027 if of.january is not None and place >= of.january else 2026
    made = plan(scenarios=[scenario(scenario_id=name) for name in SCENARIOS], targets=targets)
    made = made.model_copy(update={"plan_year": year})
    run = _folder(folder, of.period(place))
    head = manifest(made).model_copy(
        update={"run_id": run.name, "plan_sha256": fingerprint(made.model_dump(mode="json"))}
    )
    results = [_trial(of, place, at, target) for at in range(len(SCENARIOS)) for target in targets]
    write_run(run, results, head)
    return run


def _trial(of: Made, place: int, at: int, target: str) -> TrialResult:
    worse = of.change is not None and place >= of.change and target == of.targets[1]
    wrong = at % 10 == 0 or (at * 5 + place * 7) % 24 < 2 or (worse and at % 4 == 1)
    partly = at % 6 == 2
    given: StudyCode = "incorrect" if wrong else "accurate_incomplete" if partly else "accurate_complete"
    reply = of.wrong if wrong else RIGHT
    made = result(
        target=target, scenario_id=SCENARIOS[at], question=of.asked, reply=reply, accuracy=0.0 if wrong else 1.0
    )
    return coded(made, code("Q1", given, quote=reply[:20]))
