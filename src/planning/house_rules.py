"""What we ask of our own scenarios beyond what a run needs: dated and confirmed facts, no hints, points by turn.

A scenario that breaks these rules loads and runs. `validate` lists them as warnings, and `--strict` refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from .. import errors
from ..errors import InputError
from ..records.base import Ident, Line, Record, Scalar
from ..schemas import SLOT, Persona, PlannedScenario, Rubric, Scenario, ScriptedTurn, point_facts, point_name
from ..store.input_files import problems_of
from ..text.figures import figures, kind, telling
from ..text.formula import names_in
from ..text.patterns import STATES, load_patterns
from .fill_facts import FREE_NAMES
from .library import Library
from .rubrics import SPECIFICATION, load_rubric, rubric_files
from .scenario_files import ScenarioFile

PLACEHOLDER = "REPLACE"
"""Marks every text of a skeleton that its author must write."""
_PLACEHOLDER = re.compile(rf"(?:^|/){PLACEHOLDER}(?::|$)")
_PATTERNS = load_patterns(Path(__file__).with_suffix(".toml"))
_IDENTIFIERS = {what: pattern for what, pattern in _PATTERNS.items() if what.startswith("a ")}
_PUBLIC_NUMBERS = frozenset({"8006334227", "8774862048", "8007721213", "8003250778"})
"""1-800-MEDICARE and Social Security, with their TTY lines."""


@dataclass(frozen=True)
class BrokenRule:
    """One problem of a scenario file, and the field it is in."""

    where: str | None
    """None if `what` says where."""
    what: str
    error: bool = False
    """Whether it stops a run, or makes one pointless; otherwise a house rule is broken."""

    def __str__(self) -> str:
        return f"field {self.where}: {self.what}." if self.where else f"{self.what}."


class _UsualPersona(Record):
    """The values that our own personas have."""

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


def house_rules(file: ScenarioFile, plan_year: int, library: Library) -> list[BrokenRule]:
    """Every house rule that a scenario breaks, as written and as filled in for a plan year."""
    scenario = file.scenario
    found = [*_placeholders(scenario), *_rubric(file), *_themes(scenario), *_own_fields(scenario.persona)]
    found += [*_knobs(scenario), *_points(scenario), *_lookups(scenario, load_rubric_of(file))]
    found += [*_provenance(scenario), *_compound(scenario), *_twice(scenario), *_identifiers(scenario)]
    try:
        planned = file.planned(plan_year, library)
    except InputError:  # it cannot be asked in this year, which is more than a broken house rule
        planned = ()
    found += [*_personas(scenario, planned), *_costs(scenario, library)]
    found += dict.fromkeys(problem for one in planned for problem in _states(scenario, one))
    for check in (_hints, _stated_amounts):
        found += dict.fromkeys(problem for one in planned for problem in check(one))
    return found


def refuse_broken_rules(files: Sequence[ScenarioFile], plan_year: int, library: Library) -> None:
    """`--strict`: an InputError names the first broken rule and counts the others."""
    broken = [(file, problem) for file in files for problem in house_rules(file, plan_year, library)]
    if broken:
        file, first = broken[0]
        more = f" ({len(broken) - 1} more; `medicare-eval validate --strict` lists them)" if len(broken) > 1 else ""
        raise InputError(f"{file.name}: {str(first).rstrip('.')}{more}. Fix it, or leave out `strict`.")


def load_rubric_of(file: ScenarioFile) -> Rubric:
    return load_rubric(file.scenario.rubric_version, file.path).rubric


def _placeholders(scenario: Scenario) -> Iterator[BrokenRule]:
    for where, text in _texts(scenario.model_dump(mode="json")):
        if _PLACEHOLDER.search(text):
            what = f"the placeholder {PLACEHOLDER} is still there; write your own text"
            yield BrokenRule(where, what, error=True)


def _texts(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every text, number and truth value of a document as text, with the path to it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, f"{where}.{name}" if where else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{where}[{number}]")
    elif value is not None:
        yield where, str(value)


def _rubric(file: ScenarioFile) -> Iterator[BrokenRule]:
    version, known = file.scenario.rubric_version, rubric_files(file.path)
    if version not in known:
        yield BrokenRule(
            "rubric_version",
            f"there is no rubric {version[:80]!r} ({', '.join(known)}), so {SPECIFICATION} is used; "
            "name one of these, or write your own in a folder rubrics beside the scenario",
        )


def _themes(scenario: Scenario) -> Iterator[BrokenRule]:
    if not scenario.themes:
        yield BrokenRule("themes", "there are none; add one or two, such as late-enrollment penalties, for lists")


def _own_fields(persona: Persona) -> Iterator[BrokenRule]:
    own = list(persona.model_extra or {})
    if own:
        are, them = ("are fields", "them") if len(own) > 1 else ("is a field", "it")
        what = f"{', '.join(own)} {are} of your own; check the spelling, or move {them} into attributes"
        yield BrokenRule("persona", what)


def _personas(scenario: Scenario, planned: Sequence[PlannedScenario]) -> Iterator[BrokenRule]:
    """Usual fields with unusual values, in the scenario or in one of its variants."""
    places = {"persona": scenario.persona}
    places |= {f"variant {one.variant} persona": one.scenario.persona for one in planned if one.variant}
    seen = set()
    for place, persona in places.items():
        for one in _unusual(persona):
            if one not in seen:
                seen.add(one)
                yield BrokenRule(f"{place}.{one.field}", one.text.rstrip("."))


def _unusual(persona: Persona) -> Sequence[errors.Problem]:
    try:
        _UsualPersona.model_validate(persona.model_dump(include=set(_UsualPersona.model_fields)))
    except ValidationError as error:
        return problems_of(error, _UsualPersona)
    return ()


def _knobs(scenario: Scenario) -> Iterator[BrokenRule]:
    """Knobs that change nothing."""
    texts = [turn.user_message for turn in scenario.scripted_turns]
    texts += [text for variant in scenario.variants for text in variant.turns.values()]
    used = {slot for text in texts for slot in SLOT.findall(text)}
    for name in scenario.variation_knobs.choices:
        if f"knob.{name}" not in used:
            yield BrokenRule(
                f"variation_knobs.{name}",
                f"it is kept but changes nothing: no turn uses {{{{knob.{name}}}}}; use it in a turn, or remove it",
            )
    for name in scenario.variation_knobs.not_understood:
        what = "it is kept but changes nothing; to use it in turns, give it a plain name and a list of texts"
        if name in _SHAPES:
            what = f"it is kept but changes nothing: {name} must be {_SHAPES[name]}; correct it, or remove it"
        yield BrokenRule(f"variation_knobs.{name}", what)


_SHAPES = {
    "choices": 'names with lists of texts, such as {"tone": ["calm", "worried"]}',
    "shuffle": 'a list of groups of turn ids, such as [["Q2", "Q3"]]',
    "paraphrase": "true or false",
}
"""What the knobs that we know must be."""


def _points(scenario: Scenario) -> Iterator[BrokenRule]:
    """Facts that no turn uses, and required points that no turn asks for."""
    turns = scenario.scripted_turns
    if not any(turn.required_points or turn.partial_points or turn.background for turn in turns):
        yield BrokenRule("scripted_turns", "no turn says which facts it asks for; add required_points to the turns")
        return
    asked = {point_name(point) for turn in turns for point in turn.required_points}
    used = {fact for point in scenario.all_required_points() for fact in point_facts(point)}
    used |= {fact for turn in turns for fact in (*turn.partial_points, *turn.background)}
    key = scenario.answer_key
    places = {fact.fact_id: f"answer_key.canonical_facts[{number}]" for number, fact in enumerate(key.canonical_facts)}
    for fact_id in (*places, *key.library_facts):
        if fact_id not in used:
            yield BrokenRule(
                places.get(fact_id, f"answer_key.library_facts.{fact_id}"),
                f"no turn uses {fact_id}; list it in a turn's required_points, partial_points or background",
            )
    for point in scenario.answer_key.required_points:
        if point_name(point) not in asked:
            yield BrokenRule(
                "answer_key.required_points",
                f"{point_name(point)} is required, but no turn asks for it; add it to a turn's required_points",
            )


def _lookups(scenario: Scenario, rubric: Rubric) -> Iterator[BrokenRule]:
    """Where a referral is the complete answer, no point can be required."""
    for turn in scenario.scripted_turns:
        complete = rubric.rule(turn.group).referral_alone == "accurate_complete"
        if complete and (turn.required_points or turn.partial_points):
            yield BrokenRule(
                f"turn {turn.turn_id} required_points",
                f"group {turn.group} is for questions that must be looked up; "
                "leave required_points and partial_points empty",
            )


def _provenance(scenario: Scenario) -> Iterator[BrokenRule]:
    for number, fact in enumerate(scenario.answer_key.canonical_facts):
        where = f"answer_key.canonical_facts[{number}]"
        slots = {slot.partition(".")[0] for slot in SLOT.findall(fact.statement)}
        if fact.valid_from is None and not slots & {"figure", "plan", "doctor", "place"}:
            yield BrokenRule(
                where, f"{fact.fact_id} has no valid_from; add the first day on which the statement is true"
            )
        if fact.confirmed_by is None and "figure" not in slots:
            yield BrokenRule(where, f"{fact.fact_id} has no confirmed_by; use primary, secondary or derived")
        ends = fact.valid_until or fact.only.plan_years
        if not ends and re.search(r"\$\d", fact.statement) and re.search(r"\b20\d\d\b", fact.statement):
            yield BrokenRule(
                where,
                f"{fact.fact_id} states a dollar amount for one year; "
                "move it to facts/<year>.json and write {{figure.NAME}} here",
            )


def _compound(scenario: Scenario) -> Iterator[BrokenRule]:
    """Facts that say several things: an answer can be right about one and wrong about another."""
    for number, fact in enumerate(scenario.answer_key.canonical_facts):
        if why := compound(fact.statement):
            yield BrokenRule(
                f"answer_key.canonical_facts[{number}]",
                f"{fact.fact_id} {why}; write one fact for each assertion, with one figure at most",
            )


def _twice(scenario: Scenario) -> Iterator[BrokenRule]:
    """Library facts that a key names twice: one statement would make two points."""
    first: dict[str, str] = {}
    for fact_id, named in scenario.answer_key.library_facts.items():
        other = first.setdefault(named, fact_id)
        if other != fact_id:
            yield BrokenRule(f"answer_key.library_facts.{fact_id}", f"{named} is also {other}; keep one of them")


def _states(scenario: Scenario, planned: PlannedScenario) -> Iterator[BrokenRule]:
    """A state that is none, or of which the key wants facts that nobody has written down."""
    state = planned.scenario.persona.state
    own = planned.variant and state != scenario.persona.state
    where = f"variant {planned.variant} persona.state" if own else "persona.state"
    if isinstance(state, str) and state.strip().casefold() not in STATES:
        yield BrokenRule(where, f"{state[:40]!r} is no state of the United States; write its name, for example Ohio")
    asks = any("{{state}}" in named for named in scenario.answer_key.library_facts.values())
    if asks and planned.state_code is None:
        what = "the key names facts of the person's state, and facts/states has none of this state; they are left out"
        yield BrokenRule(where, what)


def _costs(scenario: Scenario, library: Library) -> Iterator[BrokenRule]:
    """Names in formulas of costs that nothing gives a value: the fact would have no cost, and nobody would know."""
    persona = scenario.persona.model_dump()
    attributes = {name for variant in scenario.variants for name in variant.persona} - persona.keys()
    attributes |= set(persona["attributes"]) if isinstance(persona["attributes"], dict) else set()
    for number, fact in enumerate(scenario.answer_key.canonical_facts):
        formula = fact.cost_if_wrong.formula if fact.cost_if_wrong else None
        unknown = unknown_names(formula, attributes, library) if formula else ()
        if unknown:
            yield BrokenRule(
                f"answer_key.canonical_facts[{number}].cost_if_wrong.formula",
                f"{', '.join(sorted(unknown))}: no figure of any year and no attribute of the persona has this name, "
                f"so {fact.fact_id} has no cost; check the spelling",
            )


def unknown_names(formula: str, attributes: Collection[str], library: Library) -> frozenset[str]:
    """The names in a formula that are no figure of any year and none of these attributes."""
    try:
        names = names_in(formula) - FREE_NAMES
    except ValueError:  # no formula at all, so the scenario cannot be planned, which is more than a broken rule
        return frozenset()
    return frozenset(name for name in names if name not in attributes and not library.names_figure(name))


def _identifiers(scenario: Scenario) -> Iterator[BrokenRule]:
    texts = {f"turn {turn.turn_id}": turn.user_message for turn in scenario.scripted_turns}
    texts |= {f"variant {v.variant_id} turn {turn}": text for v in scenario.variants for turn, text in v.turns.items()}
    personas: dict[str, Mapping[str, Any]] = {"persona": scenario.persona.model_dump()}
    personas |= {f"variant {v.variant_id} persona": v.persona for v in scenario.variants}
    texts |= {where: " ".join(text for _, text in _texts(persona)) for where, persona in personas.items()}
    for where, text in texts.items():
        for what, pattern in _IDENTIFIERS.items():
            for match in pattern.finditer(text):
                if re.sub(r"\D", "", match.group())[-10:] not in _PUBLIC_NUMBERS:
                    yield BrokenRule(
                        where,
                        f"{match.group()!r} looks like {what}; a scenario must not contain a real person's identifiers",
                    )


@dataclass(frozen=True)
class _AskedTurn:
    """A turn as the target sees it."""

    turn: ScriptedTurn
    where: str
    text: str
    from_persona: frozenset[str]
    """Figures that the persona or a knob supplies. They give nothing away."""


def _asked_turns(planned: PlannedScenario) -> Iterator[_AskedTurn]:
    scenario = planned.scenario
    knobs = {name: values[0] for name, values in scenario.variation_knobs.choices.items()}
    of_variant = f" of variant {planned.variant}" if planned.variant else ""
    for turn in scenario.scripted_turns:
        text = SLOT.sub(lambda match: scenario.slot_value(match.group(1), knobs), turn.user_message)
        from_persona = figures(text) - figures(SLOT.sub(" ", turn.user_message))
        yield _AskedTurn(turn, f"turn {turn.turn_id}{of_variant}", text, from_persona)


def _hints(planned: PlannedScenario) -> Iterator[BrokenRule]:
    """Questions that say how to answer, or state a figure that the answer should supply."""
    facts = {fact.fact_id: fact.statement for fact in planned.scenario.answer_key.canonical_facts}
    for asked in _asked_turns(planned):
        if phrase := _PATTERNS["scaffolding"].search(asked.text):
            yield BrokenRule(asked.where, f"{phrase.group()!r} tells the target how to answer; ask as a person would")
        given = frozenset(one for one in telling(figures(asked.text)) - asked.from_persona if kind(one) != "number")
        for fact_id in (fact_id for point in asked.turn.required_points for fact_id in point_facts(point)):
            hints = sorted(given & telling(figures(facts[fact_id])))
            if hints:
                yield BrokenRule(
                    asked.where,
                    f"the question gives away {', '.join(hints)} from {fact_id}, "
                    "which the answer should supply; remove it",
                )


def _stated_amounts(planned: PlannedScenario) -> Iterator[BrokenRule]:
    """Dollar amounts in a question that nothing accounts for: no fact, not the persona, not `misstates`."""
    known = frozenset[str]().union(*(figures(fact.statement) for fact in planned.scenario.answer_key.canonical_facts))
    for asked in _asked_turns(planned):
        declared = frozenset[str]().union(*map(figures, asked.turn.misstates))
        amounts = frozenset(one for one in figures(asked.text) if kind(one) == "money")
        stray = sorted(amounts - asked.from_persona - declared - known)
        if stray:
            yield BrokenRule(
                asked.where,
                f"the question says {', '.join(stray)}, which no fact of the key states; "
                "list it in misstates if it is wrong on purpose, or take it from the persona",
            )


# Whether a statement says more than one thing, as far as its punctuation, its figures and its verbs show.

_SENTENCES = re.compile(r"[a-z0-9)%][.?!] +[A-Z]")
_SLOT = re.compile(r"\{\{[^{}]*\}\}")


def compound(statement: str) -> str | None:
    """What shows that a statement holds several assertions; None if nothing does.

    It is a hint for authors. A list that one verb governs ("join, switch or drop a plan") and two conditions of one
    rule are no second assertion, so a conjunction counts only if a subject and a verb of its own follow it.
    """
    if ";" in statement:
        return "has a semicolon"
    if _SENTENCES.search(statement):
        return "has several sentences"
    slots = {slot for slot in _SLOT.findall(statement) if "figure." in slot}
    amounts = {one for one in figures(_SLOT.sub(" ", statement)) if kind(one) in ("money", "percent")}
    if len(slots) > 1 or len(amounts) > 1:  # one of each may be a condition and what follows from it
        return "states several amounts"
    found = _PATTERNS["two_clauses"].search(statement)
    if found and not _PATTERNS["condition"].search(statement[: found.end()]):
        return "joins two statements"
    return None
