"""Which study codes of a trial hang on verdicts that the judges disagreed on or left open, and what else they could be.

A verdict is split if the verifiers gave a claim different labels, or if the claim has no final label. What the code
could be if such verdicts fell another way is found from the recorded points and contradictions, without coding the
answer again. Where that cannot be told, the wider answer is taken: a point counts as open if any of its claims is
split, and a missed point counts as possible if a verdict on a split claim supports its fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..records.base import severity_rank
from ..schemas import FinalClaim, GroupRule, QuestionCode, RunPlan, TrialResult, Verdict
from ..store.projection import projection
from .missing import NOT_CODED

COMPLETE, INCORRECT, OTHER = "accurate_complete", "incorrect", "accurate_incomplete"
"""`OTHER` stands for any code that is neither of the first two."""


_decode = projection(
    TrialResult,
    {
        "claims": "claim_id turn_id same_as",
        "verdicts": "claim_id label evidence severity",
        "study_codes": "question_group turn_ids code points_missed",
        "study_codes.points_met.claims": "claim_id",
        "study_codes.wrong": "claim_id",
    },
)


class SplitCode(NamedTuple):
    """A question whose code hangs on a split verdict."""

    group: str
    possible: tuple[str, ...]
    """The codes that it could have, its own first if it has one; `OTHER` for all but complete and incorrect."""


@dataclass(frozen=True)
class Keys:
    """What the codes of a run rest on."""

    rules: Mapping[tuple[str, str], GroupRule]
    """By scenario and question group."""
    facts: Mapping[str, frozenset[str]]
    """By scenario: the ids of its answer key. Other ids are of background facts."""


NO_KEYS = Keys({}, {})


def keys_of(plan: RunPlan, rules: Mapping[tuple[str, str], GroupRule]) -> Keys:
    facts = {one.scenario.scenario_id: frozenset(one.scenario.answer_key.evidence_ids()) for one in plan.scenarios}
    return Keys(rules, facts)


def split_codes(line: TrialResult, payload: bytes, keys: Keys) -> tuple[SplitCode, ...]:
    """Questions of a trial with more than one possible code, or with none because a claim was left open.

    `payload` is the same trial in full. It is decoded only if a verdict is split: evidence takes long to decode.
    """
    split = {one.claim_id: one for one in line.final_claims if one.label is None or len(set(one.labels_given)) > 1}
    if not split:
        return ()
    full = _decode(payload)
    verdicts: dict[str, list[Verdict]] = {}
    for verdict in (one for listed in full.verdicts.values() for one in listed):
        if verdict.claim_id in split:
            verdicts.setdefault(verdict.claim_id, []).append(verdict)
    in_turns = {name: (claim.turn_id, claim) for name, claim in split.items()}
    for again in full.claims:
        if again.same_as in split:  # it has the verdicts of the claim that says the same
            in_turns[again.claim_id] = (again.turn_id or "", split[again.same_as])
            verdicts[again.claim_id] = verdicts.get(again.same_as, [])
    found = []
    for code in full.study_codes:
        if code.code and (line.scenario_id, code.question_group) in keys.rules:
            possible = _Question(line, code, in_turns, verdicts, keys).possible()
            if len(possible) > 1 or (possible and code.code == NOT_CODED):
                found.append(SplitCode(code.question_group, possible))
    return tuple(found)


class _Question:
    def __init__(
        self,
        line: TrialResult,
        code: QuestionCode,
        split: Mapping[str, tuple[str, FinalClaim]],
        verdicts: Mapping[str, list[Verdict]],
        keys: Keys,
    ) -> None:
        self._code = code
        self._split = {name: claim for name, (turn_id, claim) in split.items() if turn_id in code.turn_ids}
        self._verdicts = verdicts
        self._rule = keys.rules[line.scenario_id, code.question_group]
        self._facts = keys.facts[line.scenario_id]
        self._judged = line.outcome == "scored"
        self._unjudged = any(len(claim.labels_given) < 2 for claim in self._split.values())
        """Whether a claim lacks verdicts: it could have got any label, about any fact."""

    def possible(self) -> tuple[str, ...]:
        """Nothing if no split verdict decides the code."""
        code = self._code
        unsettled = any(claim.label is None for claim in self._split.values())
        if not self._split or (code.code == NOT_CODED and not (unsettled and self._judged)):
            return ()
        surely_wrong = [one for one in code.wrong if one.claim_id not in self._split]
        if surely_wrong or (code.code == INCORRECT and not code.wrong):
            return ()
        now = code.code if code.code in (COMPLETE, INCORRECT) else OTHER
        could = [
            *([now] if code.code != NOT_CODED else []),
            *([COMPLETE] if self._may_be_complete() else []),
            *([INCORRECT] if self._may_be_wrong() else []),
            *([OTHER] if self._may_fall_short() else []),
        ]
        return tuple(dict.fromkeys(could))

    def _may_be_complete(self) -> bool:
        """Whether every missed point could be made by a split claim. A code that points do not decide stays."""
        code = self._code
        if not code.points_missed:
            return bool(code.points_met) and code.code in (INCORRECT, NOT_CODED)
        cited = {
            fact
            for name in self._split
            for verdict in self._verdicts.get(name, ())
            if verdict.label == "SUPPORTED"
            for fact in verdict.evidence
        }
        return self._unjudged or all(cited.intersection(point.split("|")) for point in code.points_missed)

    def _may_fall_short(self) -> bool:
        """Whether some point is missed, or would be without its split claims."""
        backing = (claim.claim_id for point in self._code.points_met for claim in point.claims)
        return bool(self._code.points_missed) or any(name in self._split for name in backing)

    def _may_be_wrong(self) -> bool:
        return self._unjudged or any(
            self._is_grave(verdict) for name in self._split for verdict in self._verdicts.get(name, ())
        )

    def _is_grave(self, verdict: Verdict) -> bool:
        """Whether the contradiction that this verdict saw would make the answer incorrect."""
        if verdict.label != "CONTRADICTED":
            return False
        floors = [self._rule.material_from]
        if not self._facts.intersection(verdict.evidence):
            floors.append(self._rule.background_from)
        excused = bool(verdict.evidence) and set(self._rule.not_material).issuperset(verdict.evidence)
        return not excused and severity_rank(verdict.severity) >= max(map(severity_rank, floors))
