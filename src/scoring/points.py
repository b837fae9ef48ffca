"""Whether an answer makes its required points. Decided by code, from supported claims taken together. Pure.

A label says whether a claim agrees with the key. A point says whether the answer conveyed it, which is another
question: a claim may agree with half of a fact, and two claims may make a point together. A point is made if supported
claims cite its fact and their quotes together state the figures that the fact's `tells` lists (by default, its amounts;
see `text.quantities.point_needs`). Claims count if they answer the question that requires the point; where the rubric
says so (`points_from`), the whole conversation counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..agents.ask import about
from ..schemas import (
    Backing,
    CanonicalFact,
    Claim,
    Exchange,
    FinalClaim,
    MadePoint,
    RequiredPoint,
    Rubric,
    Scenario,
    ScriptedTurn,
    TurnOutcome,
    Verdict,
    point_facts,
    point_name,
)
from ..text.quantities import conveys, point_needs


def group_of(turn: ScriptedTurn) -> str:
    return turn.question_group or turn.turn_id


@dataclass(frozen=True)
class AskedConversation:
    """What was asked and said, and under which key and rubric."""

    scenario: Scenario
    rubric: Rubric
    exchanges: Sequence[Exchange]
    claims: Sequence[Claim]
    _conveyed: dict[tuple[str, tuple[str, ...], tuple[str, ...]], bool] = field(
        default_factory=dict, kw_only=True, repr=False, compare=False
    )
    """Asked for every judge and for the final labels, mostly of the same claims."""

    @cached_property
    def facts(self) -> dict[str, CanonicalFact]:
        return {fact.fact_id: fact for fact in self.scenario.answer_key.canonical_facts}

    def key_ids(self, listed: Collection[str]) -> tuple[str, ...]:
        """The facts of the key that are meant by these ids of library facts, or by their own ids.

        A fact that only says that its figure is not published makes no point.
        """
        return tuple(
            fact.fact_id
            for fact in self.facts.values()
            if not fact.not_published
            and (fact.fact_id in listed or (fact.library is not None and fact.library in listed))
        )

    @cached_property
    def owed(self) -> tuple[RequiredPoint, ...]:
        """The points that completeness counts in this conversation."""
        outcomes = {one.turn_id: one.outcome for one in self.exchanges}
        unasked = {
            turn.turn_id for turn in self.scenario.scripted_turns if not _asked(turn, outcomes.get(turn.turn_id))
        }
        return owed_points(self.scenario, self.rubric, unasked)

    @cached_property
    def turn_ids(self) -> tuple[str, ...]:
        return tuple(turn.turn_id for turn in self.scenario.scripted_turns)

    @cached_property
    def _replies(self) -> dict[str | None, str]:
        return {one.turn_id: one.reply or "" for one in self.exchanges}

    def quotes(self, claim: Claim) -> tuple[str, ...]:
        reply = self._replies[claim.turn_id]
        return tuple(reply[span.start : span.end] for span in claim.quote_spans)

    def given(self, turns: Collection[str]) -> tuple[str, ...]:
        """What the person said up to the last of these turns, and who they are."""
        places = [place for place, one in enumerate(self.exchanges) if one.turn_id in turns]
        so_far = self.exchanges[: max(places, default=-1) + 1]
        asked = (one.user_message for one in so_far if one.outcome not in ("skipped", "not_asked"))
        return (*asked, *self._about)

    @cached_property
    def _about(self) -> tuple[str, ...]:
        return about(self.scenario.persona)

    def conveyed(self, fact: CanonicalFact, quotes: tuple[str, ...], given: tuple[str, ...]) -> bool:
        """Whether these words, which a judge found to agree with the fact, also state the figures its point needs."""
        if fact.figures_optional:
            return True
        asked = (fact.fact_id, quotes, given)
        if asked not in self._conveyed:
            needs = point_needs(fact.statement, fact.tells, given=given)
            self._conveyed[asked] = conveys(needs, fact.statement, quotes)
        return self._conveyed[asked]

    def counted(self, group: str) -> tuple[str, ...]:
        """The turns whose claims can make a point of this group."""
        if self.rubric.rule(group).points_from == "conversation":
            return self.turn_ids
        return tuple(turn.turn_id for turn in self.scenario.scripted_turns if group_of(turn) == group)


def _asked(turn: ScriptedTurn, outcome: TurnOutcome | None) -> bool:
    """Whether a turn was asked, or skipped because the reply before it had covered the topic."""
    if outcome == "skipped":
        return bool(turn.condition and turn.condition.unless_last_reply_mentions)
    return outcome not in (None, "not_asked")


def points_made(
    conversation: AskedConversation,
    points: Mapping[str, Sequence[str]],
    labels: Sequence[FinalClaim | Verdict],
    turns: Collection[str],
) -> tuple[MadePoint, ...]:
    """Those of the points (name to the facts that can make it) that supported claims of these turns make."""
    claims = {claim.claim_id: claim for claim in conversation.claims if claim.turn_id in turns}
    citing: dict[str, list[FinalClaim | Verdict]] = {}
    for one in labels:
        if one.label == "SUPPORTED" and one.claim_id in claims:
            for fact_id in dict.fromkeys(one.evidence):
                citing.setdefault(fact_id, []).append(one)
    given = conversation.given(turns)
    made = []
    for name, fact_ids in points.items():
        backing: dict[str, Backing] = {}
        for fact_id in fact_ids:
            cited_by = [(one, conversation.quotes(claims[one.claim_id])) for one in citing.get(fact_id, ())]
            quotes = tuple(quote for _, quoted in cited_by for quote in quoted)
            if cited_by and conversation.conveyed(conversation.facts[fact_id], quotes, given):
                for one, quoted in cited_by:
                    backing[one.claim_id] = Backing(claim_id=one.claim_id, quotes=quoted, evidence=one.evidence)
        if backing:
            made.append(MadePoint(point=name, claims=tuple(backing.values())))
    return tuple(made)


def owed_points(
    scenario: Scenario, rubric: Rubric, unasked: Collection[str] = frozenset()
) -> tuple[RequiredPoint, ...]:
    """The points that completeness counts: those that a question calls for which was asked and needs no lookup.

    A point of the key that no question of the script calls for is not owed: it belongs to a question of another script.
    If no question says what it calls for, all points of the key are owed.
    """
    owed: set[str] = set()
    for turn in scenario.scripted_turns:
        lookup = rubric.rule(group_of(turn)).lookup_dependent
        if not lookup and turn.turn_id not in unasked:
            owed.update(map(point_name, turn.required_points))
    points = scenario.all_required_points()
    if not any(turn.required_points for turn in scenario.scripted_turns):
        return points
    return tuple(point for point in points if point_name(point) in owed)


def missing_points(conversation: AskedConversation, labels: Sequence[FinalClaim | Verdict]) -> tuple[str, ...]:
    """Owed points that are not made where they are required; a point of no question may be made anywhere."""
    required_in: dict[str, list[str]] = {}
    for turn in conversation.scenario.scripted_turns:
        for point in turn.required_points:
            required_in.setdefault(point_name(point), []).append(group_of(turn))
    owed = {point_name(point): point_facts(point) for point in conversation.owed}
    wanted_in: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
    for name, facts in owed.items():
        asked_in = [] if conversation.rubric.points_from == "conversation" else required_in.get(name, [])
        for turns in [conversation.counted(group) for group in asked_in] or [conversation.turn_ids]:
            wanted_in.setdefault(turns, {})[name] = facts
    made = {
        one.point for turns, points in wanted_in.items() for one in points_made(conversation, points, labels, turns)
    }
    return tuple(name for name in owed if name not in made)
