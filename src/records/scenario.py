"""Scenarios (spec 5). Their answer keys are in `answer_key`."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from .answer_key import AnswerKey, RequiredPoint, point_facts, point_name
from .answer_key import DisallowedClaim as DisallowedClaim  # noqa: PLC0414 - `offline.rules` takes it from here
from .base import FactId, Ident, Line, Phrase, Record, Scalar, Text, no_repeats

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
        no_repeats("scripted_turns turn_id", turn_ids)
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
            no_repeats("variation_knobs.shuffle", list(group))
            for turn_id in group:
                if turn_id not in turn_ids:
                    raise ValueError(
                        f"variation_knobs.shuffle names turn {turn_id!r}; the turns are {', '.join(turn_ids)}"
                    )
                if any(turn.condition and turn.turn_id == turn_id for turn in self.scripted_turns):
                    raise ValueError(
                        f"variation_knobs.shuffle names turn {turn_id!r}, whose condition depends on its place"
                    )
        no_repeats("variation_knobs.shuffle", [turn_id for group in self.variation_knobs.shuffle for turn_id in group])
        return self

    def _check_variants(self, turn_ids: list[str]) -> None:
        no_repeats("variants variant_id", [variant.variant_id for variant in self.variants])
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


def _known_points(where: str, points: tuple[RequiredPoint, ...], known: frozenset[str]) -> None:
    no_repeats(where, [point_name(point) for point in points])
    for point in points:
        for fact_id in point_facts(point):
            if fact_id not in known:
                raise ValueError(
                    f"{where} names {fact_id!r}, which is not a fact of this key ({', '.join(sorted(known))})"
                )
