"""Two judgings of the same transcripts, claim by claim: which labels changed, and what each side said.

Claims are matched within a turn by the words they quote: each claim is matched with the claim of the other run whose
quotes overlap it most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from ... import storage
from ...errors import InputError
from ...schemas import Claim, FinalClaim, TrialResult


@dataclass(frozen=True)
class Side:
    """What one run concluded about a claim."""

    text: str
    label: str | None
    evidence: tuple[str, ...]
    reasons: tuple[str, ...]
    """One per judge."""


@dataclass(frozen=True)
class Change:
    trial_id: str
    turn_id: str
    quote: str
    before: Side
    after: Side


class LabelChange(NamedTuple):
    first: str | None
    second: str | None


class CodeChange(NamedTuple):
    question_group: str
    first: str
    second: str


@dataclass
class JudgesCompared:
    trials: int = 0
    same: int = 0
    changed: list[Change] = field(default_factory=list)
    moves: Counter[LabelChange] = field(default_factory=Counter)
    """Labels in the first and the second run, over matched claims."""
    gone: int = 0
    """Claims of the first run that match no claim of the second."""
    new: int = 0
    codes_same: int = 0
    codes_changed: Counter[CodeChange] = field(default_factory=Counter)


def same_transcripts(first: Path, second: Path) -> bool:
    """Whether one run judged the other's transcripts again, or both judged those of a third."""
    one, two = storage.read_manifest(first), storage.read_manifest(second)
    names = {one.run_id, *((one.transcripts.run_id,) if one.transcripts else ())}
    return bool(two.transcripts and two.transcripts.run_id in names) or bool(
        one.transcripts and one.transcripts.run_id == two.run_id
    )


def compare_judges(first: Path, second: Path) -> JudgesCompared:
    """Compare two judgings claim by claim; InputError if their transcripts differ."""
    found = JudgesCompared()
    for one, two in zip_longest(_results(first), _results(second)):
        if one is None or two is None or not _same_replies(one, two):
            trial = one or two
            raise InputError(
                f"{first} and {second} have different transcripts (first at trial {trial.trial_id if trial else '?'}). "
                "Judges can only be compared on the same transcripts; make the second run with `medicare-eval rejudge`."
            )
        found.trials += 1
        _compare_claims(found, one, two)
        _compare_codes(found, one, two)
    return found


def _results(run: Path) -> storage.StoredResults:
    return storage.StoredResults(run, storage.read_manifest(run))


def _same_replies(one: TrialResult, two: TrialResult) -> bool:
    return one.trial_id == two.trial_id and [(e.turn_id, e.reply) for e in one.conversation] == [
        (e.turn_id, e.reply) for e in two.conversation
    ]


def _compare_claims(found: JudgesCompared, one: TrialResult, two: TrialResult) -> None:
    spans = {claim.claim_id: claim for claim in two.claims}
    left = {claim.claim_id: claim for claim in two.final_claims}
    before = {claim.claim_id: claim for claim in one.claims}
    for final in one.final_claims:
        match = _closest(before[final.claim_id], [spans[name] for name in left])
        if match is None:
            found.gone += 1
            continue
        other = left.pop(match.claim_id)
        found.moves[LabelChange(final.label, other.label)] += 1
        if final.label == other.label:
            found.same += 1
        else:
            quote = _quote(one, before[final.claim_id])
            found.changed.append(Change(one.trial_id, final.turn_id, quote, _side(one, final), _side(two, other)))
    found.new += len(left)


def _closest(claim: Claim, others: Sequence[Claim]) -> Claim | None:
    def overlap(other: Claim) -> int:
        return sum(
            max(0, min(a.end, b.end) - max(a.start, b.start)) for a in claim.quote_spans for b in other.quote_spans
        )

    there = [other for other in others if other.turn_id == claim.turn_id and overlap(other)]
    return max(there, key=lambda other: (other.text == claim.text, overlap(other)), default=None)


def _quote(result: TrialResult, claim: Claim) -> str:
    reply = next(exchange.reply or "" for exchange in result.conversation if exchange.turn_id == claim.turn_id)
    return " … ".join(reply[span.start : span.end] for span in claim.quote_spans)


def _side(result: TrialResult, final: FinalClaim) -> Side:
    reasons = tuple(
        f"{judge}: {verdict.label}, {verdict.notes}"
        for judge, verdicts in result.verdicts.items()
        for verdict in verdicts
        if verdict.claim_id == final.claim_id
    )
    return Side(final.text, final.label, final.evidence, reasons)


def _compare_codes(found: JudgesCompared, one: TrialResult, two: TrialResult) -> None:
    after = {code.question_group: code.code for code in two.study_codes}
    for code in one.study_codes:
        if code.code is None:
            continue
        other = after.get(code.question_group)
        if other == code.code:
            found.codes_same += 1
        else:
            found.codes_changed[CodeChange(code.question_group, code.code, str(other))] += 1
