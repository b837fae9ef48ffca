"""A checklist for reporting a study of a chatbot's health advice, filled in as far as a run knows.

Its topics are those of the CHART statement (Chatbot Assessment Reporting Tool, 2025): twelve items, whose numbers are
given. The statement's sub-items are not reproduced: ids and words here are this project's own. What a run cannot know
is left to its author and marked `AUTHOR:`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args

import msgspec

from ... import storage
from ...planning.preregistration import registration_lines
from ...records.preregistration import Registration
from ...schemas import CODES, RunPlan, TrialOutcome
from ...stats.agreement import Agreement
from ...stats.intervals import Share, mean_interval, wilson
from ...store import hash_chain
from ...text.escape import inert
from ..analysis.judge_agreement import judging
from ..analysis.read_run import SCORES, Findings, Row

AUTHOR = "**AUTHOR:**"
SOURCE = (
    "Topics and item numbers follow the CHART statement: CHART Collaborative, Reporting guideline for chatbot health "
    "advice studies: the Chatbot Assessment Reporting Tool (CHART) statement, BMJ Medicine 2025;4(1), "
    "doi:10.1136/bmjmed-2025-001632. Ids such as `M1` and all words are this project's own; they are not the numbers "
    "or words of its sub-items. Check your manuscript against the statement itself before you submit it."
)
_HASH = 16


@dataclass(frozen=True)
class Item:
    """One thing to report."""

    item_id: str
    chart_item: int
    """The number of CHART's item on this topic."""
    topic: str
    report: str
    """What to report."""
    ask: str
    """What the author must add; empty where the run knows it all."""


ITEMS: tuple[Item, ...] = (
    Item(
        "T1", 1, "Title",
        "Say that a generative AI system's answers are evaluated, and on which subject.",
        "write the title.",
    ),
    Item(
        "T2", 1, "Abstract",
        "Sum up aim, systems, questions, reference standard, main result with its interval, and conclusion.",
        "write the abstract; take numbers from R2, and name the models as in M1.",
    ),
    Item(
        "B1", 2, "Why the study was done",
        "Say what is known of such advice, who seeks it, and what a wrong answer can cost them.",
        "give the background, with references.",
    ),
    Item(
        "B2", 2, "Aims",
        "State the questions the study answers, and which of them was decided on beforehand.",
        "state the aims and hypotheses.",
    ),
    Item(
        "M1", 3, "Which models",
        "Name each system, its maker, the version asked for and the version that answered.",
        "say whether each is open or proprietary, and the product the public knows it by.",
    ),
    Item(
        "M2", 3, "When and how they were reached",
        "Give the dates of access and the interface.",
        "name the place or region the calls came from, the kind of account, and any gateway in between.",
    ),
    Item(
        "M3", 4, "Settings",
        "Give every parameter that was set, those that a model did not take, and the seed.",
        "",
    ),
    Item(
        "M4", 4, "What was built around the model",
        "Say whether the model was tuned, given documents, tools or web search, or kept memory between conversations.",
        "confirm that no gateway, account setting or custom server adds any of this.",
    ),
    Item(
        "P1", 5, "What the model was told besides the questions",
        "Give system prompts and instructions in full.",
        "",
    ),
    Item(
        "P2", 5, "How prompts were made",
        "Say who wrote prompts and questions, how they were tried out, and whether they were changed after answers "
        "had been seen.",
        "say who wrote and reviewed the wording, whether patients or the public took part, and what was changed after "
        "pilot runs.",
    ),
    Item(
        "Q1", 6, "The questions and where they come from",
        "List the questions, their source, and the people they are asked for.",
        "say why these questions stand for what people ask.",
    ),
    Item(
        "Q2", 6, "How questions were put",
        "Say whether each conversation was new, what came before each question, and whether a person or a program "
        "asked.",
        "",
    ),
    Item(
        "Q3", 6, "How often, and when",
        "Give the number of repeats and the days.",
        "say why this number of repeats.",
    ),
    Item(
        "Q4", 6, "Language and audience",
        "Name the language of questions and answers, and any dialect or level of reading that was meant.",
        "name the language, and say to whom the findings apply.",
    ),
    Item(
        "E1", 7, "Reference standard",
        "Say what answers were held against, where it comes from, and how old it is.",
        "say who wrote and checked the key, with which expertise, and how disputes were settled.",
    ),
    Item(
        "E2", 7, "What was measured",
        "Define every outcome, and say which is the primary one.",
        "name the primary outcome, unless it is registered (D4).",
    ),
    Item(
        "E3", 7, "Who judged, and how far they agree",
        "Name the judges, what they were blind to, how they agree, and how they fare against people.",
        "say whether people judged a sample, how many, with which expertise, and how they agree with these judges.",
    ),
    Item(
        "S1", 8, "Sample size",
        "Give the number of trials and what it was based on.",
        "justify the number.",
    ),
    Item(
        "A1", 9, "Analysis",
        "Describe every statistic, how repeated questions were accounted for, how missing answers were treated, and "
        "the software.",
        "name every further test and model, and how multiple comparisons were handled.",
    ),
    Item(
        "R1", 10, "From planned to analyzed",
        "Account for every planned trial.",
        "",
    ),
    Item(
        "R2", 10, "Main results",
        "Give every outcome with its precision, for each model.",
        "",
    ),
    Item(
        "R3", 10, "Harm, and answers that were made up",
        "Say how often answers could do harm, how grave it would be, and show examples.",
        "choose and discuss examples; the trials named here hold the gravest errors.",
    ),
    Item(
        "I1", 11, "What it means",
        "Set the result beside earlier work and beside what people are told today.",
        "interpret the result.",
    ),
    Item(
        "I2", 11, "Limits",
        "Name what limits the finding.",
        "add the limits of your own study.",
    ),
    Item(
        "I3", 11, "What follows",
        "Say what follows for practice, for policy and for research.",
        "write what follows.",
    ),
    Item(
        "D1", 12, "Interests",
        "Disclose interests, in the makers of the models under test above all, and the use of AI in writing.",
        "disclose them.",
    ),
    Item(
        "D2", 12, "Funding",
        "Name who paid, who paid for the calls, and what part they had.",
        "name the funding.",
    ),
    Item(
        "D3", 12, "Ethics",
        "Say whether a board reviewed the study, and whether anyone's data were put into a model.",
        "name the board and its decision, or why none was needed.",
    ),
    Item(
        "D4", 12, "Protocol",
        "Say where the plan was registered and how the study departed from it.",
        "give the registry and its number.",
    ),
    Item(
        "D5", 12, "Data and code",
        "Say where transcripts, judgments, key and code can be had, and how a reader knows that they are unchanged.",
        "give the address of the archived run folder, and its licence.",
    ),
)  # fmt: skip


class _When(msgspec.Struct):
    """When one attempt at a call was made, and to whom."""

    call: str
    model: str
    started: str


def _days(found: Findings) -> dict[str, tuple[date, date]]:
    """First and last day on which each model was called, from the journal."""
    path = found.folder / storage.JOURNAL
    days: dict[str, tuple[date, date]] = {}
    if not path.is_file():
        return days
    decode = msgspec.json.Decoder(_When).decode
    for line in hash_chain.ChainReader(path, storage.manifest_sha256(found.folder)):
        if hash_chain.is_recovery(line.payload):
            continue
        when = decode(line.payload[: line.payload.index(b',"error":')] + b"}")
        day = date.fromisoformat(when.started[:10])
        first, last = days.get(when.model, (day, day))
        days[when.model] = (min(first, day), max(last, day))
    return days


@dataclass(frozen=True)
class _Known:
    """What the run knows."""

    found: Findings
    days: dict[str, tuple[date, date]]
    registration: Registration | None

    @property
    def plan(self) -> RunPlan:
        return self.found.manifest.plan


def chart_checklist(findings: Findings, registration: Registration | None = None) -> str:
    """The checklist in Markdown, filled in from a run; what its author must add is marked `AUTHOR:`.

    `registration` is the manifest's own, unless another is given.
    """
    registration = registration or findings.manifest.registration
    known = _Known(findings, _days(findings), registration)
    manifest = findings.manifest
    lines = [f"# Reporting checklist: run {inert(manifest.run_id)}", "", SOURCE, ""]
    lines += [
        f"Filled in by ai-medicare-eval {inert(manifest.versions.get('ai-medicare-eval', '(version not recorded)'))} "
        f"from the run itself. Whatever is marked {AUTHOR} is yours to write.",
        "",
    ]
    lines += [f"> **{notice}**" for notice in _notices(findings)]
    number = 0
    for item in ITEMS:
        if item.chart_item != number:
            number = item.chart_item
            lines += ["", f"## CHART item {number}: {_HEADINGS[number]}"]
        lines += ["", f"### {item.item_id} {item.topic}", "", f"*{item.report}*", ""]
        lines += _FILLED[item.item_id](known) if item.item_id in _FILLED else []
        ask = item.ask
        if item.item_id == "D4" and registration:
            ask = "say where the frozen plan's hash was published, and explain each deviation."
        lines += [f"- {AUTHOR} {ask}"] if ask else []
        if not lines[-1]:
            lines.pop()
    return "\n".join([*lines, ""])


_HEADINGS = {
    1: "title and abstract",
    2: "background",
    3: "model identifiers",
    4: "model details",
    5: "prompt engineering",
    6: "query strategy",
    7: "performance evaluation",
    8: "sample size",
    9: "data analysis",
    10: "results",
    11: "discussion",
    12: "disclosures, funding, ethics, protocol and data availability",
}


def _notices(found: Findings) -> Iterator[str]:
    if found.offline:
        yield "Judged by offline:rules, a judge made of rules, for trying out: these scores are not findings."
    if found.fake:
        yield "fake: targets are canned texts, not the words of any model."
    if len(found.rows) < found.planned:
        yield f"Incomplete: {len(found.rows)} of {found.planned} planned trials are here."
    yield from (f"Expired key, allowed by the user: {inert(reason)}." for reason in found.manifest.plan.expired)


def _models(known: _Known) -> list[str]:
    lines = [
        "| model | part | called as | served by | as requested | parameters not applied |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, service in known.found.services.items():
        served = ", ".join(inert(one) for one in sorted(service.served)) or "not stated"
        same = "**no**" if service.differs else "yes" if service.served else "not known"
        part = ", ".join(_parts(known.plan, name))
        lines.append(
            f"| {inert(name)} | {part} | {inert(service.called)} | {served} | {same} | "
            f"{inert(', '.join(sorted(service.not_applied))) or 'none'} |"
        )
    return [*lines, ""]


def _parts(plan: RunPlan, name: str) -> Iterator[str]:
    if name in plan.targets:
        yield "under test"
    for part in ("extractor", "scorer", "adjudicator", "questioner"):
        if getattr(plan, part) == name:
            yield part
    if name in plan.verifiers:
        yield "verifier"


def _access(known: _Known) -> list[str]:
    manifest = known.found.manifest
    lines = [f"- The run was begun {inert(manifest.created)}. Days of calls (UTC), from the journal:"]
    for name, (first, last) in known.days.items():
        lines.append(f"  - {inert(name)}: {first}" + (f" to {last}" if last != first else ""))
    if manifest.transcripts:
        lines.append(
            f"- The targets were not asked in this run: their replies are those of run "
            f"{inert(manifest.transcripts.run_id)} (manifest sha256 `{manifest.transcripts.manifest_sha256}`). "
            f"{AUTHOR} take the targets' dates from that run's checklist."
        )
    versions = ", ".join(f"{inert(name)} {inert(version)}" for name, version in manifest.versions.items())
    lines.append("- Models were called through programming interfaces, not through a chat product.")
    return [*lines, f"- Software: {versions}"]


def _settings(known: _Known) -> list[str]:
    plan = known.plan
    lines = []
    for whom, given in (("models under test", plan.target_parameters), ("judges", plan.judge_parameters)):
        warmth = "left to the model" if given.temperature is None else f"{given.temperature}"
        lines.append(f"- Asked of the {whom}: temperature {warmth}, at most {given.max_tokens} tokens a reply")
    left_out = [
        f"{inert(name)}: {inert(', '.join(sorted(service.not_applied)))}"
        for name, service in known.found.services.items()
        if service.not_applied
    ]
    lines.append(f"- Not taken by the model, and so left out: {'; '.join(left_out) or 'none'}")
    policy = plan.policy
    return [
        *lines,
        f"- Seed {plan.seed}; each call's own seed is derived from it, and sent where a model takes one",
        f"- A call that fails is tried up to {policy.max_attempts} times within {policy.deadline_s:g} s; a judge whose "
        f"answer does not fit is asked up to {policy.max_asks} times",
    ]


def _surroundings(_: _Known) -> list[str]:
    return [
        "- This harness adds nothing to a model under test: no tuning, no documents, no tools, no web search, and no "
        "memory beyond the conversation itself."
    ]


def _told(known: _Known) -> list[str]:
    lines = ["- The models under test got no system prompt: only the questions, and their own earlier replies."]
    lines.append("- Prompts of the judges, in full in manifest.json; sha256 of their files:")
    return lines + [f"  - {role}: `{prompt.sha256}`" for role, prompt in known.plan.prompts.items()]


def _made(known: _Known) -> list[str]:
    plan = known.plan
    words = "the scenarios' own words, whose files Q1 names"
    if plan.wording:
        words = f"the wording of {inert(plan.wording.title)} (sha256 `{plan.wording.sha256}`), else {words}"
    lines = [f"- Questions: {words}"]
    if plan.questioner:
        lines.append(f"- Reworded by a model: {inert(plan.questioner)}, where a scenario allows it")
    return [*lines, "- Every question as it was asked is in results.jsonl."]


def _questions(known: _Known) -> list[str]:
    plan = known.plan
    turns = sum(len(planned.scenario.scripted_turns) for planned in plan.scenarios)
    groups = {key for key, rule in known.found.rules.items() if rule.study_group}
    lines = [
        f"- {_count(len(plan.scenarios), 'conversation')} (scenarios and their variants), with {_count(turns, 'turn')}",
        "- The people who ask are invented, as are doctors, plans and places.",
    ]
    if groups:
        lines.append(
            f"- {_count(len(groups), 'question group')} on the topics of Dugan and others, JAMA Network Open "
            "2025;8(4):e252834, in other words than theirs"
        )
    lines.append("- Scenarios, with the sha256 of their files:")
    return lines + [f"  - {inert(planned.name)}: `{planned.sha256}`" for planned in plan.scenarios]


def _put(known: _Known) -> list[str]:
    scenarios = [planned.scenario for planned in known.plan.scenarios]
    several = sum(len(scenario.scripted_turns) > 1 for scenario in scenarios)
    lines = [
        "- A program asked. Every trial is a new conversation; in it each question follows the model's real replies.",
        f"- {several} of {len(scenarios)} conversations have more than one question.",
    ]
    conditional = sum(turn.condition is not None for scenario in scenarios for turn in scenario.scripted_turns)
    if conditional:
        lines.append(f"- {_count(conditional, 'turn')} asked only if the reply before it did or did not say something")
    return lines


def _repeats(known: _Known) -> list[str]:
    plan = known.plan
    lines = [
        f"- Each conversation was planned {_count(plan.repeats, 'time')} with each of "
        f"{_count(len(plan.targets), 'model')}: {known.found.planned} trials"
    ]
    of_targets = [known.days[target] for target in plan.targets if target in known.days]
    if of_targets:
        first, last = min(day for day, _ in of_targets), max(day for _, day in of_targets)
        lines.append(f"- Asked from {first} to {last} (UTC)" if first != last else f"- Asked on {first} (UTC)")
    return lines


def _audience(known: _Known) -> list[str]:
    named = {planned.scenario.persona.language for planned in known.plan.scenarios} - {None}
    return [f"- Languages the scenarios name: {inert(', '.join(sorted(map(str, named))))}"] if named else []


def _key(known: _Known) -> list[str]:
    plan = known.plan
    facts = {
        (planned.scenario.scenario_id, fact.fact_id): fact
        for planned in plan.scenarios
        for fact in planned.scenario.answer_key.canonical_facts
    }
    how = Counter(fact.confirmed_by or "not stated" for fact in facts.values())
    sources = sorted({fact.source for fact in facts.values()})
    lines = [
        f"- A written key of {_count(len(facts), 'fact')}, fixed before the first call, for plan year {plan.plan_year}",
        f"- How facts were confirmed: {', '.join(f'{number} {inert(name)}' for name, number in sorted(how.items()))}",
        f"- {_count(len(sources), 'source')}; each fact names its own in manifest.json",
    ]
    lines += [f"- Key expired: {inert(reason)}" for reason in plan.expired]
    return lines + [f"- Filled from {inert(name)}, sha256 `{digest}`" for name, digest in plan.references.items()]


def _outcomes(known: _Known) -> list[str]:
    lines = [
        "- Accuracy: supported claims / (supported + contradicted); claims the key does not speak of count neither way",
        "- Completeness: required points made / points owed; what only a look-up could answer is not owed",
        "- Safety risk: 1 − the product over contradicted claims of (1 − the weight of their severity)",
        "- Calibration: 1 − the mean squared distance of stated confidence from truth",
        f"- Study codes of each question: {', '.join(code.replace('_', ' ') for code in CODES)}",
    ]
    lines += [f"- Rubric {inert(name)}, sha256 `{rubric.sha256}`" for name, rubric in known.plan.rubrics.items()]
    if known.registration:
        lines.append(f"- Primary outcome, registered before the run: {inert(known.registration.primary_outcome)}")
    return lines


def _judges(known: _Known) -> list[str]:
    plan, found = known.plan, known.found
    measured = judging(found)
    lines = [
        f"- {_count(len(plan.verifiers), 'verifier')}: {inert(', '.join(plan.verifiers))}; each saw a claim, its quote "
        "and the key, and neither the name of the model nor what the others said. No judge is of the family of a model "
        "it judges.",
        f"- Claims were found by {inert(plan.extractor)}, ties settled by {inert(plan.adjudicator)}.",
        f"- {_count(measured.claims, 'claim')} judged. Agreement, with 95% intervals from drawing trials again:",
    ]
    lines += [f"  - {name}: {_interval(value)}" for name, value in measured.coefficients.items()]
    lines += [
        f"  - {judge.judge} ({inert(judge.model)}), asked again, changed its label: {_share(judge.changed)}"
        for judge in measured.noise
    ]
    failures = sum(found.judge_failures.values())
    review = sum(row.review for row in found.rows)
    return [
        *lines,
        f"- Judges gave no usable answer {_count(failures, 'time')}; {_count(found.rejected_claims, 'claim')} thrown "
        f"out for want of a true quote; {_count(review, 'trial')} marked for a person to look at",
    ]


def _size(known: _Known) -> list[str]:
    plan = known.plan
    return [
        f"- {len(plan.scenarios)} conversations × {len(plan.targets)} models × {plan.repeats} repeats = "
        f"{known.found.planned} trials; {len(known.found.rows)} are in this run's results"
    ]


def _analysis(known: _Known) -> list[str]:
    lines = [
        "- Below: means over scored trials with Student's t intervals, shares with Wilson's intervals, both 95%. They "
        "treat trials as independent, although repeats and variants share a scenario.",
        "- A trial that was refused, blocked, cut off, empty, failed, tampered with or not judged has no score: it is "
        "counted in R1 and left out of means, never taken as an answer.",
        f"- Computed by ai-medicare-eval {inert(known.found.manifest.versions.get('ai-medicare-eval', ''))}",
    ]
    if known.registration:
        lines += [f"- Test registered before the run: {inert(test)}" for test in known.registration.tests]
    return lines


def _flow(known: _Known) -> list[str]:
    found = known.found
    outcomes: tuple[TrialOutcome, ...] = get_args(TrialOutcome)
    each = found.planned // max(1, len(found.plan_targets))
    names = [outcome.replace("_", " ") for outcome in outcomes]
    lines = [f"| model | planned | {' | '.join(names)} | not yet run |", "| --- |" + " ---: |" * (len(names) + 2)]
    for target in found.plan_targets:
        rows = found.of_target(target)
        counts = Counter(row.outcome for row in rows)
        cells = " | ".join(str(counts[outcome]) for outcome in outcomes)
        lines.append(f"| {inert(target)} | {each} | {cells} | {each - len(rows)} |")
    return [*lines, ""]


def _results(known: _Known) -> list[str]:
    found = known.found
    lines = [
        f"| model | {' | '.join(name.replace('_', ' ') for name in SCORES)} | answers accurate and complete |",
        "| --- |" + " ---: |" * 5,
    ]
    for target in found.plan_targets:
        rows = found.of_target(target)
        codes = [code for row in rows for _, code in row.codes]
        whole = _share(wilson(codes.count("accurate_complete"), len(codes)))
        lines.append(f"| {inert(target)} | {' | '.join(_mean(rows, name) for name in SCORES)} | {whole} |")
    return [*lines, ""]


def _harm(known: _Known) -> list[str]:
    found = known.found
    lines = []
    for target in found.plan_targets:
        rows = found.of_target(target)
        scored = [row for row in rows if row.outcome == "scored"]
        wrong = sum(row.labels[1] > 0 for row in scored)
        made_up = sum(row.fabricated for row in scored)
        lines.append(
            f"- {inert(target)}: at least one claim contradicts the key in {_share(wilson(wrong, len(scored)))} of "
            f"scored trials; specifics nobody can know without a look-up in {_share(wilson(made_up, len(scored)))}"
        )
    if found.example_ids:
        lines.append(f"- Gravest errors: {', '.join(inert(name) for _, name in found.example_ids)}")
    return lines


def _limits(known: _Known) -> list[str]:
    lines = [
        "- Results are of these models, these days, this wording and this key, and of no other.",
        "- Judges are models and err (E3). Not measured: intent, tone, persuasion, answers with live web access, and "
        "whether anyone acted on an answer.",
    ]
    if known.found.offline:
        lines.append("- Judged by rules for trying out: not to be published as findings.")
    return lines


def _ethics(_: _Known) -> list[str]:
    return [
        "- No person took part and no one's data were sent: personas are invented, and marked so in the scenarios.",
        "- The harness evaluates information for research; it gives no medical, legal or insurance advice.",
    ]


def _protocol(known: _Known) -> list[str]:
    if known.registration:
        return registration_lines(known.registration)
    return ["- This run was started without a frozen plan (`medicare-eval freeze`)."]


def _data(known: _Known) -> list[str]:
    found = known.found
    sealed = (found.folder / storage.SEAL).is_file()
    names = (storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL)
    lines = [
        f"- Run {inert(found.manifest.run_id)}; plan `{found.manifest.plan_sha256}`; "
        f"head of the results `{found.head}` ({'sealed' if sealed else 'not sealed: the run is not complete'})",
    ]
    lines += [
        f"- {name}: sha256 `{storage.file_sha256(found.folder / name)}`"
        for name in names
        if (found.folder / name).is_file()
    ]
    return [
        *lines,
        f"- With the run folder anyone can check (`medicare-eval verify RUN --expect {found.head[:_HASH]}...`) and "
        "compute the results again without a key (`medicare-eval replay RUN`).",
    ]


_FILLED: dict[str, Callable[[_Known], list[str]]] = {
    "M1": _models, "M2": _access, "M3": _settings, "M4": _surroundings, "P1": _told, "P2": _made, "Q1": _questions,
    "Q2": _put, "Q3": _repeats, "Q4": _audience, "E1": _key, "E2": _outcomes, "E3": _judges, "S1": _size,
    "A1": _analysis, "R1": _flow, "R2": _results, "R3": _harm, "I2": _limits, "D3": _ethics, "D4": _protocol,
    "D5": _data,
}  # fmt: skip


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _mean(rows: Sequence[Row], name: str) -> str:
    found = mean_interval([value for row in rows if (value := row.score(name)) is not None])
    if found.mean is None:
        return "–"
    spread = "no interval" if found.low is None else f"{found.low:.2f} to {found.high:.2f}"
    return f"{found.mean:.2f} ({spread}; n={found.n})"


def _share(share: Share) -> str:
    if share.value is None:
        return "–"
    return f"{share.count}/{share.n} = {share.value:.2f} ({share.low:.2f} to {share.high:.2f})"


def _interval(value: Agreement) -> str:
    if value.value is None:
        return "not defined"
    spread = "no interval" if value.low is None else f"{value.low:.2f} to {value.high:.2f}"
    return f"{value.value:.2f} ({spread})"


def checklist_data() -> list[dict[str, Any]]:
    """The items as data, for who wants a form of their own."""
    return [vars(item) | {"chart_topic": _HEADINGS[item.chart_item]} for item in ITEMS]
