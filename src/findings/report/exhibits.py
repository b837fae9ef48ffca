"""Single cases, shown in full: wrong claims inside the reply they stand in, and trials that a person must look at."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from ...records.base import severity_rank
from ...records.thresholds import LONG_REPLY_WORDS, REJECTED_ABOVE, REVIEW_ABOVE
from ...schemas import (
    Exchange,
    FinalClaim,
    QuoteSpan,
    TrialResult,
    Verdict,
)
from ..analysis.read_run import Findings
from .document import (
    Block,
    Cell,
    Exhibit,
    Link,
    Paragraph,
    Passage,
    Section,
    Text,
    Words,
    say,
    words,
)
from .series import Run, Runs

EXAMPLES = 6
REVIEWS = 10
DISPUTED = 4
AROUND = 220
"""Characters of the reply shown before and after the words in question."""
LONGEST = 700
_Wrong = tuple[int, int, TrialResult, FinalClaim]
"""Less its gravity, the place of its trial, the trial, the claim."""


def passage(reply: str, spans: Sequence[QuoteSpan]) -> Passage:
    """The quoted words, marked, inside their surroundings; what is far from them is left out."""
    pieces: list[tuple[str, bool]] = []
    here = 0
    for start, end in _merged(reply, spans):
        before = reply[here:start]
        if here == 0:
            pieces.append((_tail(before, AROUND), False))
        elif len(before) > 2 * AROUND:
            pieces.append((f"{_head(before, AROUND)} … {_tail(before, AROUND)}", False))
        else:
            pieces.append((before, False))
        pieces.append((_short(reply[start:end]), True))
        here = end
    rest = reply[here:]
    pieces.append((_head(rest, AROUND if here else LONGEST), False))
    return Passage(tuple((one, marked) for text, marked in pieces if (one := _flat(text))))


def _merged(reply: str, spans: Sequence[QuoteSpan]) -> Iterator[tuple[int, int]]:
    """Spans in order, those that touch made one, none beyond the reply."""
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
    """One line without control characters; unlike `text.plain` it keeps a space at either end."""
    shown = re.sub(r"\s+", " ", text)
    return "".join(char for char in shown if unicodedata.category(char) not in ("Cc", "Cf", "Cs"))


def example_section(runs: Runs) -> Section:
    """Wrong claims, the gravest first, with the fact each violates."""
    exhibits = [exhibit for run in runs.runs for exhibit in _examples(runs, run)]
    title = words("Exemplary incorrect responses")
    if not exhibits:
        return Section(title, (Paragraph(words("None: no claim was found to contradict the key.")),))
    intro = words(
        "Claims judged to contradict the key, the gravest first; the words in question are marked inside their reply."
    )
    return Section(title, (Paragraph(intro), *exhibits))


def _examples(runs: Runs, run: Run) -> list[Exhibit]:
    found = run.found
    wrong: list[_Wrong] = []
    for place, (_, trial_id) in enumerate(found.example_ids):
        trial = found.trial(trial_id)
        wrong += [
            (-severity_rank(claim.severity), place, trial, claim)
            for claim in trial.final_claims
            if claim.label == "CONTRADICTED"
        ]
    wrong.sort(key=lambda one: one[:2])
    return [_example(runs, run, trial, claim) for _, _, trial, claim in _varied(wrong)]


def _varied(wrong: Sequence[_Wrong]) -> list[_Wrong]:
    """A few of many, the gravest first, but no more of one trial, scenario or fact than must be."""
    left, chosen = list(wrong), list[_Wrong]()
    while left and len(chosen) < EXAMPLES:
        best = min(range(len(left)), key=lambda place: (left[place][0], _kin(left[place], chosen), place))
        chosen.append(left.pop(best))
    return chosen


def _kin(one: _Wrong, chosen: Sequence[_Wrong]) -> tuple[int, int]:
    """How many of those chosen say the same, and how many are of the same target and scenario."""
    _, _, trial, claim = one
    mine = [other for other in chosen if other[2].target.name == trial.target.name]
    of_scenario = [other for other in mine if other[2].scenario_id == trial.scenario_id]
    return sum(other[3].evidence == claim.evidence for other in of_scenario), len(of_scenario)


def _title(runs: Runs, run: Run, trial: TrialResult, *rest: Cell) -> tuple[Cell, ...]:
    named = say(Text(run.name, code=True), ", ") if runs.several else ()
    return (*named, Text(trial.trial_id, code=True), *rest)


def _example(runs: Runs, run: Run, trial: TrialResult, claim: FinalClaim) -> Exhibit:
    entries: list[tuple[str, tuple[Cell, ...]]] = [
        ("Target", (Text(trial.target.name),)),
        *_in_reply(trial, claim),
        ("Taken as", (Text(claim.text),)),
        ("Severity", (Words(claim.severity),)),
    ]
    entries += [("Violates", one) for one in _violated(run.found, trial, claim.evidence)]
    entries += _said(trial, claim.claim_id)
    return Exhibit(_title(runs, run, trial, Words(", claim "), Text(claim.claim_id, code=True)), tuple(entries))


def _in_reply(trial: TrialResult, claim: FinalClaim) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    exchange = next((one for one in trial.conversation if one.turn_id == claim.turn_id), None)
    spans = next((one.quote_spans for one in trial.claims if one.claim_id == claim.claim_id), ())
    if exchange:
        yield "Asked", (Text(exchange.user_message),)
        yield "Answered", (passage(exchange.reply or "", spans),)


def _violated(found: Findings, trial: TrialResult, evidence: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """Each fact or disallowed claim that was cited: what it says, who says so, and where."""
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
            yield say(Text(cited, code=True), ", a claim no answer may make: ", Text(disallowed[cited]))
        elif cited in facts:
            fact = facts[cited]
            where = say(", ", Text(fact.locator)) if fact.locator else ()
            address = say(" ", Link(fact.address)) if fact.address else ()
            confirmed = say(f" [{fact.confirmed_by}]") if fact.confirmed_by else ()
            source = say(" Source: ", Text(fact.source), *where, ".", *address, *confirmed)
            yield (*say(Text(cited, code=True), ": ", Text(fact.statement)), *source)
        else:
            yield say(Text(cited, code=True), ", which is not in the key")


def _said(trial: TrialResult, claim_id: str) -> list[tuple[str, tuple[Cell, ...]]]:
    """What each judge said of a claim, by name."""
    said: list[tuple[str, tuple[Cell, ...]]] = []
    for judge, verdicts in trial.verdicts.items():
        verdict = next((one for one in verdicts if one.claim_id == claim_id), None)
        model = trial.judged_by.verifiers.get(judge, "")
        said.append(("Judge", (*say(Text(judge), " (", Text(model), "): "), *_verdict(verdict))))
    return said


def _verdict(verdict: Verdict | None) -> tuple[Cell, ...]:
    if verdict is None:
        return words("no verdict")
    cites = say(" by ", Text(", ".join(verdict.evidence))) if verdict.evidence else ()
    severity = words(f", {verdict.severity}") if verdict.severity != "none" else ()
    notes = say(". ", Text(verdict.notes)) if verdict.notes else ()
    return (Words(verdict.label), *cites, *severity, *notes)


def review_section(runs: Runs) -> Section:
    """Trials a person should look at, with what each judge said where they differ."""
    total = sum(row.review for series in runs.series for row in series.rows)
    title = words("Trials that need manual review")
    if not total:
        return Section(title, (Paragraph(words("None was marked.")),))
    blocks: list[Block] = []
    shown = 0
    for run in runs.runs:
        for trial_id in run.found.review[:REVIEWS]:
            blocks.append(_review(runs, run, run.found.trial(trial_id)))
            shown += 1
    more = f" Shown here: {shown}; the others are marked needs_manual_review in results.jsonl." if shown < total else ""
    intro = f"{total:,} {'trial is' if total == 1 else 'trials are'} marked.{more}"
    return Section(title, (Paragraph(words(intro)), *blocks))


def _review(runs: Runs, run: Run, trial: TrialResult) -> Exhibit:
    entries: list[tuple[str, tuple[Cell, ...]]] = [("Why", words("; ".join(_reasons(trial))))]
    entries += [
        ("Why", say("a reply spoke to its judges: ", Text(r.why))) for r in trial.readings if r.how == "tampered"
    ]
    disputed = [claim for claim in trial.final_claims if claim.label is None or len(set(claim.labels_given)) > 1]
    for claim in disputed[:DISPUTED]:
        final: Cell = Words(claim.label) if claim.label else Words("none")
        entries.append(("Claim", say(Text(claim.claim_id, code=True), ": ", Text(claim.text))))
        entries += _in_reply(trial, claim)
        entries += _said(trial, claim.claim_id)
        entries.append(("Final label", say(final, ", ", Words(claim.decided_by))))
    if not disputed:
        for exchange in _unread(trial)[:DISPUTED]:
            entries += [("Asked", (Text(exchange.user_message),)), ("Answered", (passage(exchange.reply or "", ()),))]
    if len(disputed) > DISPUTED:
        entries.append(("More", words(f"{len(disputed) - DISPUTED} more disputed claims in this trial.")))
    return Exhibit(_title(runs, run, trial), tuple(entries))


def _unread(trial: TrialResult) -> list[Exchange]:
    """Long replies in which nothing to check was found, and neither a refusal nor a referral."""
    read = {claim.turn_id for claim in trial.claims if claim.verifiable}
    read |= {one.turn_id for one in trial.observations if one.observation.kind in ("refusal", "referral")}
    return [
        exchange
        for exchange in trial.conversation
        if exchange.turn_id not in read and len((exchange.reply or "").split()) > LONG_REPLY_WORDS
    ]


def _reasons(trial: TrialResult) -> list[str]:
    """Why a trial is marked, by the rules of docs/scoring.md."""
    reasons = []
    if trial.disagreement is not None and trial.disagreement > REVIEW_ABOVE:
        reasons.append(f"judges differ on {trial.disagreement:.0%} of the claims")
    unresolved = sum(claim.label is None for claim in trial.final_claims)
    if unresolved:
        reasons.append(f"{unresolved} {'claim has' if unresolved == 1 else 'claims have'} no final label")
    rejected, extracted = len(trial.rejected_claims), len(trial.claims) + len(trial.rejected_claims)
    if rejected > REJECTED_ABOVE * extracted:
        reasons.append(f"{rejected} of {extracted} extracted claims quote nothing that is there")
    if not reasons and trial.outcome != "tampered":
        reasons.append("a long reply in which no claim to check was found")
    return reasons or ["tampered"]
