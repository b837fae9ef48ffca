"""Scenarios and their answer keys (spec 5)."""

from __future__ import annotations

import re
from datetime import date
from typing import Literal, Self

from pydantic import Field, model_validator

from .base import FactId, Ident, Line, Phrase, Record, Scalar, Text

SLOT = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


class Persona(Record):
    """Who is asking. Personas are invented; `fictional` says so in the data."""

    fictional: bool = True
    description: str = Field("", max_length=2_000)
    name: Line | None = None
    age: int | None = Field(None, ge=0, le=130)
    city: Line | None = None
    state: Line | None = None
    zip_code: Line | None = None
    county: Line | None = None
    language: Line | None = None
    monthly_income: float | None = Field(None, ge=0, le=1_000_000_000)
    household_size: int | None = Field(None, ge=1, le=30)
    coverage: Line | None = None
    attributes: dict[Ident, Scalar] = Field(default_factory=dict)
    """Anything else a turn's slot may name, as `{{persona.attributes.NAME}}`."""

    @model_validator(mode="after")
    def _is_invented(self) -> Self:
        if not self.fictional:
            raise ValueError("fictional must be true: a persona is never a real person")
        return self


class Condition(Record):
    """Ask a turn only if code finds (or does not find) one of these phrases in the last reply."""

    unless_last_reply_mentions: tuple[Phrase, ...] = ()
    if_last_reply_mentions: tuple[Phrase, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.unless_last_reply_mentions and not self.if_last_reply_mentions:
            raise ValueError("give unless_last_reply_mentions or if_last_reply_mentions at least one phrase")
        return self


class AnyOf(Record):
    """One required point that any of several facts meets."""

    any_of: tuple[FactId, ...] = Field(min_length=2)


RequiredPoint = FactId | AnyOf


def point_name(point: RequiredPoint) -> str:
    """How a required point is written in results: F2, or F3|F4 for an any-of group."""
    return point if isinstance(point, str) else "|".join(point.any_of)


def point_facts(point: RequiredPoint) -> tuple[str, ...]:
    return (point,) if isinstance(point, str) else point.any_of


class ScriptedTurn(Record):
    turn_id: Ident
    user_message: Text
    """The question as worded; `{{persona.city}}` and `{{knob.NAME}}` are slots, filled by code."""
    question_group: Ident | None = None
    required_points: tuple[RequiredPoint, ...] = ()
    condition: Condition | None = None


class VariationKnobs(Record):
    """What a seed may change. With no knobs every seed asks the same questions in the same order."""

    choices: dict[Ident, tuple[Line, ...]] = Field(default_factory=dict)
    """Knob name to its values; each trial draws one, and `{{knob.NAME}}` shows it."""
    shuffle: tuple[tuple[Ident, ...], ...] = ()
    """Groups of turn ids whose order within their own places may be drawn."""
    paraphrase: bool = False
    """Whether a questioner model may reword the turns when the user also asks for it."""

    @model_validator(mode="after")
    def _offers_a_choice(self) -> Self:
        for name, values in self.choices.items():
            if not values or len(set(values)) != len(values):
                raise ValueError(f"knob {name!r} needs one or more different values")
        return self


class CanonicalFact(Record):
    fact_id: FactId
    statement: Text
    rationale: str = Field("", max_length=20_000)
    source: Line
    severity_if_wrong: Literal["low", "medium", "high"]


class DisallowedClaim(Record):
    """A claim no answer may make, as judges see it: with an id that a verdict can cite."""

    claim_id: str
    statement: str


class AnswerKey(Record):
    canonical_facts: tuple[CanonicalFact, ...] = Field(min_length=1, max_length=500)
    required_points: tuple[RequiredPoint, ...] = Field(max_length=500)
    disallowed_claims: tuple[Line, ...] = Field((), max_length=500)

    def disallowed(self) -> tuple[DisallowedClaim, ...]:
        return tuple(
            DisallowedClaim(claim_id=f"D{n}", statement=statement)
            for n, statement in enumerate(self.disallowed_claims, 1)
        )

    def fact_ids(self) -> frozenset[str]:
        return frozenset(fact.fact_id for fact in self.canonical_facts)

    def evidence_ids(self) -> frozenset[str]:
        return self.fact_ids() | {claim.claim_id for claim in self.disallowed()}

    @model_validator(mode="after")
    def _names_each_fact_once(self) -> Self:
        _no_repeats("answer_key.canonical_facts fact_id", [fact.fact_id for fact in self.canonical_facts])
        return self


class Scenario(Record):
    scenario_id: Ident
    title: Line
    effective_date: date
    persona: Persona
    scripted_turns: tuple[ScriptedTurn, ...] = Field(min_length=1, max_length=100)
    variation_knobs: VariationKnobs
    answer_key: AnswerKey
    rubric_version: Line

    def all_required_points(self) -> tuple[RequiredPoint, ...]:
        """The scenario's points and its turns' own, each once."""
        points = [*self.answer_key.required_points]
        points += [point for turn in self.scripted_turns for point in turn.required_points]
        return tuple({point_name(point): point for point in points}.values())

    def slot_value(self, slot: str, knobs: dict[str, str]) -> str:
        """What stands for a slot; raises KeyError where the scenario gives nothing."""
        root, _, rest = slot.partition(".")
        if root == "knob":
            return knobs[rest]
        if root == "persona" and rest.startswith("attributes."):
            return str(self.persona.attributes[rest.removeprefix("attributes.")])
        if root == "persona" and rest in Persona.model_fields and rest not in ("attributes", "fictional"):
            value = getattr(self.persona, rest)
            if value not in (None, ""):
                return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        raise KeyError(slot)

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        turn_ids = [turn.turn_id for turn in self.scripted_turns]
        _no_repeats("scripted_turns turn_id", turn_ids)
        _known_points("answer_key.required_points", self.answer_key.required_points, self.answer_key.fact_ids())
        if self.scripted_turns[0].condition is not None:
            raise ValueError("scripted_turns[0].condition: the first turn has no earlier reply to look at")
        for turn in self.scripted_turns:
            _known_points(f"turn {turn.turn_id} required_points", turn.required_points, self.answer_key.fact_ids())
            self._check_slots(turn)
        for group in self.variation_knobs.shuffle:
            _no_repeats("variation_knobs.shuffle", list(group))
            for turn_id in group:
                if turn_id not in turn_ids:
                    raise ValueError(
                        f"variation_knobs.shuffle names turn {turn_id!r}; the turns are {', '.join(turn_ids)}"
                    )
                if any(turn.condition and turn.turn_id == turn_id for turn in self.scripted_turns):
                    raise ValueError(f"variation_knobs.shuffle names turn {turn_id!r}, whose condition needs its place")
        _no_repeats("variation_knobs.shuffle", [turn_id for group in self.variation_knobs.shuffle for turn_id in group])
        return self

    def _check_slots(self, turn: ScriptedTurn) -> None:
        knobs = {name: values[0] for name, values in self.variation_knobs.choices.items()}
        for slot in SLOT.findall(turn.user_message):
            try:
                self.slot_value(slot, knobs)
            except KeyError:
                raise ValueError(
                    f"turn {turn.turn_id} user_message: the slot {{{{{slot}}}}} names nothing; "
                    "use {{persona.FIELD}}, {{persona.attributes.NAME}} or {{knob.NAME}} with a value in this scenario"
                ) from None
        if "{{" in SLOT.sub("", turn.user_message) or "}}" in SLOT.sub("", turn.user_message):
            raise ValueError(f"turn {turn.turn_id} user_message: an opening or closing of a slot stands alone")


def _no_repeats(what: str, ids: list[str]) -> None:
    for name in ids:
        if ids.count(name) > 1:
            raise ValueError(f"{what} {name!r} stands more than once")


def _known_points(where: str, points: tuple[RequiredPoint, ...], known: frozenset[str]) -> None:
    _no_repeats(where, [point_name(point) for point in points])
    for point in points:
        for fact_id in point_facts(point):
            if fact_id not in known:
                raise ValueError(
                    f"{where} names {fact_id!r}, which is not a fact of this key ({', '.join(sorted(known))})"
                )
