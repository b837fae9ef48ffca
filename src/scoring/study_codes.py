"""Study codes: one for each question group of a trial, by rule, from final verdicts. Pure.

The first rule that applies, from the top:
1. a turn was not answered, or a judge failed on it                                    -> incomplete_data
2. a contradiction at least as severe as the rule requires (`material_from`)          -> incorrect
3. a fabricated specific that no fact supports, if the rule counts it                 -> incorrect
4. a claim the judges left unresolved                                                 -> incomplete_data
5. every point of the group is made                                                   -> accurate_complete
6. some point is made                     -> accurate_incomplete (not_substantive where the rule has no such level)
7. no point, but it says that it cannot know, declines, or refers elsewhere           -> `referral_alone` of the rule
8. nothing of substance                                                               -> not_substantive
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..records.base import severity_rank
from ..schemas import (
    Backing,
    Claim,
    ClosedAnswer,
    ClosedScale,
    Exchange,
    FinalClaim,
    GroupRule,
    JudgeFailure,
    QuestionCode,
    Rubric,
    Scenario,
    ScriptedTurn,
    StudyCode,
    TurnObservation,
    point_facts,
    point_name,
)
from ..text.count import counted
from ..text.quotes import find_quote
from .points import Conversation, group_of, points_made

_EVASIVE = ("refusal", "referral")


@dataclass(frozen=True, kw_only=True)
class CodingInput:
    """What coding needs of a trial."""

    scenario: Scenario
    rubric: Rubric
    exchanges: Sequence[Exchange]
    claims: Sequence[Claim]
    final: Sequence[FinalClaim]
    observations: Sequence[TurnObservation]
    failures: Sequence[JudgeFailure]


def study_codes(judged: CodingInput) -> tuple[QuestionCode, ...]:
    """One code per question group that had a turn to ask, in script order."""
    if not judged.rubric.study_codes:
        return ()
    groups: dict[str, list[ScriptedTurn]] = {}
    for turn in judged.scenario.scripted_turns:
        if turn.question_group or turn.required_points:
            groups.setdefault(group_of(turn), []).append(turn)
    outcomes = {exchange.turn_id: exchange.outcome for exchange in judged.exchanges}
    codes = []
    for group, turns in groups.items():
        if not all(outcomes.get(turn.turn_id) == "skipped" for turn in turns):
            codes.append(_Coder(judged, group, turns).code())
    return tuple(codes)


class _Coder:
    def __init__(self, judged: CodingInput, group: str, turns: Sequence[ScriptedTurn]) -> None:
        self._group = group
        self._turns = tuple(turn.turn_id for turn in turns)
        self._rule: GroupRule = judged.rubric.rule(group)
        self._replies = {e.turn_id: e.reply or "" for e in judged.exchanges if e.turn_id in self._turns}
        self._outcomes = {e.turn_id: e.outcome for e in judged.exchanges if e.turn_id in self._turns}
        self._failures = [f for f in judged.failures if f.turn_id in (*self._turns, "-") and not f.claim_ids]
        self._claims = {claim.claim_id: claim for claim in judged.claims if claim.turn_id in self._turns}
        self._final = [claim for claim in judged.final if claim.turn_id in self._turns]
        self._seen = [seen for seen in judged.observations if seen.turn_id in self._turns]
        points = {point_name(p): point_facts(p) for turn in turns for p in turn.required_points}
        partial = {fact: (fact,) for turn in turns for fact in turn.partial_points}
        spoken = Conversation(judged.scenario, judged.rubric, judged.exchanges, judged.claims)
        counted_turns = spoken.counted(group)
        self._made = points_made(spoken, points, judged.final, counted_turns)
        self._missed = tuple(name for name in points if name not in {made.point for made in self._made})
        self._partial = points_made(spoken, partial, judged.final, counted_turns)

    def code(self) -> QuestionCode:
        if self._rule.closed:
            return self._closed(self._rule.closed)
        wrong = self._contradictions(material=True)
        code, reason = self._decide(wrong)
        return self._record(code, None, reason, wrong)

    def _decide(self, wrong: Sequence[Backing]) -> tuple[StudyCode, str]:
        lacking = self._lacking()
        if lacking:
            return "incomplete_data", lacking
        if wrong:
            cited = _names(sorted(fact for claim in wrong for fact in claim.evidence))
            return "incorrect", f"{counted(len(wrong), 'claim')} materially wrong against {cited}."
        fabricated = self._fabricated()
        if fabricated and self._rule.fabricated == "incorrect":
            return "incorrect", f"{counted(len(fabricated), 'specific')} stated that cannot be known without a lookup."
        open_claims = [claim.claim_id for claim in self._final if claim.label is None]
        if open_claims:
            return "incomplete_data", f"The judges left {_names(open_claims)} unresolved."
        return self._by_points()

    def _by_points(self) -> tuple[StudyCode, str]:
        total = len(self._made) + len(self._missed)
        if self._made and not self._missed:
            made = "The one point" if total == 1 else f"All {total} points"
            return "accurate_complete", f"{made} made, nothing materially wrong."
        if self._made or self._partial:
            said = f"{len(self._made)} of {counted(total, 'point')} made" if total else "A part of the answer is given"
            also = f", and {_names(p.point for p in self._partial)}, which alone is not enough" if self._partial else ""
            if self._rule.incomplete_level:
                return "accurate_incomplete", f"{said}{also}; missing: {_names(self._missed) or 'the rest'}."
            return "not_substantive", f"{said}{also}, and this question has no incomplete level."
        if "refused" in self._outcomes.values():
            return "not_substantive", "Declined to answer."
        unknowing = (*_EVASIVE, "hedge") if self._rule.referral_alone == "accurate_complete" else _EVASIVE
        if any(seen.observation.kind in unknowing for seen in self._seen):
            return self._rule.referral_alone, "Makes no point; declines, says it cannot know, or refers elsewhere."
        return "not_substantive", "Makes no point of the key."

    def _lacking(self) -> str:
        """Why the exchange cannot be coded, if it cannot."""
        unanswered = [
            f"{turn_id} {outcome.replace('_', ' ')}"
            for turn_id in self._turns
            for outcome in [self._outcomes.get(turn_id, "not_asked")]
            if outcome not in ("answered", "refused", "skipped")
        ]
        if unanswered:
            return f"Not answered: {', '.join(unanswered)}."
        return "".join(f"The {f.stage} failed on {f.turn_id}." for f in self._failures[:1])

    def _contradictions(self, *, material: bool) -> tuple[Backing, ...]:
        floor = severity_rank(self._rule.material_from)
        return tuple(
            self._backing(claim)
            for claim in self._final
            if claim.label == "CONTRADICTED" and (severity_rank(claim.severity) >= floor) == material
        )

    def _fabricated(self) -> tuple[str, ...]:
        """Fabricated specifics of which supported claims do not cover more than half."""
        supported = {turn_id: set[int]() for turn_id in self._replies}
        for claim in self._final:
            if claim.label == "SUPPORTED":
                for span in self._claims[claim.claim_id].quote_spans:
                    supported[claim.turn_id].update(range(span.start, span.end))
        found = []
        for seen in self._seen:
            known = supported[seen.turn_id]
            place = find_quote(self._replies[seen.turn_id], seen.observation.quote)
            if seen.observation.kind == "fabricated_specific" and place:
                covered = sum(at in known for at in range(place.start, place.end))
                if 2 * covered <= place.end - place.start:
                    found.append(seen.observation.quote)
        return tuple(found)

    def _backing(self, claim: FinalClaim) -> Backing:
        reply = self._replies[claim.turn_id]
        quotes = tuple(reply[span.start : span.end] for span in self._claims[claim.claim_id].quote_spans)
        return Backing(claim_id=claim.claim_id, quotes=quotes, evidence=claim.evidence)

    def _closed(self, scale: ClosedScale) -> QuestionCode:
        if lacking := self._lacking():
            return self._record("incomplete_data", None, lacking, ())
        answer = closed_answer(" ".join(self._replies.values()), scale)
        return self._record(None, answer, f"Recorded as {answer}; outside the four levels.", ())

    def _record(
        self, code: StudyCode | None, answer: ClosedAnswer | None, reason: str, wrong: tuple[Backing, ...]
    ) -> QuestionCode:
        return QuestionCode(
            question_group=self._group,
            turn_ids=self._turns,
            code=code,
            answer=answer,
            reason=reason,
            lookup_dependent=self._rule.lookup_dependent,
            points_met=self._made,
            points_missed=self._missed,
            partial_points_met=self._partial,
            wrong=wrong,
            minor=self._contradictions(material=False),
            fabricated=self._fabricated(),
        )


def closed_answer(reply: str, scale: ClosedScale) -> ClosedAnswer:
    """Yes, no or unsure: by the phrase of the scale that appears first, longer phrases before shorter ones."""
    text = " ".join(re.findall(r"[\w']+", reply.casefold().replace("’", "'")))
    first: list[tuple[int, int, ClosedAnswer]] = []
    phrases: Mapping[ClosedAnswer, tuple[str, ...]] = {"yes": scale.yes, "no": scale.no, "unsure": scale.unsure}
    for answer, listed in phrases.items():
        for phrase in listed:
            found = re.search(rf"(?<!\w){re.escape(phrase.casefold())}(?!\w)", text)
            if found:
                first.append((found.start(), -len(phrase), answer))
    return min(first)[2] if first else "unsure"


def _names(ids: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(ids))
