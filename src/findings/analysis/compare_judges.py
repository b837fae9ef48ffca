"""Two judgings of the same transcripts, claim by claim: which labels changed, and what each side said.

Claims are matched within a turn by the words they quote: the claim of the other run whose quotes overlap most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from ... import storage
from ...errors import InputError
from ...schemas import Claim, FinalClaim, TrialResult
from ...store import hash_chain


@dataclass(frozen=True)
class Side:
    """One run's word on a claim."""

    text: str
    label: str | None
    evidence: tuple[str, ...]
    reasons: tuple[str, ...]
    """Of each of its judges."""


@dataclass(frozen=True)
class Change:
    trial_id: str
    turn_id: str
    quote: str
    before: Side
    after: Side


@dataclass
class JudgesCompared:
    trials: int = 0
    same: int = 0
    changed: list[Change] = field(default_factory=list)
    moves: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    """Label before and after, over matched claims."""
    gone: int = 0
    """Claims of the first run that the second has no match for."""
    new: int = 0
    codes_same: int = 0
    codes_changed: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Question group, code before, code after."""


def same_transcripts(first: Path, second: Path) -> bool:
    """Whether the second run judged the first one's transcripts again, or both those of a third."""
    one, two = storage.read_manifest(first), storage.read_manifest(second)
    names = {one.run_id, *((one.transcripts.run_id,) if one.transcripts else ())}
    return bool(two.transcripts and two.transcripts.run_id in names) or bool(
        one.transcripts and one.transcripts.run_id == two.run_id
    )


def compare_judges(first: Path, second: Path) -> JudgesCompared:
    found = JudgesCompared()
    for one, two in zip_longest(_results(first), _results(second)):
        if one is None or two is None or _said(one) != _said(two):
            named = one or two
            where = named.trial_id if named else "?"
            raise InputError(f"{second}: trial {where} is another transcript than in {first}: other answers.")
        found.trials += 1
        _compare_claims(found, one, two)
        _compare_codes(found, one, two)
    return found


def _results(folder: Path) -> Iterator[TrialResult]:
    for line in hash_chain.ChainReader(folder / storage.RESULTS, hash_chain.GENESIS):
        yield TrialResult.model_validate_json(line.payload)


def _said(result: TrialResult) -> tuple[str, list[tuple[str, str | None]]]:
    return result.trial_id, [(exchange.turn_id, exchange.reply) for exchange in result.conversation]


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
        found.moves[final.label, other.label] += 1
        if final.label == other.label:
            found.same += 1
        else:
            found.changed.append(
                Change(
                    one.trial_id,
                    final.turn_id,
                    _quote(one, before[final.claim_id]),
                    _side(one, final),
                    _side(two, other),
                )
            )
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
    said = [
        f"{judge}: {verdict.label}, {verdict.notes}"
        for judge, verdicts in result.verdicts.items()
        for verdict in verdicts
        if verdict.claim_id == final.claim_id
    ]
    return Side(final.text, final.label, final.evidence, tuple(said))


def _compare_codes(found: JudgesCompared, one: TrialResult, two: TrialResult) -> None:
    after = {code.question_group: code.code for code in two.study_codes}
    for code in one.study_codes:
        if code.code is None:
            continue
        other = after.get(code.question_group)
        if other == code.code:
            found.codes_same += 1
        else:
            found.codes_changed[code.question_group, code.code, str(other)] += 1
