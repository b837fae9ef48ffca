"""Study codes: one for each question group of a trial, by rule, from final verdicts. Pure.

The first rule that applies, from the top:
1. a turn was not answered, or a judge failed on it                                    -> incomplete_data
2. a contradiction as severe as the rule requires, unless it is about a fact that
   does not bear on this decision (`material_from`, `not_material`)                   -> incorrect
3. a fabricated specific that no fact supports, if the rule always counts it          -> incorrect
4. a claim the judges left unresolved, if its label could change the code             -> incomplete_data
5. such a specific, if the rule counts it and not every point is made                 -> incorrect
6. points are made, but only by claims that sound unsure, if the rule says so         -> `hedged` of the rule
7. every point of the group is made                                                   -> accurate_complete
   7a. in a lookup group, what was looked up is supported by the page it cites        -> accurate_complete
   7b. in a lookup group, nobody could check what was looked up                       -> incomplete_data
8. some point is made                     -> accurate_incomplete (not_substantive where the rule has no such level)
9. no point, but it says that it cannot know, declines, or refers elsewhere           -> `referral_alone` of the rule
10. nothing of substance                                                              -> not_substantive

The points are those of the group's turns. Where the rule has points of the published study (`study_points`), the code
goes by these, and the turns' own points give a second code by the same steps (`QuestionCode.own`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..records.base import severity_rank
from ..records.citation import INVENTED, CheckedCitation, CitationOutcome
from ..schemas import (
    Backing,
    ClosedAnswer,
    ClosedScale,
    FinalClaim,
    GroupRule,
    JudgeFailure,
    LookedUp,
    MadePoint,
    OwnPoints,
    QuestionCode,
    ScriptedTurn,
    StudyCode,
    TurnCitation,
    TurnObservation,
    point_facts,
    point_name,
)
from ..text.count import counted
from ..text.quotes import find_quote
from .points import AskedConversation, group_of, points_made

_EVASIVE = ("refusal", "referral")
LookUp = Literal["none", "search", "person"]
"""`search`: the web, and its answers cite pages; so may those of a chat app. `person`: somebody on the phone, who has
look-up tools and cites nothing."""


@dataclass(frozen=True, kw_only=True)
class CodingInput(AskedConversation):
    """What coding needs of a trial."""

    final: Sequence[FinalClaim]
    observations: Sequence[TurnObservation]
    failures: Sequence[JudgeFailure]
    citations: Sequence[TurnCitation] = ()
    look_up: LookUp = "none"
    """What the target could look things up with."""


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


_Decision = tuple[StudyCode, str]
"""A code and its reason."""
_NamedPoint = tuple[str, tuple[str, ...]]
"""A point, by what a reason calls it, and the facts of the key that make it."""


@dataclass(frozen=True)
class _Points:
    """What an answer says of one set of points."""

    made: tuple[MadePoint, ...]
    missed: tuple[str, ...]
    partial: tuple[MadePoint, ...]
    words: Mapping[str, str]
    """Point to what a reason calls it."""

    @property
    def total(self) -> int:
        return len(self.made) + len(self.missed)

    @property
    def complete(self) -> bool:
        return bool(self.made) and not self.missed

    @property
    def missing(self) -> str:
        listed = [self.words[point] for point in self.missed]
        return ("; " if any("," in one for one in listed) else ", ").join(listed)


_Source = Literal["none", "supported", "unchecked"]


def _source(outcomes: Set[CitationOutcome], look_up: LookUp) -> _Source:
    """What a statement with these outcomes of citations rests on."""
    if outcomes & INVENTED or look_up == "none":
        return "none"
    if "supported" in outcomes:
        return "supported"
    if "not_supported" in outcomes:
        return "none"
    return "unchecked" if outcomes or look_up == "person" else "none"


def _is_at(citation: CheckedCitation, start: int, end: int) -> bool:
    """Whether a citation is about this part of a reply."""
    return citation.start is not None and citation.end is not None and citation.start < end and start < citation.end


def _by_look_up(found: Sequence[LookedUp]) -> _Decision:
    """The code of a lookup question whose answer was looked up, and is not in the key."""
    what = counted(len(found), "specific")
    if all(one.checked for one in found):
        return "accurate_complete", f"Looked up: {what}, supported by the pages cited."
    return "incomplete_data", f"Looked up: {what}, and nobody has checked the source. A person must."


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
        self._unsure = {claim.claim_id for claim in judged.claims if claim.confidence == "low"}
        self._verbatim = {claim.claim_id for claim in judged.claims if claim.verbatim}
        self._all_final = judged.final
        self._look_up = judged.look_up
        self._citations = [one for one in judged.citations if one.turn_id in self._turns]
        self._spoken = judged
        partial = [fact for turn in turns for fact in turn.partial_points]
        study_partial = self._spoken.key_ids(self._rule.study_partial)
        listed = {point_name(p): point_facts(p) for turn in turns for p in turn.required_points}
        own = {name: (name, facts) for name, facts in listed.items()}
        if self._rule.study_points:
            self._points = self._look_for(self._study_points(), study_partial)
            self._own: _Points | None = self._look_for(own, partial)
        else:
            self._points = self._look_for(own, (*partial, *study_partial))
            self._own = None

    def _study_points(self) -> dict[str, _NamedPoint]:
        """The study's points, named by the facts of the key that make them."""
        points = {}
        for point in self._rule.study_points:
            facts = self._spoken.key_ids(point.any_of)
            if facts:  # a point whose figures are not published is asked of nobody
                points["|".join(facts)] = point.name, facts
        return points

    def _look_for(self, points: Mapping[str, _NamedPoint], partial: Iterable[str]) -> _Points:
        turns = self._spoken.counted(self._group)
        listed = {name: facts for name, (_, facts) in points.items()}
        made = points_made(self._spoken, listed, self._all_final, turns)
        found = {one.point for one in made}
        return _Points(
            made=made,
            missed=tuple(name for name in points if name not in found),
            partial=points_made(self._spoken, {fact: (fact,) for fact in partial}, self._all_final, turns),
            words={name: words for name, (words, _) in points.items()},
        )

    def code(self) -> QuestionCode:
        if self._rule.closed:
            return self._closed(self._rule.closed)
        code, reason = self._decide(self._points)
        return self._record(code, None, reason, self._contradictions(material=True))

    def _decide(self, points: _Points) -> _Decision:
        lacking = self._lacking()
        if lacking:
            return "incomplete_data", lacking
        wrong = self._contradictions(material=True)
        if wrong:
            cited = _names(sorted(fact for claim in wrong for fact in claim.evidence))
            return "incorrect", f"{counted(len(wrong), 'claim')} materially wrong against {cited}."
        fabricated = self._fabricated()
        guessed = f"{counted(len(fabricated), 'specific')} stated that cannot be known without a lookup"
        if fabricated and self._rule.fabricated == "incorrect":
            return "incorrect", f"{guessed}."
        open_claims = [claim.claim_id for claim in self._final if self._could_change(claim, points)]
        if open_claims:
            return "incomplete_data", f"The judges left {_names(open_claims)} unresolved."
        if fabricated and self._rule.fabricated == "incorrect_unless_complete" and not points.complete:
            return "incorrect", f"{guessed}, and the question is not fully answered."
        return self._by_points(points)

    @staticmethod
    def _could_change(claim: FinalClaim, points: _Points) -> bool:
        """Whether the code depends on how an open claim is settled, as far as the labels it was given show."""
        if claim.label is not None:
            return False
        given = set(claim.labels_given)
        return len(given) < 2 or "CONTRADICTED" in given or ("SUPPORTED" in given and not points.complete)

    def _by_points(self, points: _Points) -> _Decision:
        if points.made and self._rule.hedged != "counts" and self._sounds_unsure(points.made):
            return self._unsure_answer(points, self._rule.hedged)
        if points.complete:
            made = "The one point" if points.total == 1 else f"All {points.total} points"
            return "accurate_complete", f"{made} made, nothing materially wrong."
        if self._rule.lookup_dependent and (looked_up := self._looked_up()):
            return _by_look_up(looked_up)
        if points.made or points.partial:
            return self._incomplete(points)
        return self._without_points()

    def _without_points(self) -> _Decision:
        if "refused" in self._outcomes.values():
            return "not_substantive", "Declined to answer."
        unknowing = (*_EVASIVE, "hedge") if self._rule.referral_alone == "accurate_complete" else _EVASIVE
        if any(seen.observation.kind in unknowing for seen in self._seen):
            reason = "Makes no point; declines, says it cannot know, or refers elsewhere."
            return self._rule.referral_alone, reason
        return "not_substantive", "Makes no point of the key."

    def _incomplete(self, points: _Points) -> _Decision:
        said = f"{len(points.made)} of {counted(points.total, 'point')} made"
        said = said if points.total else "A part of the answer is given"
        also = f", and {_names(p.point for p in points.partial)}, which alone is not enough" if points.partial else ""
        if self._rule.incomplete_level:
            return "accurate_incomplete", f"{said}{also}; missing: {points.missing or 'the rest'}."
        return "not_substantive", f"{said}{also}, and this question has no incomplete level."

    def _sounds_unsure(self, made: Iterable[MadePoint]) -> bool:
        claims = {claim.claim_id for point in made for claim in point.claims}
        # A passage that code took over word for word has no confidence of its own.
        return (claims - self._verbatim or claims) <= self._unsure

    def _unsure_answer(self, points: _Points, hedged: StudyCode) -> _Decision:
        said = f"{len(points.made)} of {counted(points.total, 'point')} made, but only by claims that sound unsure"
        if points.partial and not self._sounds_unsure(points.partial):
            also = f"; {_names(p.point for p in points.partial)} is said plainly, which alone is not enough"
            return "accurate_incomplete", f"{said}{also}."
        return hedged, f"{said}."

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
        found = []
        for claim in self._final:
            if claim.label == "CONTRADICTED":
                grave = severity_rank(claim.severity) >= self._floor(claim)
                excused = grave and self._bears_on_nothing(claim)
                if (grave and not excused) == material:
                    found.append(self._backing(claim, why="not_material" if excused else None))
        return tuple(found)

    def _floor(self, claim: FinalClaim) -> int:
        """How severe a contradiction must be to count: more, if only background facts speak against the claim."""
        about_the_key = self._spoken.scenario.answer_key.evidence_ids().intersection(claim.evidence)
        needed = (
            (self._rule.material_from,) if about_the_key else (self._rule.material_from, self._rule.background_from)
        )
        return max(map(severity_rank, needed))

    def _bears_on_nothing(self, claim: FinalClaim) -> bool:
        """Whether the rule says of everything that it goes against that it does not bear on this decision."""
        listed = {*self._rule.not_material, *self._spoken.key_ids(self._rule.not_material)}
        return bool(claim.evidence) and listed.issuperset(claim.evidence)

    def _fabricated(self) -> tuple[str, ...]:
        """Specifics that the key does not support and that have no source."""
        return tuple(quote for quote, source in self._specifics if source == "none")

    def _looked_up(self) -> tuple[LookedUp, ...]:
        """Specifics that the key does not support and that have a source."""
        found = ((quote, source) for quote, source in self._specifics if source != "none")
        return tuple(LookedUp(quote=quote, checked=source == "supported") for quote, source in found)

    def _source_of(self, turn_id: str, start: int, end: int) -> _Source:
        """What a specific at this place of a reply rests on. Every claim in it that the key does not support counts."""
        cited = [one.citation for one in self._citations if one.turn_id == turn_id]
        at_place = {one.outcome for one in cited if _is_at(one, start, end)}
        supported = {claim.claim_id for claim in self._final if claim.label == "SUPPORTED"}
        parts = [
            at_place | {one.outcome for one in cited if one.claim_id == claim.claim_id}
            for claim in self._claims.values()
            if claim.turn_id == turn_id
            and claim.claim_id not in supported
            and any(span.start < end and start < span.end for span in claim.quote_spans)
        ]
        sources = [_source(outcomes, self._look_up) for outcomes in parts or [at_place]]
        return next((source for source in ("none", "unchecked") if source in sources), "supported")

    @cached_property
    def _specifics(self) -> tuple[tuple[str, _Source], ...]:
        """Fabricated specifics of which supported claims do not cover more than half, with what they rest on."""
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
                    source = self._source_of(seen.turn_id, place.start, place.end)
                    found.append((seen.observation.quote, source))
        return tuple(found)

    def _backing(self, claim: FinalClaim, *, why: Literal["not_material"] | None) -> Backing:
        reply = self._replies[claim.turn_id]
        quotes = tuple(reply[span.start : span.end] for span in self._claims[claim.claim_id].quote_spans)
        return Backing(claim_id=claim.claim_id, quotes=quotes, evidence=claim.evidence, why=why)

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
            points_met=self._points.made,
            points_missed=self._points.missed,
            partial_points_met=self._points.partial,
            wrong=wrong,
            minor=self._contradictions(material=False),
            fabricated=self._fabricated(),
            looked_up=self._looked_up(),
            own=self._by_own_points(),
        )

    def _by_own_points(self) -> OwnPoints | None:
        if self._own is None:
            return None
        code, _ = self._decide(self._own)
        return OwnPoints(code=code, points_met=self._own.made, points_missed=self._own.missed)


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
