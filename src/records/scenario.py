"""Scenarios and their answer keys (spec 5)."""

from __future__ import annotations

import re
from collections.abc import Sized
from datetime import date
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from .base import (
    FactId,
    Ident,
    Line,
    Phrase,
    Record,
    Scalar,
    Text,
)
from .facts import (
    Address,
    ConfirmedBy,
    CostIfWrong,
    Month,
    PlanKind,
    PlanYear,
)

SLOT = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
PLANNED_SLOTS = ("figure", "plan", "doctor", "place")
"""Roots of the slots that are filled when a run is planned. Persona and knob slots are filled for each trial."""
T = TypeVar("T")
Style = Literal["plain", "worried", "confused", "misinformed"]


class Persona(Record):
    """Who is asking: any fields with any values. Those below are the ones that lists and reports know.

    Whether they have the values that we expect is a house rule (`planning.house_rules`), not checked here. Personas
    are invented, and `fictional` says so in the data: that is checked.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue]

    fictional: bool = True
    description: JsonValue = ""
    name: JsonValue = None
    age: JsonValue = None
    city: JsonValue = None
    state: JsonValue = None
    zip_code: JsonValue = None
    county: JsonValue = None
    language: JsonValue = None
    monthly_income: Annotated[float | JsonValue, Field(union_mode="left_to_right")] = None
    household_size: JsonValue = None
    coverage: JsonValue = None
    attributes: JsonValue = Field(default_factory=dict)
    """Where our own scenarios put anything else that a slot names, as `{{persona.attributes.NAME}}`."""

    def shown(self, path: str) -> str:
        """What a slot shows for a field, or for one inside it (`household.pets`); raises KeyError if it has no text."""
        value: JsonValue = self.model_dump(exclude={"fictional"})
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return _as_text(value, path)

    @model_validator(mode="after")
    def _is_invented(self) -> Self:
        if not self.fictional:
            raise ValueError("fictional must be true: a persona is never a real person")
        return self


def _as_text(value: JsonValue, path: str) -> str:
    if isinstance(value, list) and value:
        return ", ".join(_as_text(one, path) for one in value)
    if value in (None, "") or isinstance(value, dict | list):
        raise KeyError(path)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


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
    """One required point that any one of several facts makes."""

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
    """What a complete answer to this turn says."""
    partial_points: tuple[FactId, ...] = ()
    """Facts that make an answer substantive but never complete."""
    background: tuple[FactId, ...] = ()
    """Facts that an answer may mention: checked if it does, never required."""
    misstates: tuple[Line, ...] = ()
    """Figures this turn gets wrong on purpose, as a misinformed person would."""
    condition: Condition | None = None

    @property
    def group(self) -> str:
        """The question group that it belongs to: a turn without one is its own group."""
        return self.question_group or self.turn_id


_Choices = dict[Ident, tuple[Line, ...]]
_Shuffle = tuple[tuple[Ident, ...], ...]
_CHOICES: TypeAdapter[_Choices] = TypeAdapter(_Choices)
_SHUFFLE: TypeAdapter[_Shuffle] = TypeAdapter(_Shuffle)


class VariationKnobs(Record):
    """What a seed may change. With no knobs every seed asks the same questions in the same order.

    Any knobs may be given. A text, or a list of different texts, is one more choice; what else we do not understand is
    kept and changes nothing.
    """

    choices: _Choices = Field(default_factory=dict)
    """Knob name to its values; each trial draws one, and `{{knob.NAME}}` shows it."""
    shuffle: _Shuffle = ()
    """Groups of turn ids whose order within their own places may be drawn."""
    paraphrase: bool = False
    """Whether a questioner model may reword the turns when the user also asks for it."""
    not_understood: dict[str, JsonValue] = Field(default_factory=dict, exclude_if=lambda kept: not kept)
    """Knobs as given that change nothing."""

    @model_validator(mode="before")
    @classmethod
    def _sorted_out(cls, given: Any) -> Any:
        return _sort_out(given) if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _offers_a_choice(self) -> Self:
        for name, values in self.choices.items():
            if not values or len(set(values)) != len(values):
                raise ValueError(f"knob {name!r} needs one or more different values")
        return self


def _sort_out(given: dict[str, Any]) -> dict[str, Any]:
    """The knobs as fields of `VariationKnobs`: those of the right type, plain choices, and the rest."""
    listed = _fitting(_CHOICES, given.get("choices"))
    choices: _Choices = listed or {}
    fields: dict[str, Any] = {"choices": choices}
    kept: dict[str, Any] = {}
    for name, value in given.items():
        if name == "not_understood" and isinstance(value, dict):
            kept |= value
        elif name == "paraphrase" and isinstance(value, bool):
            fields["paraphrase"] = value
        elif name == "shuffle" and (groups := _fitting(_SHUFFLE, value)) is not None:
            fields["shuffle"] = groups
        elif name == "choices" and listed is not None:
            continue
        elif name not in VariationKnobs.model_fields and name not in choices and (one := _plain_choice(name, value)):
            choices |= one
        else:
            kept[name] = value
    return {**fields, "not_understood": kept}


def _plain_choice(name: str, value: Any) -> _Choices | None:
    """A text, or a list of different texts, as a choice."""
    values = [value] if isinstance(value, str) else value
    found = _fitting(_CHOICES, {name: values})
    return found if found and found[name] and len(set(found[name])) == len(found[name]) else None


def _fitting(kind: TypeAdapter[T], value: Any) -> T | None:
    try:
        return kind.validate_python(value)
    except ValidationError:
        return None


def _is_none(value: object) -> bool:
    return value is None


def _is_false(value: object) -> bool:
    return value is False


def _is_empty(value: Sized) -> bool:
    return not len(value)


class Only(Record):
    """When a fact belongs to the key; empty: always."""

    plan_years: tuple[PlanYear, ...] = ()
    plan_kinds: tuple[PlanKind, ...] = ()


class CanonicalFact(Record):
    """One statement that answers are checked against, with its source.

    `{{plan_year}}`, `{{figure.NAME}}`, `{{plan.NAME}}`, `{{doctor.name}}` and `{{place.NAME}}` are filled when a run
    is planned. A fact that uses a figure is valid no longer than that figure.
    """

    fact_id: FactId
    statement: Text
    rationale: str = Field("", max_length=20_000)
    source: Line
    severity_if_wrong: Literal["low", "medium", "high"]
    address: Address | None = None
    locator: Line | None = None
    valid_from: date | None = None
    valid_until: date | None = None
    """The last day on which the statement is known to be true; None if no end is known."""
    confirmed_by: ConfirmedBy | None = None
    plan_year: PlanYear | None = None
    """Filled when a run is planned, for facts that differ by plan year."""
    tells: tuple[Line, ...] = ()
    """The figures of the statement that an answer must give to be credited. Empty: every amount in it."""
    only: Only = Only()
    library: Line | None = Field(default=None, exclude_if=_is_none)
    """The id of the library fact that this is; None if it is written out in the scenario."""
    figures_optional: bool = Field(default=False, exclude_if=_is_false)
    """Whether its point is made without any figure: those of the statement are only conditions, such as an age."""
    cost_if_wrong: CostIfWrong | None = Field(default=None, exclude_if=_is_none)
    """What acting on the opposite costs; None if nobody worked it out."""
    not_published: Month | None = Field(default=None, exclude_if=_is_none)
    """The month in which its figure is expected, if the statement says that it is not published yet."""

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Self:
        if self.valid_from and self.valid_until and self.valid_until < self.valid_from:
            raise ValueError("valid_until is before valid_from")
        return self


LibraryFactId = Annotated[
    str, StringConstraints(pattern=r"^B-(?:\{\{state\}\}|[a-z0-9]+)(?:-[a-z0-9]+)*$", max_length=80)
]


class DisallowedClaim(Record):
    """A claim no answer may make, as judges see it: with an id that a verdict can cite."""

    claim_id: str
    statement: str


class AnswerKey(Record):
    canonical_facts: tuple[CanonicalFact, ...] = Field(max_length=500)
    """Facts that are written out. When a run is planned, the facts of the library join them."""
    library_facts: dict[FactId, LibraryFactId] = Field(default_factory=dict, max_length=500, exclude_if=_is_empty)
    """Fact id in this key to the id of a library fact. `B-{{state}}-NAME` is a fact of the persona's own state."""
    required_points: tuple[RequiredPoint, ...] = Field(max_length=500)
    disallowed_claims: tuple[Line, ...] = Field((), max_length=500)

    def disallowed(self) -> tuple[DisallowedClaim, ...]:
        return tuple(
            DisallowedClaim(claim_id=f"D{n}", statement=statement)
            for n, statement in enumerate(self.disallowed_claims, 1)
        )

    def fact_ids(self) -> frozenset[str]:
        return frozenset(fact.fact_id for fact in self.canonical_facts) | self.library_facts.keys()

    def evidence_ids(self) -> frozenset[str]:
        return self.fact_ids() | {claim.claim_id for claim in self.disallowed()}

    @model_validator(mode="after")
    def _names_each_fact_once(self) -> Self:
        if not self.canonical_facts and not self.library_facts:
            raise ValueError("canonical_facts or library_facts must hold at least one fact")
        _no_repeats("answer_key fact_id", [*(fact.fact_id for fact in self.canonical_facts), *self.library_facts])
        return self


class Variant(Record):
    """One version of a scenario, with its own words or its own shopper. Every variant is a separate trial."""

    variant_id: Ident
    style: Style | None = None
    persona: dict[Ident, Scalar] = Field(default_factory=dict)
    """Fields of the persona that differ."""
    plan: Ident | None = None
    doctor: Ident | None = None
    place: Ident | None = None
    turns: dict[Ident, Text] = Field(default_factory=dict)
    """Turn id to the words that replace the scenario's own."""
    misstates: dict[Ident, tuple[Line, ...]] = Field(default_factory=dict)


class Scenario(Record):
    scenario_id: Ident
    title: Line
    effective_date: date
    themes: tuple[Line, ...] = ()
    style: Style | None = None
    notes: str = Field("", max_length=4_000)
    """What the key leaves out, and why."""
    persona: Persona
    scripted_turns: tuple[ScriptedTurn, ...] = Field(min_length=1, max_length=100)
    variation_knobs: VariationKnobs
    answer_key: AnswerKey
    rubric_version: str = Field(max_length=1_000)
    """A rubric's name. A name that no rubric has is scored by the specification's own rubric (`planning.rubrics`)."""
    plan_file: Ident | None = None
    """Name of the file in `plans/` with the invented plans, doctors and places that the variants name."""
    variants: tuple[Variant, ...] = Field((), max_length=50)

    def all_required_points(self) -> tuple[RequiredPoint, ...]:
        """The scenario's points and its turns' own, each once."""
        points = [*self.answer_key.required_points]
        points += [point for turn in self.scripted_turns for point in turn.required_points]
        return tuple({point_name(point): point for point in points}.values())

    def slot_value(self, slot: str, knobs: dict[str, str]) -> str:
        """The value of a slot of a turn; raises KeyError if the scenario has none."""
        root, _, rest = slot.partition(".")
        if root == "knob":
            return knobs[rest]
        if root == "persona":
            return self.persona.shown(rest)
        raise KeyError(slot)

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        turn_ids = [turn.turn_id for turn in self.scripted_turns]
        _no_repeats("scripted_turns turn_id", turn_ids)
        known = self.answer_key.fact_ids()
        _known_points("answer_key.required_points", self.answer_key.required_points, known)
        if self.scripted_turns[0].condition is not None:
            raise ValueError("scripted_turns[0].condition: the first turn has no earlier reply to look at")
        for turn in self.scripted_turns:
            _known_points(f"turn {turn.turn_id} required_points", turn.required_points, known)
            _known_points(f"turn {turn.turn_id} partial_points", turn.partial_points, known)
            _known_points(f"turn {turn.turn_id} background", turn.background, known)
            self._check_slots(turn.turn_id, turn.user_message)
        self._check_variants(turn_ids)
        for group in self.variation_knobs.shuffle:
            _no_repeats("variation_knobs.shuffle", list(group))
            for turn_id in group:
                if turn_id not in turn_ids:
                    raise ValueError(
                        f"variation_knobs.shuffle names turn {turn_id!r}; the turns are {', '.join(turn_ids)}"
                    )
                if any(turn.condition and turn.turn_id == turn_id for turn in self.scripted_turns):
                    raise ValueError(
                        f"variation_knobs.shuffle names turn {turn_id!r}, whose condition depends on its place"
                    )
        _no_repeats("variation_knobs.shuffle", [turn_id for group in self.variation_knobs.shuffle for turn_id in group])
        return self

    def _check_variants(self, turn_ids: list[str]) -> None:
        _no_repeats("variants variant_id", [variant.variant_id for variant in self.variants])
        for variant in self.variants:
            where = f"variant {variant.variant_id}"
            for turn_id in (*variant.turns, *variant.misstates):
                if turn_id not in turn_ids:
                    raise ValueError(f"{where} names turn {turn_id!r}; the turns are {', '.join(turn_ids)}")
            for turn_id, text in variant.turns.items():
                self._check_slots(f"{turn_id} of {where}", text)
            if (variant.plan or variant.doctor or variant.place) and not self.plan_file:
                raise ValueError(f"{where} names a plan, doctor or place; plan_file must say where they are described")

    def _check_slots(self, turn_id: str, text: str) -> None:
        knobs = {name: values[0] for name, values in self.variation_knobs.choices.items()}
        for slot in SLOT.findall(text):
            if slot == "plan_year" or slot.partition(".")[0] in PLANNED_SLOTS:
                continue  # filled, or found missing, when a run is planned
            try:
                self.slot_value(slot, knobs)
            except KeyError:
                raise ValueError(
                    f"turn {turn_id} user_message: unknown slot {{{{{slot}}}}}. Use {{{{persona.FIELD}}}}, "
                    "{{persona.FIELD.INNER}} or {{knob.NAME}}, and give it a value in this scenario"
                ) from None
        if "{{" in SLOT.sub("", text) or "}}" in SLOT.sub("", text):
            raise ValueError(f"turn {turn_id} user_message: unbalanced {{{{ or }}}}")


def _no_repeats(what: str, ids: list[str]) -> None:
    for name in ids:
        if ids.count(name) > 1:
            raise ValueError(f"{what} {name!r} appears more than once")


def _known_points(where: str, points: tuple[RequiredPoint, ...], known: frozenset[str]) -> None:
    _no_repeats(where, [point_name(point) for point in points])
    for point in points:
        for fact_id in point_facts(point):
            if fact_id not in known:
                raise ValueError(
                    f"{where} names {fact_id!r}, which is not a fact of this key ({', '.join(sorted(known))})"
                )
