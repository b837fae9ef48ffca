"""Single cases in full: wrong claims inside their replies, and trials that need manual review."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..findings.read_run import Findings
from ..records.base import severity_rank
from ..schemas import FinalClaim, QuoteSpan, TrialResult, Verdict
from ..trials.row import NOT_RECORDED
from .document import (
    Cell,
    Column,
    Entry,
    Exhibit,
    Paragraph,
    Section,
    Table,
    code_cell,
    count_cell,
    link_cell,
    linked,
    passage_cell,
    say,
    text_cell,
    words,
)
from .links import of_claim, of_trial
from .series import Run, Runs, Series

EXAMPLES = 6
"""Wrong claims shown for each run."""
DISPUTED = 4
"""Disputed claims, or replies, shown for each trial that needs review."""
AROUND = 220
"""Characters of the reply shown before and after the marked words."""
LONGEST = 700
"""Characters shown of a marked quote, or of a reply without one."""
REVIEW_KINDS = {
    "addresses_judge": "speaks to its checkers",
    "nothing_extracted": "long reply without a checkable claim",
    "low_coverage": "claims cover too little of the reply",
    "rejected_claims": "too many claims rejected",
    "judges_disagree": "judges disagree",
    "open_claims": "claims without a final label",
    "unchecked_source": "answers looked up from a source that nobody has checked",
    NOT_RECORDED: NOT_RECORDED,
}
"""Column headings for the recorded kinds of review reasons."""


@dataclass(frozen=True, eq=False)
class _WrongClaim:
    trial: TrialResult
    claim: FinalClaim
    place: int
    """Of the trial among the examples."""

    @property
    def severity(self) -> int:
        return severity_rank(self.claim.severity)


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


def example_section(runs: Runs) -> Section:
    """Wrong claims, the most severe first, with the fact each contradicts."""
    exhibits = [exhibit for run in runs.runs for exhibit in _examples(runs, run)]
    title = words("Exemplary incorrect responses")
    if not exhibits:
        return Section(title, (Paragraph(words("None: no claim contradicts the answer key.")),))
    intro = words(
        "Claims that contradict the answer key, the most severe first. The claim's words are marked inside the reply."
    )
    return Section(title, (Paragraph(intro), *exhibits))


def _examples(runs: Runs, run: Run) -> list[Exhibit]:
    wrong = [
        _WrongClaim(trial, claim, place)
        for place, trial in enumerate(map(run.found.trial, run.found.example_ids))
        for claim in trial.final_claims
        if claim.label == "CONTRADICTED"
    ]
    return [_example(runs, run, one) for one in _varied(wrong)]


def _varied(wrong: Sequence[_WrongClaim]) -> list[_WrongClaim]:
    """A few of many, the most severe first; among equals, those least like the ones already chosen."""
    left = sorted(wrong, key=lambda one: (-one.severity, one.place))
    chosen: list[_WrongClaim] = []
    while left and len(chosen) < EXAMPLES:
        best = min(left, key=lambda one: (_again(one, chosen), -one.severity, *_likeness(one, chosen)))
        if _again(best, chosen):
            break
        left.remove(best)
        chosen.append(best)
    return chosen


def _again(one: _WrongClaim, chosen: Sequence[_WrongClaim]) -> bool:
    """Whether the same error of the target, against the same facts of the same scenario, was chosen already."""
    return _likeness(one, chosen)[0] > 0


def _likeness(one: _WrongClaim, chosen: Sequence[_WrongClaim]) -> tuple[int, int]:
    """How many chosen claims of the same target and scenario contradict the same facts, and how many there are."""
    alike = [
        other
        for other in chosen
        if (other.trial.target.name, other.trial.scenario_id) == (one.trial.target.name, one.trial.scenario_id)
    ]
    return sum(other.claim.evidence == one.claim.evidence for other in alike), len(alike)


def exhibit_title(runs: Runs, run: Run, trial: TrialResult, *rest: Cell) -> tuple[Cell, ...]:
    """The trial's id with a link to its page, after its run if there are several."""
    named = say(code_cell(run.name), ", ") if runs.several else ()
    return (*named, linked(code_cell(trial.trial_id), of_trial(_series(runs, run, trial), trial.trial_id)), *rest)


def claim_title(runs: Runs, run: Run, trial: TrialResult, claim_id: str) -> tuple[Cell, ...]:
    """The same with a link to the claim."""
    href = of_claim(_series(runs, run, trial), trial.trial_id, claim_id)
    return exhibit_title(runs, run, trial, Cell(", claim "), linked(code_cell(claim_id), href))


def _series(runs: Runs, run: Run, trial: TrialResult) -> Series:
    return next(series for series in runs.series if series.run is run and series.target == trial.target.name)


def _example(runs: Runs, run: Run, one: _WrongClaim) -> Exhibit:
    trial, claim = one.trial, one.claim
    entries = [
        ("Target", (text_cell(trial.target.name),)),
        *in_reply(trial, claim),
        ("Claim", (text_cell(claim.text),)),
        ("Severity", (Cell(claim.severity),)),
        *(("Contradicts", cells) for cells in contradicted(run.found, trial, claim.evidence)),
        *_by_judge(trial, claim.claim_id),
    ]
    return Exhibit(claim_title(runs, run, trial, claim.claim_id), tuple(entries))


def in_reply(trial: TrialResult, claim: FinalClaim) -> Iterator[Entry]:
    spans = next((one.quote_spans for one in trial.claims if one.claim_id == claim.claim_id), ())
    yield from _asked(trial, (claim.turn_id,), spans)


def _asked(trial: TrialResult, turn_ids: Sequence[str | None], spans: Sequence[QuoteSpan] = ()) -> Iterator[Entry]:
    for exchange in trial.conversation:
        if exchange.turn_id in turn_ids:
            yield ("Asked", (text_cell(exchange.user_message),))
            yield ("Answered", (passage(exchange.reply or "", spans),))


def contradicted(found: Findings, trial: TrialResult, evidence: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """Each fact or disallowed claim that was cited, with its source."""
    key = next(
        (
            planned.scenario.answer_key
            for planned in found.manifest.plan.scenarios
            if (planned.scenario.scenario_id, planned.variant) == (trial.scenario_id, trial.variant)
        ),
        None,
    )
    facts = {fact.fact_id: fact for fact in key.canonical_facts} if key else {}
    disallowed = {claim.claim_id: claim.statement for claim in key.disallowed()} if key else {}
    for cited in evidence:
        if cited in disallowed:
            yield say(code_cell(cited), ", a disallowed claim: ", text_cell(disallowed[cited]))
        elif cited in facts:
            fact = facts[cited]
            where = say(", ", text_cell(fact.locator)) if fact.locator else ()
            address = say(" ", link_cell(fact.address)) if fact.address else ()
            confirmed = say(f" [{fact.confirmed_by}]") if fact.confirmed_by else ()
            source = say(" Source: ", text_cell(fact.source), *where, ".", *address, *confirmed)
            yield (*say(code_cell(cited), ": ", text_cell(fact.statement)), *source)
        else:
            yield say(code_cell(cited), ", which is not in the answer key")


def _by_judge(trial: TrialResult, claim_id: str) -> Iterator[Entry]:
    """What each judge said about a claim."""
    for judge, verdicts in trial.verdicts.items():
        verdict = next((one for one in verdicts if one.claim_id == claim_id), None)
        model = trial.judged_by.verifiers.get(judge, "")
        yield ("Judge", (*say(text_cell(judge), " (", text_cell(model), "): "), *_verdict(verdict)))


def _verdict(verdict: Verdict | None) -> tuple[Cell, ...]:
    if verdict is None:
        return words("no verdict")
    cites = say(" by ", text_cell(", ".join(verdict.evidence))) if verdict.evidence else ()
    severity = words(f", {verdict.severity}") if verdict.severity != "none" else ()
    notes = say(". ", text_cell(verdict.notes)) if verdict.notes else ()
    return (Cell(verdict.label), *cites, *severity, *notes)


def review_section(runs: Runs) -> Section:
    """Trials that need manual review, with the recorded reasons; a few of them in full."""
    total = sum(row.review for series in runs.series for row in series.rows)
    title = words("Trials that need manual review")
    if not total:
        return Section(title, (Paragraph(words("None.")),))
    exhibits = [_review(runs, run, run.found.trial(trial_id)) for run in runs.runs for trial_id in run.found.review]
    intro = (
        f"{len(exhibits):,} of {total:,} shown. The trial table of medicare-eval export has all of them; see its "
        "columns needs_manual_review, review_reasons and review_details."
    )
    return Section(title, (_reason_table(runs), Paragraph(words(intro)), *exhibits))


def _reason_table(runs: Runs) -> Table:
    there = {kind for run in runs.runs for _, kind in run.found.review_reasons}
    kinds = [kind for kind in REVIEW_KINDS if kind in there]
    rows = tuple(
        (
            *runs.lead(series),
            count_cell(sum(row.review for row in series.rows)),
            *(count_cell(series.run.found.review_reasons[series.target, kind]) for kind in kinds),
        )
        for series in runs.series
    )
    columns = (*runs.lead_columns(), Column("need review"), *(Column(REVIEW_KINDS[kind]) for kind in kinds))
    return Table("Trials that need review, by reason; a trial can have several.", columns, rows)


def _review(runs: Runs, run: Run, trial: TrialResult) -> Exhibit:
    disputed = [claim for claim in trial.final_claims if claim.label is None or len(set(claim.labels_given)) > 1]
    entries: list[Entry] = [*_reasons(trial)]
    for claim in disputed[:DISPUTED]:
        entries.append(("Claim", say(code_cell(claim.claim_id), ": ", text_cell(claim.text))))
        entries += in_reply(trial, claim)
        entries += _by_judge(trial, claim.claim_id)
        entries.append(("Final label", words(_decided(run.found, claim))))
    if len(disputed) > DISPUTED:
        entries.append(("More", words(f"{len(disputed) - DISPUTED} more disputed claims in this trial.")))
    if not disputed:
        turns = [turn_id for reason in trial.review_reasons or () for turn_id in reason.turn_ids]
        entries += _asked(trial, list(dict.fromkeys(turns))[:DISPUTED])
    return Exhibit(exhibit_title(runs, run, trial), tuple(entries))


def _decided(found: Findings, claim: FinalClaim) -> str:
    if found.open_tie(claim.decided_by, claim.labels_given):
        return "none: the verifiers are tied and no model of a third family was there; open for a person"
    return f"{claim.label or 'none'}, {claim.decided_by}"


def _reasons(trial: TrialResult) -> Iterator[Entry]:
    """The recorded reasons; what the result says about a reply that addressed the judge is quoted."""
    if trial.review_reasons is None:
        yield ("Reason", words(NOT_RECORDED))
    for reason in trial.review_reasons or ():
        yield ("Reason", (text_cell(reason.detail),))
    for reading in trial.readings:
        if reading.how == "tampered":
            yield ("Addressed the judge", (text_cell(reading.why),))
