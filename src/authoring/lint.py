"""Problems that a schema cannot find in a scenario: unused facts, hints, stale figures, identifiers that look real.

Each check takes a scenario as its author wrote it, or filled in for a plan year, and yields what is wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ..adapters.fake_adapter import canned
from ..agents import extractor, questioner, verifier
from ..errors import InputError
from ..offline import rules
from ..offline.compare import compare
from ..offline.text import read_words
from ..offline.topic import weigh
from ..planning.library import Library
from ..planning.rubrics import known_rubrics, load_rubric
from ..planning.scenario_files import ScenarioFile, expand, read_scenario
from ..schemas import (
    SLOT,
    ClaimInView,
    ExtractorInput,
    PlannedScenario,
    QuestionerInput,
    Scenario,
    VerifierInput,
    point_facts,
    point_name,
)
from ..scoring.study_codes import group_of
from ..text.figures import figures, is_amount, kind, telling
from ..text.sentences import sentences
from .catalog import current_year
from .skeleton import PLACEHOLDER

CANNED_YEAR = 2026
"""The plan year whose figures the canned replies state."""
_MBI_LETTER = "AC-HJKMNP-RT-Y"
_IDENTIFIERS = {
    "a Social Security number": re.compile(
        r"(?<![\w-])(?!000|666|9\d\d)\d{3}[- ](?!00)\d{2}[- ](?!0000)\d{4}(?![\w-])"
    ),
    "a Medicare number": re.compile(
        rf"(?<!\w)[1-9][{_MBI_LETTER}][0-9{_MBI_LETTER}][0-9]-?[{_MBI_LETTER}][0-9{_MBI_LETTER}][0-9]-?"
        rf"[{_MBI_LETTER}]{{2}}[0-9]{{2}}(?!\w)"
    ),
    "a phone number": re.compile(
        r"(?<![\w-])(?:\+?1[-. ])?\(?[2-9]\d{2}\)?[-. ](?!555[-. ]01)[2-9]\d{2}[-. ]\d{4}(?![\w-])"
    ),
}
_PUBLIC_NUMBERS = frozenset({"8006334227", "8774862048", "8007721213", "8003250778"})
"""1-800-MEDICARE and Social Security, with their TTY lines."""
_SCAFFOLDING = re.compile(
    r"\b(be sure to|make sure to|don['’]t forget|do not forget|remember to|list all|mention (?:that|the|all|any|both)|"
    r"including any|step by step|keep in mind|as you know|you should (?:say|answer|mention)|"
    r"the (?:right|correct) answer)\b",
    re.IGNORECASE,
)
Replies = dict[str, dict[str, str | dict[str, str]]]
"""Canned replies: fake target to turn to reply, or to one reply per variant."""


@dataclass(frozen=True)
class Problem:
    """One problem, and the field it is in."""

    where: str | None
    """None if `what` says where."""
    what: str

    def __str__(self) -> str:
        return f"field {self.where}: {self.what}." if self.where else f"{self.what}."


@dataclass(frozen=True)
class _AskedTurn:
    """A turn as the target sees it."""

    turn_id: str
    text: str
    from_persona: frozenset[str]
    """Figures that the persona supplies. They give nothing away."""


def lint_files(patterns: Sequence[str], library: Library, today: date) -> list[str]:
    """Every problem of every file, as one sentence each; a file that cannot be read is one problem."""
    found: list[str] = []
    for path in expand(list(patterns)):
        try:
            problems = lint(read_scenario(path), library, today)
        except InputError as error:
            found.append(str(error))
        else:
            found += [f"{path.as_posix()}: {problem}" for problem in problems]
    return found


def lint(file: ScenarioFile, library: Library, today: date) -> list[Problem]:
    """Every problem of one scenario file."""
    scenario = file.scenario
    found = [*_placeholders(file), *_rubric(file), *_points(scenario), *_lookups(scenario), *_provenance(scenario)]
    found += _identifiers(scenario)
    planned, unresolved = _filled_in(file, library, today)
    found += unresolved
    places = {fact.fact_id: n for n, fact in enumerate(scenario.answer_key.canonical_facts)}
    found += dict.fromkeys(item for one in planned for item in _dates(one, places, today))
    found += dict.fromkeys(item for one in planned for check in (_hints, _contradicted_turns) for item in check(one))
    if planned and not unresolved:
        found += _uncheckable(file, planned, places, library)
    return found


def _filled_in(file: ScenarioFile, library: Library, today: date) -> tuple[tuple[PlannedScenario, ...], list[Problem]]:
    """Every variant for the current plan year, and what is missing for any plan year that the scenario covers."""
    problems: dict[str, Problem] = {}
    ready: tuple[PlannedScenario, ...] = ()
    for year in file.years(library):
        try:
            planned = file.planned(year, library)
        except InputError as error:
            text = str(error).removeprefix(f"{file.path}: ").rstrip(".")
            problems[text] = Problem(None, f"{text} (plan year {year})")
        else:
            ready = planned if year == current_year(library, today) else ready
    return ready, list(problems.values())


def _placeholders(file: ScenarioFile) -> Iterator[Problem]:
    for where, text in _texts(file.scenario.model_dump(mode="json")):
        if PLACEHOLDER in text:
            yield Problem(where, f"the placeholder {PLACEHOLDER} is still there; write your own text")


def _texts(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every string of a document, with the path to it."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, f"{where}.{name}" if where else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{where}[{number}]")


def _rubric(file: ScenarioFile) -> Iterator[Problem]:
    version = file.scenario.rubric_version
    if version not in known_rubrics():
        yield Problem("rubric_version", f"unknown rubric {version!r}; use {', '.join(known_rubrics())}")


def _points(scenario: Scenario) -> Iterator[Problem]:
    """Facts that no turn uses, and required points that no turn asks for."""
    asked = {point_name(point) for turn in scenario.scripted_turns for point in turn.required_points}
    used = {fact for point in scenario.all_required_points() for fact in point_facts(point)}
    used |= {fact for turn in scenario.scripted_turns for fact in (*turn.partial_points, *turn.background)}
    for number, fact in enumerate(scenario.answer_key.canonical_facts):
        if fact.fact_id not in used:
            yield Problem(
                f"answer_key.canonical_facts[{number}]",
                f"no turn uses {fact.fact_id}; list it in a turn's required_points, partial_points or background",
            )
    for point in scenario.answer_key.required_points:
        if point_name(point) not in asked:
            yield Problem(
                "answer_key.required_points",
                f"{point_name(point)} is required, but no turn asks for it; add it to a turn's required_points",
            )


def _lookups(scenario: Scenario) -> Iterator[Problem]:
    """Where a referral is the complete answer, no point can be required."""
    if scenario.rubric_version not in known_rubrics():
        return
    rubric = load_rubric(scenario.rubric_version).rubric
    for turn in scenario.scripted_turns:
        complete = rubric.rule(group_of(turn)).referral_alone == "accurate_complete"
        if complete and (turn.required_points or turn.partial_points):
            yield Problem(
                f"turn {turn.turn_id} required_points",
                f"group {group_of(turn)} is for questions that must be looked up; "
                "leave required_points and partial_points empty",
            )


def _provenance(scenario: Scenario) -> Iterator[Problem]:
    for number, fact in enumerate(scenario.answer_key.canonical_facts):
        where = f"answer_key.canonical_facts[{number}]"
        slots = {slot.partition(".")[0] for slot in SLOT.findall(fact.statement)}
        if fact.valid_from is None and not slots & {"figure", "plan", "doctor", "place"}:
            yield Problem(where, f"{fact.fact_id} has no valid_from; add the first day on which the statement is true")
        if fact.confirmed_by is None and "figure" not in slots:
            yield Problem(where, f"{fact.fact_id} has no confirmed_by; use primary, secondary or derived")
        ends = fact.valid_until or fact.only.plan_years
        if not ends and re.search(r"\$\d", fact.statement) and re.search(r"\b20\d\d\b", fact.statement):
            yield Problem(
                where,
                f"{fact.fact_id} states a dollar amount for one year; "
                "move it to facts/<year>.json and write {{figure.NAME}} here",
            )


def _identifiers(scenario: Scenario) -> Iterator[Problem]:
    texts = {f"turn {turn.turn_id}": turn.user_message for turn in scenario.scripted_turns}
    texts |= {f"variant {v.variant_id} turn {turn}": text for v in scenario.variants for turn, text in v.turns.items()}
    texts["persona"] = " ".join(map(str, scenario.persona.model_dump().values()))
    texts |= {f"variant {v.variant_id} persona": " ".join(map(str, v.persona.values())) for v in scenario.variants}
    for where, text in texts.items():
        for what, pattern in _IDENTIFIERS.items():
            for match in pattern.finditer(text):
                if re.sub(r"\D", "", match.group())[-10:] not in _PUBLIC_NUMBERS:
                    yield Problem(
                        where,
                        f"{match.group()!r} looks like {what}; a scenario must not contain a real person's identifiers",
                    )


def _dates(planned: PlannedScenario, places: Mapping[str, int], today: date) -> Iterator[Problem]:
    for fact in planned.scenario.answer_key.canonical_facts:
        where = f"answer_key.canonical_facts[{places[fact.fact_id]}]"
        if fact.valid_until and fact.valid_until < today:
            yield Problem(
                where,
                f"{fact.fact_id} expired on {fact.valid_until}; confirm it again, or add the new plan year's figures",
            )
        if fact.valid_from and fact.valid_from > today:
            yield Problem(where, f"{fact.fact_id} is not valid until {fact.valid_from}")


def _asked_turns(planned: PlannedScenario) -> Iterator[_AskedTurn]:
    scenario = planned.scenario
    asked = questioner.question(QuestionerInput(scenario=scenario, seed=0))
    scripted = {turn.turn_id: turn.user_message for turn in scenario.scripted_turns}
    for turn in asked.turns:
        from_persona = figures(turn.user_message) - figures(SLOT.sub(" ", scripted[turn.turn_id]))
        yield _AskedTurn(turn.turn_id, turn.user_message, from_persona)


def _turn_field(planned: PlannedScenario, turn_id: str) -> str:
    return f"turn {turn_id} of variant {planned.variant}" if planned.variant else f"turn {turn_id}"


def _hints(planned: PlannedScenario) -> Iterator[Problem]:
    """Questions that say how to answer, or state a figure that the answer should supply."""
    facts = {fact.fact_id: fact.statement for fact in planned.scenario.answer_key.canonical_facts}
    points = {turn.turn_id: turn.required_points for turn in planned.scenario.scripted_turns}
    for turn in _asked_turns(planned):
        where = _turn_field(planned, turn.turn_id)
        if phrase := _SCAFFOLDING.search(turn.text):
            yield Problem(where, f"{phrase.group()!r} tells the target how to answer; ask as a person would")
        given = frozenset(one for one in telling(figures(turn.text)) - turn.from_persona if kind(one) != "number")
        for fact_id in (fact_id for point in points[turn.turn_id] for fact_id in point_facts(point)):
            hints = sorted(given & telling(figures(facts[fact_id])))
            if hints:
                yield Problem(
                    where,
                    f"the question gives away {', '.join(hints)} from {fact_id}, "
                    "which the answer should supply; remove it",
                )


def _contradicted_turns(planned: PlannedScenario) -> Iterator[Problem]:
    """Amounts in a question that contradict the key and are not declared in `misstates`."""
    scenario = planned.scenario
    weights = weigh(frozenset(fact.statement for fact in scenario.answer_key.canonical_facts))
    declared = {turn.turn_id: frozenset().union(*map(figures, turn.misstates)) for turn in scenario.scripted_turns}
    for turn in _asked_turns(planned):
        for span in sentences(turn.text):
            said = turn.text[span.start : span.end].rstrip("?") + "."
            claim = read_words(said)
            amounts = frozenset(f for f in figures(said) if is_amount(f))
            stated = amounts - turn.from_persona - declared[turn.turn_id]
            for fact in scenario.answer_key.canonical_facts:
                match = compare(
                    claim, fact.statement, fact_id=fact.fact_id, weights=weights, quoted=stated, asked=read_words("")
                )
                wrong = sorted(stated & match.bad) if match.relation == "contradicts" else []
                if wrong:
                    yield Problem(
                        _turn_field(planned, turn.turn_id),
                        f"the question says {', '.join(wrong)}, which contradicts {fact.fact_id}; "
                        "fix it, or list it in misstates",
                    )


def _uncheckable(
    file: ScenarioFile, planned: tuple[PlannedScenario, ...], places: Mapping[str, int], library: Library
) -> Iterator[Problem]:
    """Facts that no canned reply supports or contradicts.

    Without canned replies: facts that the offline judge does not support even by a reply that repeats them. Such a
    fact can never count.
    """
    scenario_id = file.scenario.scenario_id
    replies = canned(scenario_id)
    if replies and CANNED_YEAR in file.years(library):
        planned = file.planned(CANNED_YEAR, library)
    matched: set[str] = set()
    for one in planned:
        matched |= _matched_by_replies(one, replies) if replies else _matched_by_itself(one)
    for fact_id in dict.fromkeys(fact.fact_id for one in planned for fact in one.scenario.answer_key.canonical_facts):
        if fact_id not in matched:
            what = (
                f"no canned reply in fakes/{scenario_id}.json supports or contradicts {fact_id}; "
                "add a sentence about it there, or state one checkable thing"
                if replies
                else f"{fact_id} cannot be checked, because even a reply that repeats it does not match it; "
                "state one checkable thing"
            )
            yield Problem(f"answer_key.canonical_facts[{places[fact_id]}]", what)


def _matched_by_replies(planned: PlannedScenario, replies: Replies) -> set[str]:
    """Facts that the offline judge cites for some canned reply."""
    key = verifier.key_in_view(planned.scenario.answer_key)
    cited: set[str] = set()
    for turn in _asked_turns(planned):
        for fake in replies.values():
            said = fake.get(turn.turn_id, "")
            reply = said.get(planned.variant or "", "") if isinstance(said, dict) else said
            extracted = rules.extract(ExtractorInput(question=turn.text, reply=reply))
            claims = extractor.anchor(turn.turn_id, reply, extracted)
            shown = tuple(verifier.in_view(claim, reply) for claim in claims.claims if claim.verifiable)
            judged = rules.verify(VerifierInput(question=turn.text, claims=shown, answer_key=key))
            cited.update(fact_id for verdict in judged.verdicts for fact_id in verdict.evidence)
    return cited


def _matched_by_itself(planned: PlannedScenario) -> set[str]:
    """Facts that the offline judge cites for a claim in the fact's own words."""
    key = verifier.key_in_view(planned.scenario.answer_key)
    own = tuple(
        ClaimInView(claim_id=fact.fact_id, text=fact.statement, quotes=(fact.statement,))
        for fact in key.canonical_facts
    )
    judged = rules.verify(VerifierInput(question="", claims=own, answer_key=key))
    return {verdict.claim_id for verdict in judged.verdicts if verdict.claim_id in verdict.evidence}
