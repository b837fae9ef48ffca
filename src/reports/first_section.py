"""The first screen: the answer in one sentence per target, one chart, and one line on what the numbers are worth.

Its forest plots show targets and counselors, over all questions and by question group of the study.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from ..findings.estimates import Estimated, estimate, key_coverage
from ..findings.human_comparison import ComparedGroups, CounselorShare, Headline, headline
from ..findings.read_run import judged_offline
from ..findings.review import is_review
from ..scoring.definitions import MEASURES, SHARES
from ..text.count import counted
from ..text.rounded import percent
from .document import Block, Cell, Figure, Paragraph, gap_cell, linked, say, text_cell
from .forest import ForestChart, ForestGroup, ForestPanel, ForestRow, Mark, Tick
from .judge_error import judge_error_sentence
from .links import of_study, of_target
from .series import Run, Runs, Series

COUNSELORS = {"phone": "Counselors by phone", "face_to_face": "Counselors face to face"}
OF_HUNDRED = tuple(Tick(share / 100, str(share)) for share in (0, 25, 50, 75, 100))
PANELS = (ForestPanel("Accurate and complete, of 100", OF_HUNDRED), ForestPanel("Wrong, of 100", OF_HUNDRED))


ROWS = 32
"""Rows of one chart by question group, so that it fits on a printed page."""


@dataclass(frozen=True)
class Answered:
    series: Series
    found: Headline


def of_hundred(share: float) -> str:
    """A share as a number of 100; what is not 0 is not shown as 0."""
    return "fewer than 1" if 0 < share < 0.005 else percent(share)


def range_text(found: Estimated | CounselorShare) -> str:
    """`54–70`, or why there is no interval."""
    if found.low is not None and found.high is not None:
        return f"{percent(found.low)}–{percent(found.high)}"
    return f"no interval from {counted(found.units, found.unit)}" if isinstance(found, Estimated) else "no interval"


def _mark(found: Estimated | CounselorShare) -> Mark:
    if found.value is None:
        return Mark(None, None, None, "no answer")
    value = of_hundred(found.value)
    if found.low is not None and found.high is not None:
        return Mark(found.value, found.low, found.high, f"{value} ({range_text(found)})")
    note = f"only {counted(found.units, found.unit)}" if isinstance(found, Estimated) else ""
    return Mark(found.value, None, None, value, note)


def answer_figure(answered: Sequence[Answered]) -> Figure:
    """Every target over all questions; where the study's were asked, these beside counselors."""
    rows = tuple(_row(one.series, one.found.complete, one.found.incorrect) for one in answered)
    compared = [(one.series, one.found.study) for one in answered if one.found.study]
    groups: tuple[ForestGroup, ...] = (ForestGroup("", rows),)
    if compared:
        title = "Questions of the published study, like for like"
        groups = (ForestGroup("All questions", rows), ForestGroup(title, _beside(compared)))
    asked = max((one.found.complete for one in answered), key=lambda found: found.questions)
    size = f"{counted(asked.questions, 'different question')} in {counted(asked.units, asked.unit)}"
    return Figure(
        ForestChart("answer", "Complete answers and wrong answers", PANELS, groups),
        f"Dots are estimates from {size}; lines are 95% intervals, the range that fits the data. Other answers were "
        "incomplete or said nothing that helps.",
    )


def group_figures(runs: Runs) -> tuple[Figure, ...]:
    """Every question group that is compared like for like: the targets, and counselors. A few groups per chart."""
    by_number: dict[int, list[tuple[Series, ComparedGroups]]] = {}
    for series in runs.series:
        for one in series.beside_counselors.groups.get("like", ()):
            by_number.setdefault(one.numbers[0], []).append((series, one))
    groups = [
        ForestGroup(f"{number} {compared[0][1].topic}", _beside(compared))
        for number, compared in sorted(by_number.items())
    ]
    if not groups:
        return ()
    most = max(1, ROWS // max(len(group.rows) for group in groups))
    each = ceil(len(groups) / ceil(len(groups) / most))
    charts = [
        ForestChart(f"groups-{place}", f"Question groups compared like for like, part {place}", PANELS, tuple(part))
        for place, start in enumerate(range(0, len(groups), each), 1)
        if (part := groups[start : start + each])
    ]
    return tuple(Figure(chart, "The tables below have these numbers and the differences.") for chart in charts)


def _beside(compared: Sequence[tuple[Series, ComparedGroups]]) -> tuple[ForestRow, ...]:
    """Targets, then counselors on the questions of the target that was asked most of them."""
    rows = [_row(series, *(one.outcomes[code].target for code in SHARES)) for series, one in compared]
    widest = max((one for _, one in compared), key=lambda one: len(one.numbers))
    for mode, name in COUNSELORS.items():
        shares = (widest.outcomes[code].counselors[mode] for code in SHARES)
        rows.append(ForestRow(name, tuple(map(_mark, shares)), "people"))
    return tuple(rows)


def _row(series: Series, *found: Estimated) -> ForestRow:
    return ForestRow(series.chart_label, tuple(map(_mark, found)))


TITLE = "How well do AI assistants answer Medicare questions?"
LIMITS_ANCHOR, NOTICES_ANCHOR = "limits", "notices"


def about(runs: Runs) -> tuple[Cell, ...]:
    """The line below the title: when, for which year, how many scenarios."""
    if not runs.runs:
        return ()
    plans = [run.found.manifest.plan for run in runs.runs]
    dates = sorted({run.found.manifest.created[:10] for run in runs.runs})
    years = sorted({str(plan.plan_year) for plan in plans})
    scenarios = {planned.scenario.scenario_id for plan in plans for planned in plan.scenarios}
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    year = f"plan {'year' if len(years) == 1 else 'years'} {', '.join(years)}"
    named = "Runs " if runs.several else "Run "
    names = text_cell(", ".join(run.name for run in runs.runs))
    told = say("Study of ", text_cell(when), f", {year}, {counted(len(scenarios), 'scenario')}. {named}", names, ".")
    urgent = [run.found.incomplete for run in runs.runs if run.found.incomplete]
    for run in runs.runs:
        if is_review(run.found.manifest):
            urgent.append("Some trials of an earlier run, judged again by people: not a result of their own.")
    if any(run.found.fake for run in runs.runs):
        urgent.append("A demonstration, not a result.")
    return (*told, *(part for one in dict.fromkeys(urgent) for part in (Cell(" "), Cell(one, "strong"))))


def first_blocks(runs: Runs, notices: int) -> tuple[Block, ...]:
    """What a reader sees first; `notices` is how many there are further down."""
    answered = [Answered(series, headline(series.rows, series.beside_counselors)) for series in runs.series]
    blocks: list[Block] = [*_registered(runs)]
    errors = [judge_error_sentence(series.judge_errors) for series in runs.series]
    shared = errors[0] if len(set(errors)) == 1 else ""
    for one, error in zip(answered, errors, strict=True):
        own = say(f" {error}") if error and not shared else ()
        blocks.append(Paragraph((*_sentence(one), *own), "answer"))
    blocks += [Paragraph(cells, "answer") for cells in _study_sentences(answered)]
    if any(one.found.complete.value is not None for one in answered):
        blocks.append(answer_figure(answered))
    blocks.append(Paragraph(_caveat(runs, notices, shared), "caveat"))
    return tuple(blocks)


def _value(
    found: Estimated | CounselorShare, what: str = "", *, to: str = "", with_range: bool = True
) -> tuple[Cell, ...]:
    """`62 accurately and completely (54–70)`; a target's number leads to its trials."""
    if found.value is None:
        return say("no answer")
    number = Cell(of_hundred(found.value), "strong")
    value = (linked(number, to, pages_only=True) if to else number, Cell(what))
    return (*value, Cell(" "), Cell(f"({range_text(found)})", "whole")) if with_range else value


def _name(series: Series) -> Cell:
    return linked(text_cell(series.label), of_target(series))


def _sentence(one: Answered) -> tuple[Cell, ...]:
    """`Of 100 questions, X answered 62 accurately and completely (54–70) and 9 wrongly (5–15).`"""
    complete, wrong = one.found.complete, one.found.incorrect
    if complete.value is None or wrong.value is None:
        return _by_claims(one.series)
    known = complete.low is not None
    evidence = of_target(one.series)
    right = _value(complete, " accurately and completely", to=evidence, with_range=known)
    counts = (*right, Cell(" and "), *_value(wrong, " wrongly", to=evidence))
    return (*say("Of 100 questions, ", _name(one.series), " answered "), *counts, Cell("."), *_missing(complete))


def _missing(found: Estimated) -> tuple[Cell, ...]:
    if found.lowest is None or found.highest is None:
        return ()
    bounds = f"{of_hundred(found.lowest)} to {of_hundred(found.highest)} accurate and complete"
    return say(
        f" {counted(found.missing, 'answer')} missing; counting missing answers as bad or as good gives {bounds}."
    )


def _by_claims(series: Series) -> tuple[Cell, ...]:
    """For scenarios whose questions get no code: how many of the checked claims were right."""
    accuracy = estimate(series.rows, "accuracy")
    if accuracy.value is None:
        return say("No answer of ", _name(series), " could be graded.")
    start = say("Of 100 statements of ", _name(series), " that could be checked, ")
    return (*start, *_value(accuracy, to=of_target(series)), Cell(" were right. Its answers have no codes."))


def _study_sentences(answered: Sequence[Answered]) -> Iterator[tuple[Cell, ...]]:
    """On the questions of the published study: counselors and targets, one sentence for the same questions.

    The targets' intervals are in the chart below it.
    """
    by_groups: dict[tuple[int, ...], list[tuple[Series, ComparedGroups]]] = {}
    for one in answered:
        if one.found.study:
            by_groups.setdefault(one.found.study.numbers, []).append((one.series, one.found.study))
    for numbers, listed in by_groups.items():
        complete, wrong = (listed[0][1].outcomes[code].counselors["phone"] for code in SHARES)
        groups = counted(len(numbers), "question group")
        cells = say(f"On {groups} of the published study, compared like for like, counselors by phone answered ")
        right = _value(complete, " of 100 questions accurately and completely")
        cells += (*right, Cell(" and "), *_value(wrong, " wrongly"))
        for series, study in listed:
            mine, mine_wrong = (study.outcomes[code].target for code in SHARES)
            right, bad = (_value(one, to=of_study(series), with_range=False) for one in (mine, mine_wrong))
            cells += (*say("; ", _name(series), " "), *right, Cell(" and "), *bad)
        yield (*cells, Cell("."))


def _registered(runs: Runs) -> Iterator[Paragraph]:
    """The primary outcome of a pre-registration in its own words, and the measure that it names."""
    for run in runs.runs:
        kept = run.found.manifest.registration
        if not kept:
            continue
        cells = say(
            "Primary outcome, registered ", text_cell(kept.created[:10]), ": “", text_cell(kept.primary_outcome), "”. "
        )
        measure = named_measure(kept.primary_outcome)
        if measure is None:
            yield Paragraph((*cells, Cell("It names no measure of this report.")), "answer")
            continue
        if measure in SHARES and re.search(r"counsel", kept.primary_outcome, re.IGNORECASE):
            mode = "face_to_face" if re.search(r"face|in person", kept.primary_outcome, re.IGNORECASE) else "phone"
            yield Paragraph((*cells, *_beside_counselors(runs, run, measure, mode)), "answer")
            continue
        cells += say(f"{_title(measure)}, of 100")
        for place, one in enumerate(series for series in runs.series if series.run is run):
            cells += (
                *say("; " if place else ": ", _name(one), " "),
                *_value(estimate(one.rows, measure), to=of_target(one)),
            )
        yield Paragraph((*cells, Cell(".")), "answer")


def _beside_counselors(runs: Runs, run: Run, measure: str, mode: str) -> Iterator[Cell]:
    """A registered difference from counselors: on the questions that are compared like for like."""
    compared = [
        (one, primary.outcomes[code])
        for one in runs.series
        if one.run is run and (primary := one.beside_counselors.primary)
        for code in SHARES
        if code == measure
    ]
    if not compared:
        yield Cell("No question of the study that is compared like for like was asked.")
        return
    yield Cell(f"{_title(measure)} on the questions compared like for like, of 100: counselors ")
    yield Cell("face to face " if mode == "face_to_face" else "by phone ")
    yield from _value(compared[0][1].counselors[mode])
    for one, beside in compared:
        gap = beside.gaps[mode]
        yield from (*say("; ", _name(one), " "), *_value(beside.target, to=of_study(one)))
        if gap.value is not None:
            yield from say(", a difference of ", gap_cell(gap.value, gap.low, gap.high, n=1), " points")
    yield Cell(".")


def _title(measure: str) -> str:
    one = MEASURES[measure]
    return f"Answered {one.adverb}" if one.adverb else one.heading.capitalize()


def named_measure(outcome: str) -> str | None:
    """The measure that a text names first."""
    found = {
        name: match.start()
        for name, one in MEASURES.items()
        if (match := re.search(one.named_by or one.heading.replace(" ", r"[\s_]"), outcome, re.IGNORECASE))
    }
    return min(found, key=lambda name: found[name]) if found else None


def _caveat(runs: Runs, notices: int, judge_error: str) -> tuple[Cell, ...]:
    """Who judged, how far to trust them, whether it is a demonstration, and that it is no advice."""
    plans = [run.found.manifest.plan for run in runs.runs]
    verifiers = list(dict.fromkeys(name for plan in plans for name in plan.verifiers))
    cells: list[Cell] = []
    if any(run.found.fake for run in runs.runs):
        cells += Cell("Fake targets return canned text.", "strong"), Cell(" ")
    if any(map(judged_offline, plans)):
        text = "Judged by offline:rules, fixed rules for demonstrations and tests."
        cells += Cell(text, "strong" if not cells else "words"), Cell(" ")
    elif verifiers:
        cells += say("Judged by ", text_cell(" and ".join(verifiers)), ", models that make mistakes too. ")
    if judge_error:
        cells.append(Cell(f"{judge_error} "))
    checked = key_coverage([row for run in runs.runs for row in run.found.rows])
    if checked.value is not None:
        cells.append(Cell(f"Of 100 factual statements, the answer keys could decide {of_hundred(checked.value)}. "))
    cells += [Cell("For research only, not advice: see the "), linked(Cell("limits"), f"#{LIMITS_ANCHOR}")]
    if notices:
        cells += [Cell(" and "), linked(Cell(counted(notices, "notice")), f"#{NOTICES_ANCHOR}")]
    return (*cells, Cell("."))
