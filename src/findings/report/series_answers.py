"""What got better and worse in a series: the last point of each segment against its first, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ...errors import HarnessError
from ...records.series import Point, RunReference
from ...scoring.definitions import CODE_HEADINGS
from ...text.count import counted
from ..analysis.drift import BETTER, ChangedAnswer, Drifts, TargetDrift, measure_drift
from ..analysis.read_run import gather
from ..analysis.rule_judge import run_notices
from ..analysis.series import SegmentFindings, SeriesFindings
from .document import (
    Block,
    Cell,
    Column,
    Count,
    Entry,
    Linked,
    Paragraph,
    Passage,
    Piece,
    Section,
    SideBySide,
    Table,
    Text,
    Words,
    say,
    words,
)
from .drift_page import SHOWN_REPLY, changed_questions

RunAddress = Callable[[RunReference], str | None]
"""Where the pages of a run are in the workbench; None if it has none."""
SHOWN_ANSWERS = 10
"""Pairs of answers of a target in a segment on the page, the largest changes first."""
NAMES: dict[str, str] = {str(code): name for code, name in CODE_HEADINGS.items()}


@dataclass(frozen=True)
class SegmentAnswers:
    """The last point of a segment compared with its first."""

    number: int
    first: Point
    last: Point
    drifts: Drifts | None
    problem: str
    """Why they could not be compared; empty if they were."""
    notices: tuple[str, ...]


def nowhere(run: RunReference) -> str | None:
    """On a static page, runs have no address."""
    return None


def compare_answers(found: SeriesFindings) -> tuple[SegmentAnswers, ...]:
    """Read the two runs of every segment. What cannot be read is said, not raised."""
    return tuple(_compared(found, one) for one in found.segments)


def _compared(found: SeriesFindings, one: SegmentFindings) -> SegmentAnswers:
    first, last = one.points[0], one.points[-1]
    number, drifts = one.segment.number, None
    notices: tuple[str, ...] = ()
    problem = ""
    folders = [found.folder / point.run.folder for point in (first, last)]
    try:
        if first is last:
            notices = run_notices([gather(folders[0])])
        else:
            drifts = measure_drift(*folders, floor=found.series.floor)
            notices = drifts.notices
    except (HarnessError, OSError) as error:
        missing = [point.run.folder for point, place in zip((first, last), folders, strict=True) if not place.is_dir()]
        problem = f"The run folder {missing[0]} is missing." if missing else str(error)
    return SegmentAnswers(number, first, last, drifts, problem, notices)


def answer_section(
    compared: Sequence[SegmentAnswers], targets: Sequence[str], address: RunAddress = nowhere
) -> Section:
    """A part per target, the newest segment first."""
    return Section(
        words("What got better and worse"),
        tuple(_problems(compared)),
        tuple(
            Section(
                say(Text(target), ": answers"),
                tuple(_of_target(compared, target, place, address)),
                anchor=f"changed-{place}",
            )
            for place, target in enumerate(targets, 1)
        ),
        anchor="changed",
    )


def _problems(compared: Sequence[SegmentAnswers]) -> Iterator[Block]:
    yield Paragraph(
        words(
            "For each segment, the answers of its last point are compared with those of its first. Single answers "
            "differ by chance too: whether a target changed is decided by its line, not by these examples."
        )
    )
    for one in compared:
        if one.problem:
            told = " The answers of this segment cannot be shown side by side; its values above do not depend on them."
            yield Paragraph(say(f"Segment {one.number}: ", Text(one.problem), told))


def _of_target(compared: Sequence[SegmentAnswers], target: str, chart: int, address: RunAddress) -> Iterator[Block]:
    told = False
    for one in reversed(compared):
        if one.problem or target not in one.first.targets:
            continue
        told = True
        if one.drifts is None:
            yield Paragraph(words(f"Segment {one.number} has only one point ({one.first.period}): nothing to compare."))
            continue
        found = next((drift for drift in one.drifts.targets if drift.target == target), None)
        if found is None:
            yield Paragraph(words(f"Segment {one.number}: no answers in {one.last.period}."))
            continue
        yield from _changed(one, found, chart, address)
    if not told:
        yield Paragraph(words("There is nothing to compare."))


def _changed(one: SegmentAnswers, found: TargetDrift, chart: int, address: RunAddress) -> Iterator[Block]:
    better, worse = (sum(getattr(q, way) for q in found.questions) for way in ("better", "worse"))
    start = f"Segment {one.number}, {one.last.period} against {one.first.period}: "
    if not found.answers_changed:
        yield Paragraph(words(f"{start}no answer got another code."))
        return
    yield Paragraph((Words(start), Words(f"{better:,} better, {worse:,} worse", strong=True), Words(_how_many(found))))
    yield _questions(found, f"segment {one.number} of chart {chart}")
    links = [address(point.run) for point in (one.first, one.last)]
    yield from (_pair(one, answer, links) for answer in found.answers[:SHOWN_ANSWERS])


def _how_many(found: TargetDrift) -> str:
    shown = min(SHOWN_ANSWERS, len(found.answers))
    told = f" ({counted(found.answers_changed, 'answer')} with another code)."
    return told if shown == found.answers_changed else f"{told} {shown} of {found.answers_changed:,} are shown."


def _questions(found: TargetDrift, where: str) -> Table:
    moved = changed_questions(found.questions)
    columns = (Column("question", "text"), Column("better"), Column("worse"), Column("same"))
    rows = tuple((Text(one.question), Count(one.better), Count(one.worse), Count(one.same)) for one in moved)
    caption = f"Questions whose code changed in {where}: {len(moved)} of {len(found.questions)}"
    return Table(caption, columns, rows)


def _pair(one: SegmentAnswers, answer: ChangedAnswer, links: Sequence[str | None]) -> SideBySide:
    way = "Better" if BETTER.get(answer.after, 0) > BETTER.get(answer.before, 0) else "Worse"
    sides = []
    for point, said, code, link in zip(
        (one.first, one.last),
        (answer.old_reply, answer.new_reply),
        (answer.before, answer.after),
        links,
        strict=True,
    ):
        cells: tuple[Cell, ...] = (_reply(said),)
        if link:
            to = f"{link}/trials/{quote(answer.trial_id, safe='')}"
            cells = (*cells, Words(" "), Linked(Words(f"Trial in {point.period}"), to))
        sides.append(Entry(f"{point.period}: {NAMES.get(code, code)}", cells))
    return SideBySide(
        say(f"{way}: ", Text(answer.trial_id, code=True), " ", Text(answer.group)),
        say(Words("Asked: ", strong=True), Text(answer.question)),
        tuple(sides),
    )


def _reply(text: str) -> Cell:
    cut = f"{text[:SHOWN_REPLY]} […]" if len(text) > SHOWN_REPLY else text
    return Passage((Piece(cut, False),)) if cut else Words("no reply")
