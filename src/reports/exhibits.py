"""Single cases in full: wrong claims inside their replies, and trials that need manual review."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ..findings.read_run import Findings
from ..records.answer_key import AnswerKey
from ..records.base import severity_rank
from ..schemas import FinalClaim, QuoteSpan, TrialResult
from ..trials.row import NOT_RECORDED
from . import read_sections
from .document import Cell, Section, passage_cell
from .series import ReportedRun, ReportedTarget, Runs

EXAMPLES = 6
"""Wrong claims shown for each run."""
DISPUTED = 4
"""Disputed claims, or replies, shown for each trial that needs review."""
AROUND = 220
"""Characters of the reply shown before and after the marked words."""
LONGEST = 700
"""Characters shown of a marked quote, or of a reply without one."""
REVIEW_KINDS = {
    "addresses_judge": "passages judged apart",
    "judged_apart": "passages judged apart",
    "unjudged": "too long to be judged whole",
    "nothing_extracted": "long reply without a checkable claim",
    "low_coverage": "claims cover too little of the reply",
    "rejected_claims": "too many claims rejected",
    "judges_disagree": "judges disagree",
    "open_claims": "claims without a final label",
    "unchecked_source": "answers looked up from a source that nobody has checked",
    NOT_RECORDED: NOT_RECORDED,
}
"""Column headings for the recorded kinds of review reasons."""


class _WrongClaim(NamedTuple):
    run: ReportedRun
    trial: TrialResult
    claim: FinalClaim


def passage(reply: str, spans: Sequence[QuoteSpan]) -> Cell:
    """The quoted words, marked, with the text around them; text far from them is left out."""
    pieces: list[tuple[str, bool]] = []
    here = 0
    for start, end in _merged(reply, spans):
        before = reply[here:start]
        if here == 0:
            before = _tail(before, AROUND)
        elif len(before) > 2 * AROUND:
            before = f"{_head(before, AROUND)} … {_tail(before, AROUND)}"
        pieces += [(before, False), (_short(reply[start:end]), True)]
        here = end
    pieces.append((_head(reply[here:], AROUND if here else LONGEST), False))
    return passage_cell((flat, marked) for piece, marked in pieces if (flat := _flat(piece)))


def _merged(reply: str, spans: Sequence[QuoteSpan]) -> Iterator[tuple[int, int]]:
    """Spans in order, overlapping ones merged, none beyond the end of the reply."""
    last: tuple[int, int] | None = None
    for start, end in sorted((min(span.start, len(reply)), min(span.end, len(reply))) for span in spans):
        if last and start <= last[1]:
            last = (last[0], max(last[1], end))
        else:
            if last and last[0] < last[1]:
                yield last
            last = (start, end)
    if last and last[0] < last[1]:
        yield last


def _tail(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    cut = text[-most:]
    return f"… {cut.split(None, 1)[1] if len(cut.split(None, 1)) > 1 else cut}"


def _head(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    cut = text[:most]
    return f"{cut.rsplit(None, 1)[0] if cut.split() else ''} …"


def _short(quote: str) -> str:
    return quote if len(quote) <= LONGEST else f"{quote[: LONGEST // 2]} […] {quote[-LONGEST // 2 :]}"


def _flat(text: str) -> str:
    """One line without control characters; unlike `plain` it keeps a space at either end."""
    shown = re.sub(r"\s+", " ", text)
    return "".join(char for char in shown if unicodedata.category(char) not in ("Cc", "Cf", "Cs"))


def case_section(part: str, runs: Runs, **values: object) -> Section:
    """One of the sections that show cases in full."""
    return read_sections.section(
        "cases", part, runs=runs, series_of=partial(_series_of, runs), quoted=passage, answer_key=_answer_key, **values
    )


def _series_of(runs: Runs, run: ReportedRun, trial: TrialResult) -> ReportedTarget:
    return next(series for series in runs.series if series.run is run and series.target == trial.target.name)


def _answer_key(found: Findings, trial: TrialResult) -> AnswerKey | None:
    named = (trial.scenario_id, trial.variant)
    listed = ((one.scenario, one.variant) for one in found.manifest.plan.scenarios)
    return next((one.answer_key for one, variant in listed if (one.scenario_id, variant) == named), None)


def example_section(runs: Runs) -> Section:
    """Wrong claims, the most severe first, with the fact each contradicts."""
    return case_section("examples", runs, cases=[one for run in runs.runs for one in _varied(_wrong(run))])


def _wrong(run: ReportedRun) -> Iterator[_WrongClaim]:
    for trial in map(run.found.trial, run.found.example_ids):
        yield from (_WrongClaim(run, trial, claim) for claim in trial.final_claims if claim.label == "CONTRADICTED")


def _varied(wrong: Iterable[_WrongClaim]) -> list[_WrongClaim]:
    """A few of many, the most severe first; among equals, those least like the ones already chosen."""
    left = sorted(wrong, key=lambda one: -severity_rank(one.claim.severity))
    chosen: list[_WrongClaim] = []

    def likeness(one: _WrongClaim) -> tuple[int, int]:
        """How many chosen claims of this target and scenario contradict the same facts, and how many there are."""
        alike = [other.claim.evidence for other in chosen if _about(other) == _about(one)]
        return alike.count(one.claim.evidence), len(alike)

    while left and len(chosen) < EXAMPLES:
        fresh = [one for one in left if not likeness(one)[0]]  # the same error of a target is shown once
        if not fresh:
            break
        best = min(fresh, key=lambda one: (-severity_rank(one.claim.severity), likeness(one)))
        left.remove(best)
        chosen.append(best)
    return chosen


def _about(one: _WrongClaim) -> tuple[str, str]:
    return one.trial.target.name, one.trial.scenario_id


def review_section(runs: Runs) -> Section:
    """Trials that need manual review, with the recorded reasons; a few of them in full."""
    there = {kind for run in runs.runs for _, kind in run.found.review_reasons}
    need_review = {series: sum(row.review for row in series.rows) for series in runs.series}
    total = sum(need_review.values())
    trials = [(run, run.found.trial(name)) for run in runs.runs for name in run.found.review] if total else []
    return case_section(
        "manual_review",
        runs,
        kinds={kind: heading for kind, heading in REVIEW_KINDS.items() if kind in there},
        need_review=need_review,
        total=total,
        cases=[(run, trial, _disputed(trial), _turns(trial)) for run, trial in trials],
        most=DISPUTED,
        not_recorded=NOT_RECORDED,
    )


def _disputed(trial: TrialResult) -> list[FinalClaim]:
    return [claim for claim in trial.final_claims if claim.label is None or len(set(claim.labels_given)) > 1]


def _turns(trial: TrialResult) -> list[str]:
    """Which turns the review reasons are about."""
    return list(dict.fromkeys(turn_id for reason in trial.review_reasons or () for turn_id in reason.turn_ids))
