"""What a schema cannot see in a scenario: facts nobody asks for, hints, stale figures, identifiers that look real.

Each check takes one scenario as its author wrote it, or made ready for a plan year, and yields what is wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
from ..planning.fill_slots import Library
from ..planning.rubrics import known_rubrics, load_rubric
from ..planning.scenario_files import ScenarioFile
from ..schemas import (
    SLOT,
    CanonicalFact,
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
from ..text.figures import (
    figures,
    is_amount,
    kind,
    telling,
)
from ..text.sentences import sentences

PLACEHOLDER = "REPLACE"
FAKES_OF = 2026
"""The plan year whose figures the canned replies name."""
_MBI_LETTER = "AC-HJKMNP-RT-Y"
_IDENTIFIERS = {
    "a Social Security number": re.compile(
        r"(?<![\w-])(?!000|666|9\d\d)\d{3}[- ](?!00)\d{2}[- ](?!0000)\d{4}(?![\w-])"
    ),
    "a Medicare number": re.compile(
        rf"(?<!\w)[1-9][{_MBI_LETTER}][0-9{_MBI_LETTER}][0-9]-?[{_MBI_LETTER}][0-9{_MBI_LETTER}][0-9]-?"
        rf"[{_MBI_LETTER}]{{2}}[0-9]{{2}}(?!\w)"
    ),
    "a telephone number": re.compile(
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


Found = tuple[str, str]
"""Where and what."""
Replies = dict[str, dict[str, str | dict[str, str]]]


@dataclass(frozen=True)
class Finding:
    """One thing wrong: where, what, what to do."""

    path: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: field {self.where}: {self.what}."


def lint(file: ScenarioFile, library: Library, today: date) -> list[Finding]:
    """Everything wrong with one scenario file."""
    scenario = file.scenario
    found = [*_unfilled(file), *_rubric(file), *_points(scenario), *_lookups(scenario), *_provenance(scenario)]
    found += _identifiers(scenario)
    planned, unresolved = _ready(file, library, today)
    found += unresolved
    places = {fact.fact_id: n for n, fact in enumerate(scenario.answer_key.canonical_facts)}
    found += dict.fromkeys(item for one in planned for item in _dates(one, places, today))
    found += dict.fromkeys(item for one in planned for check in (_hints, _contradicted_turns) for item in check(one))
    if planned and not unresolved:
        found += _untouched(file, planned, places, library)
    return [Finding(file.path.as_posix(), where, what) for where, what in found]


def _ready(file: ScenarioFile, library: Library, today: date) -> tuple[tuple[PlannedScenario, ...], list[Found]]:
    """Every variant for this plan year, after checking that every other plan year can be made too."""
    problems: dict[str, Found] = {}
    ready: tuple[PlannedScenario, ...] = ()
    current = today.year if today.year in library.years else max(library.years)
    for year in file.years(library):
        try:
            planned = file.planned(year, library)
        except InputError as error:
            text = str(error).removeprefix(f"{file.path}: ").rstrip(".")
            where, _, what = text.partition(": ")
            problems[text] = (where, f"{what} (plan year {year})")
        else:
            ready = planned if year == current else ready
    return ready, list(problems.values())


def _unfilled(file: ScenarioFile) -> Iterator[Found]:
    for where, text in _texts(file.scenario.model_dump(mode="json")):
        if PLACEHOLDER in text:
            yield where, f"still holds {PLACEHOLDER}; write your own text there"


def _texts(value: Any, where: str = "") -> Iterator[Found]:
    """Every text of a document, with where it stands."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, f"{where}.{name}" if where else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{where}[{number}]")


def _rubric(file: ScenarioFile) -> Iterator[Found]:
    if file.scenario.rubric_version not in known_rubrics():
        yield "rubric_version", f"{file.scenario.rubric_version!r} is not known; use {', '.join(known_rubrics())}"


def _points(scenario: Scenario) -> Iterator[Found]:
    """Facts nothing refers to, and points no turn asks for."""
    asked = {point_name(point) for turn in scenario.scripted_turns for point in turn.required_points}
    used = {fact for point in scenario.all_required_points() for fact in point_facts(point)}
    used |= {fact for turn in scenario.scripted_turns for fact in (*turn.partial_points, *turn.background)}
    for number, fact in enumerate(scenario.answer_key.canonical_facts):
        if fact.fact_id not in used:
            yield (
                f"answer_key.canonical_facts[{number}]",
                f"{fact.fact_id} is used by no turn; name it in a turn's required_points, partial_points or background",
            )
    for point in scenario.answer_key.required_points:
        if point_name(point) not in asked:
            yield (
                "answer_key.required_points",
                f"{point_name(point)} is required, but no turn asks for it; add it to a turn's required_points",
            )


def _lookups(scenario: Scenario) -> Iterator[Found]:
    """Where saying so is the whole answer, a point that only a look-up gives cannot be owed."""
    if scenario.rubric_version in known_rubrics():
        rubric = load_rubric(scenario.rubric_version).rubric
        for turn in scenario.scripted_turns:
            rule = rubric.rule(group_of(turn))
            if rule.referral_alone == "accurate_complete" and (turn.required_points or turn.partial_points):
                where = f"turn {turn.turn_id} required_points"
                yield where, f"{group_of(turn)} asks for what must be looked up; leave its points empty"


def _provenance(scenario: Scenario) -> Iterator[Found]:
    for number, fact in enumerate(scenario.answer_key.canonical_facts):
        where = f"answer_key.canonical_facts[{number}]"
        filled = any(
            slot.partition(".")[0] in ("figure", "plan", "doctor", "place") for slot in SLOT.findall(fact.statement)
        )
        if fact.valid_from is None and not filled:
            yield where, f"{fact.fact_id} is undated; add valid_from, the day from which the statement holds"
        if fact.confirmed_by is None and "{{figure." not in fact.statement.replace(" ", ""):
            yield where, f"{fact.fact_id} does not say how it was confirmed; add confirmed_by"
        if re.search(r"\$\d", fact.statement) and not fact.valid_until and not fact.only.plan_years:
            yield from _lonely_figure(where, fact)


def _lonely_figure(where: str, fact: CanonicalFact) -> Iterator[Found]:
    """A figure of a named year belongs in that year's facts file; one that is the same every year may stand."""
    if re.search(r"\b20\d\d\b", fact.statement):
        yield (
            where,
            f"{fact.fact_id} states a dollar figure of one year; put it in facts/<year>.json, and here a figure slot",
        )


def _identifiers(scenario: Scenario) -> Iterator[Found]:
    texts = {f"turn {turn.turn_id}": turn.user_message for turn in scenario.scripted_turns}
    texts |= {f"variant {v.variant_id} turn {turn}": text for v in scenario.variants for turn, text in v.turns.items()}
    texts["persona"] = " ".join(map(str, scenario.persona.model_dump().values()))
    texts |= {f"variant {v.variant_id} persona": " ".join(map(str, v.persona.values())) for v in scenario.variants}
    for where, text in texts.items():
        for what, pattern in _IDENTIFIERS.items():
            for match in pattern.finditer(text):
                if re.sub(r"\D", "", match.group())[-10:] not in _PUBLIC_NUMBERS:
                    yield where, f"{match.group()!r} looks like {what}; a scenario holds no identifier of a real person"


def _dates(planned: PlannedScenario, places: Mapping[str, int], today: date) -> Iterator[Found]:
    for fact in planned.scenario.answer_key.canonical_facts:
        where = f"answer_key.canonical_facts[{places[fact.fact_id]}]"
        if fact.valid_until and fact.valid_until < today:
            yield (
                where,
                f"{fact.fact_id} expired on {fact.valid_until}; confirm it again, or add the new plan year's figures",
            )
        if fact.valid_from and fact.valid_from > today:
            yield where, f"{fact.fact_id} is valid only from {fact.valid_from}, which is still to come"


def _asked_texts(planned: PlannedScenario) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Each turn's id and words as asked, with the figures that come from the persona and so give nothing away."""
    scenario = planned.scenario
    asked = questioner.question(QuestionerInput(scenario=scenario, seed=0))
    scripted = {turn.turn_id: turn.user_message for turn in scenario.scripted_turns}
    for turn in asked.turns:
        yield (
            turn.turn_id,
            turn.user_message,
            figures(turn.user_message) - figures(SLOT.sub(" ", scripted[turn.turn_id])),
        )


def _hints(planned: PlannedScenario) -> Iterator[Found]:
    facts = {fact.fact_id: fact.statement for fact in planned.scenario.answer_key.canonical_facts}
    points = {turn.turn_id: turn.required_points for turn in planned.scenario.scripted_turns}
    for turn_id, text, own in _asked_texts(planned):
        where = f"turn {turn_id}{f' of variant {planned.variant}' if planned.variant else ''}"
        if told := _SCAFFOLDING.search(text):
            yield where, f"{told.group()!r} tells the target how to answer; ask as a person would"
        given = frozenset(figure for figure in telling(figures(text)) - own if kind(figure) != "number")
        for point in points[turn_id]:
            for fact_id in point_facts(point):
                hints = sorted(given & telling(figures(facts[fact_id])))
                if hints:
                    yield (
                        where,
                        f"gives away {', '.join(hints)} of {fact_id}, which the answer is to supply; take it out",
                    )


def _contradicted_turns(planned: PlannedScenario) -> Iterator[Found]:
    """Figures in a question that the key contradicts and nobody has declared as misstated."""
    scenario = planned.scenario
    weights = weigh(frozenset(fact.statement for fact in scenario.answer_key.canonical_facts))
    declared = {turn.turn_id: frozenset().union(*map(figures, turn.misstates)) for turn in scenario.scripted_turns}
    for turn_id, text, own in _asked_texts(planned):
        for span in sentences(text):
            said = text[span.start : span.end].rstrip("?") + "."
            claim = read_words(said)
            stated = frozenset(f for f in figures(said) if is_amount(f)) - own - declared[turn_id]
            for fact in scenario.answer_key.canonical_facts:
                match = compare(
                    claim, fact.statement, fact_id=fact.fact_id, weights=weights, quoted=stated, asked=read_words("")
                )
                wrong = sorted(stated & match.bad) if match.relation == "contradicts" else []
                if wrong:
                    where = f"turn {turn_id}{f' of variant {planned.variant}' if planned.variant else ''}"
                    yield (
                        where,
                        f"says {', '.join(wrong)}, which {fact.fact_id} contradicts; mend it, or list it in misstates",
                    )


def _untouched(
    file: ScenarioFile, planned: tuple[PlannedScenario, ...], places: Mapping[str, int], library: Library
) -> Iterator[Found]:
    """Facts that no canned reply supports or contradicts; without canned replies, facts that not even their own
    words support: such a fact can never count."""
    replies = canned(file.scenario.scenario_id)
    if replies and FAKES_OF in file.years(library):
        planned = file.planned(FAKES_OF, library)
    touched: set[str] = set()
    for one in planned:
        touched |= _touched_by(one, replies) if replies else _touched_by_itself(one)
    for fact_id in dict.fromkeys(fact.fact_id for one in planned for fact in one.scenario.answer_key.canonical_facts):
        if fact_id not in touched:
            who = "no fake reply" if replies else "not even a reply of its own words"
            yield (
                f"answer_key.canonical_facts[{places[fact_id]}]",
                f"{fact_id}: {who} can support or contradict it; state one checkable thing, or let a fake speak of it",
            )


def _touched_by(planned: PlannedScenario, replies: Replies) -> set[str]:
    key = verifier.key_in_view(planned.scenario.answer_key)
    touched: set[str] = set()
    for turn_id, question, _ in _asked_texts(planned):
        for fake in replies.values():
            said = fake.get(turn_id, "")
            reply = said.get(planned.variant or "", "") if isinstance(said, dict) else said
            claims = extractor.anchor(turn_id, reply, rules.extract(ExtractorInput(question=question, reply=reply)))
            shown = tuple(verifier.in_view(claim, reply) for claim in claims.claims if claim.verifiable)
            judged = rules.verify(VerifierInput(question=question, claims=shown, answer_key=key))
            touched.update(cited for verdict in judged.verdicts for cited in verdict.evidence)
    return touched


def _touched_by_itself(planned: PlannedScenario) -> set[str]:
    key = verifier.key_in_view(planned.scenario.answer_key)
    own = tuple(
        ClaimInView(claim_id=fact.fact_id, text=fact.statement, quotes=(fact.statement,))
        for fact in key.canonical_facts
    )
    judged = rules.verify(VerifierInput(question="", claims=own, answer_key=key))
    return {verdict.claim_id for verdict in judged.verdicts if verdict.claim_id in verdict.evidence}
