"""The first screen: the answer in one sentence per target, one chart, and one line on what the numbers are worth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...text.count import counted
from ...text.rounded import percent
from ..analysis.baseline import load_baseline
from ..analysis.estimates import Estimated, estimate
from ..analysis.headline import Headline, headline
from ..analysis.human_comparison import ComparedGroups, CounselorShare
from ..analysis.read_run import judged_offline
from .document import Block, Cell, Figure, Linked, Paragraph, Text, Words, say
from .forest import ForestChart, ForestGroup, ForestPanel, ForestRow, Mark, Tick
from .links import of_target
from .series import Runs, Series

TITLE = "How well do AI assistants answer Medicare questions?"
LIMITS_ANCHOR, NOTICES_ANCHOR = "limits", "notices"
COUNSELORS = {"phone": "Counselors by phone", "face_to_face": "Counselors face to face"}
PER_HUNDRED = tuple(Tick(share / 100, str(share)) for share in (0, 25, 50, 75, 100))
OUTCOME_NAMES = {
    "accurate_complete": "answered accurately and completely",
    "incorrect": "answered wrongly",
    "accuracy": "accuracy",
    "completeness": "completeness",
    "safety_risk": "safety risk",
    "calibration": "calibration",
}
_NAMED_BY = {
    "accurate_complete": r"accurate[\s_,]*(and\s+)?complete",
    "incorrect": r"incorrect|wrong",
    "accuracy": r"accuracy",
    "completeness": r"completeness",
    "safety_risk": r"safety[\s_]risk",
    "calibration": r"calibration",
}
"""How the primary outcome of a pre-registration, a free text, names a measure."""


@dataclass(frozen=True)
class Answered:
    series: Series
    found: Headline


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
    names = ", ".join(run.name for run in runs.runs)
    return say("Study of ", Text(when), f", {year}, {counted(len(scenarios), 'scenario')}. Run ", Text(names), ".")


def first_blocks(runs: Runs, notices: int) -> tuple[Block, ...]:
    """What a reader sees first; `notices` is how many there are further down."""
    answered = [
        Answered(series, headline(series.rows, series.run.found.rules, load_baseline())) for series in runs.series
    ]
    blocks: list[Block] = [*_registered(runs)]
    blocks += [Paragraph(_sentence(one), "answer") for one in answered]
    blocks += [Paragraph(cells, "answer") for cells in _study_sentences(answered)]
    if any(one.found.complete.value is not None for one in answered):
        blocks.append(_figure(answered))
    blocks.append(Paragraph(_caveat(runs, notices), "caveat"))
    return tuple(blocks)


def _of_hundred(share: float) -> str:
    """A share as a number of 100; what is not 0 is not shown as 0."""
    return "fewer than 1" if 0 < share < 0.005 else percent(share)


def _range(found: Estimated | CounselorShare) -> str:
    if found.low is not None and found.high is not None:
        return f"{percent(found.low)}–{percent(found.high)}"
    return f"no interval from {counted(found.units, found.unit)}" if isinstance(found, Estimated) else ""


def _with_range(found: Estimated | CounselorShare) -> tuple[Cell, ...]:
    if found.value is None:
        return say("no answer")
    reach = _range(found)
    return Words(_of_hundred(found.value), strong=True), Words(f" ({reach})" if reach else "")


def _name(series: Series) -> Cell:
    return Linked(Text(series.label), of_target(series))


def _sentence(one: Answered) -> tuple[Cell, ...]:
    """`Of 100 questions, X answered 62 accurately and completely (54–70) and 9 wrongly (5–15).`"""
    complete, wrong = one.found.complete, one.found.incorrect
    if complete.value is None or wrong.value is None:
        return _by_claims(one.series)
    right = (Words(_of_hundred(complete.value), strong=True), Words(f" accurately and completely ({_range(complete)})"))
    false = (Words(_of_hundred(wrong.value), strong=True), Words(f" wrongly ({_range(wrong)})"))
    missing = f" {counted(complete.missing, 'answer')} missing." if complete.missing else ""
    return (
        *say("Of 100 questions, ", _name(one.series), " answered "),
        *right,
        *say(" and "),
        *false,
        Words(f".{missing}"),
    )


def _by_claims(series: Series) -> tuple[Cell, ...]:
    """For scenarios whose questions get no code: how many of the checked claims were right."""
    accuracy = estimate(series.rows, "accuracy")
    if accuracy.value is None:
        return (*say("No answer of "), _name(series), *say(" could be graded."))
    start = say("Of 100 statements of ", _name(series), " that could be checked, ")
    return (*start, *_with_range(accuracy), Words(" were right. None of its answers has a code."))


def _study_sentences(answered: Sequence[Answered]) -> Iterator[tuple[Cell, ...]]:
    """On the questions of the published study: targets beside counselors, one sentence for the same questions."""
    by_groups: dict[tuple[int, ...], list[tuple[Answered, ComparedGroups]]] = {}
    for one in answered:
        if one.found.study:
            by_groups.setdefault(one.found.study.numbers, []).append((one, one.found.study))
    for numbers, listed in by_groups.items():
        groups = counted(len(numbers), "question group")
        cells: list[Cell] = [
            Words(f"On the {groups} that compare like for like with the published study, complete and wrong of 100: ")
        ]
        for one, study in listed:
            cells += (_name(one.series), Words(" "), *_both(study, None), Words("; "))
        yield (*cells, Words("counselors by phone "), *_both(listed[0][1], "phone"), Words("."))


def _both(study: ComparedGroups, mode: str | None) -> tuple[Cell, ...]:
    complete, wrong = (
        beside.counselors[mode] if mode else beside.target
        for beside in (study.outcomes["accurate_complete"], study.outcomes["incorrect"])
    )
    return (*_with_range(complete), Words(" and "), *_with_range(wrong))


def _registered(runs: Runs) -> Iterator[Paragraph]:
    """The primary outcome of a pre-registration in its own words, and the measure that it names."""
    for run in runs.runs:
        kept = run.found.manifest.registration
        if not kept:
            continue
        series = [one for one in runs.series if one.run is run]
        cells: list[Cell] = [*say("Primary outcome, as registered on ", Text(kept.created[:10])), Words(": “")]
        cells += [Text(kept.primary_outcome), Words("”. ")]
        measure = named_measure(kept.primary_outcome)
        if measure is None:
            cells.append(Words("It names no measure of this report."))
        else:
            cells.append(Words(f"{OUTCOME_NAMES[measure].capitalize()}, of 100: "))
            for place, one in enumerate(series):
                cells += [
                    Words("; " if place else ""),
                    _name(one),
                    Words(" "),
                    *_with_range(estimate(one.rows, measure)),
                ]
            cells.append(Words("."))
        yield Paragraph(tuple(cells), "answer")


def named_measure(outcome: str) -> str | None:
    """The measure that a text names first."""
    found = {name: match.start() for name, by in _NAMED_BY.items() if (match := re.search(by, outcome, re.IGNORECASE))}
    return min(found, key=lambda name: found[name]) if found else None


def _figure(answered: Sequence[Answered]) -> Figure:
    panels = (
        ForestPanel("Accurate and complete, of 100", PER_HUNDRED),
        ForestPanel("Wrong, of 100", PER_HUNDRED),
    )
    everything = ForestGroup(
        "All questions", tuple(_row(one.series, one.found.complete, one.found.incorrect) for one in answered)
    )
    beside = _study_rows(answered)
    groups = (everything, *beside) if beside else (ForestGroup("", everything.rows),)
    chart = ForestChart(
        "answer", "Answers that were accurate and complete, and answers that were wrong", panels, groups
    )
    asked = max((one.found.complete for one in answered), key=lambda found: found.questions)
    size = f"{counted(asked.questions, 'different question')} in {counted(asked.units, asked.unit)}"
    return Figure(
        chart,
        f"Dots are estimates from {size}; lines are 95% intervals: the range that fits the data. Other answers were "
        "incomplete or said nothing that helps.",
    )


def _study_rows(answered: Sequence[Answered]) -> tuple[ForestGroup, ...]:
    compared = [(one, one.found.study) for one in answered if one.found.study]
    if not compared:
        return ()
    rows = [
        _row(one.series, study.outcomes["accurate_complete"].target, study.outcomes["incorrect"].target)
        for one, study in compared
    ]
    widest = max((study for _, study in compared), key=lambda study: len(study.numbers))
    for mode, name in COUNSELORS.items():
        shares = [widest.outcomes[code].counselors[mode] for code in ("accurate_complete", "incorrect")]
        rows.append(ForestRow(name, tuple(_mark(share) for share in shares), "people"))
    return (ForestGroup("Questions of the published study, like for like", tuple(rows)),)


def _row(series: Series, *found: Estimated) -> ForestRow:
    return ForestRow(series.chart_label, tuple(map(_mark, found)))


def _mark(found: Estimated | CounselorShare) -> Mark:
    if found.value is None:
        return Mark(None, None, None, "no answer")
    value = _of_hundred(found.value)
    if found.low is not None and found.high is not None:
        return Mark(found.value, found.low, found.high, f"{value} ({_range(found)})")
    return Mark(found.value, None, None, value, _range(found))


def _caveat(runs: Runs, notices: int) -> tuple[Cell, ...]:
    """Who judged, whether it is a demonstration, and that it is no advice."""
    plans = [run.found.manifest.plan for run in runs.runs]
    verifiers = list(dict.fromkeys(name for plan in plans for name in plan.verifiers))
    cells: list[Cell] = []
    if any(run.found.fake for run in runs.runs):
        cells.append(Words("A demonstration, not a result: fake targets return canned text. ", strong=True))
    if any(map(judged_offline, plans)):
        cells.append(Words("Judged by offline:rules, a test double that recognizes few answers. ", strong=not cells))
    elif verifiers:
        cells += say("Judged by ", Text(" and ".join(verifiers)), ", models that make mistakes too. ")
    cells += [Words("For research only, not advice: see the "), Linked(Words("limits"), f"#{LIMITS_ANCHOR}")]
    if notices:
        cells += [Words(" and "), Linked(Words(counted(notices, "notice")), f"#{NOTICES_ANCHOR}")]
    return (*cells, Words("."))
