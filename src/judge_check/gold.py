"""Load the gold set: each reply with its question, its answer key and its labeled claims, checked for errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from ..agents import questioner, verifier
from ..agents.ask import AskedTurn, about, state_of
from ..errors import InputError
from ..planning.fill_facts import background_for, check_ids
from ..planning.library import Library
from ..planning.rubrics import load_rubric, load_rubrics
from ..planning.scenario_files import ScenarioFile, expand, read_scenario
from ..records.judge_check import GoldClaim, GoldFile, GoldReply, Split
from ..runner.judge_turn import FactFinder
from ..schemas import (
    BackgroundFact,
    ClaimInView,
    FactInView,
    KeyInView,
    PlannedScenario,
    QuestionerInput,
    QuoteSpan,
    Rubric,
    Scenario,
    Verdict,
)
from ..store.input_files import read_user_file
from ..store.package_data import data_folder
from ..store.strict_json import derive_seed, sha256
from ..text.quotes import find_quote


@dataclass(frozen=True)
class GoldItem:
    """One reply of the gold set, with what judges are shown of it."""

    path: Path
    scenario_id: str
    reply: GoldReply
    asked: AskedTurn
    key: KeyInView
    scenario: Scenario
    """Filled in for the plan year of the gold set."""
    rubric: Rubric
    state: str | None
    """The code of the persona's state, if there are facts of that state."""
    claims: tuple[ClaimInView, ...]
    spans: tuple[tuple[QuoteSpan, ...], ...]
    """Where each claim's quotes are in the reply."""
    background: tuple[FactInView, ...] = ()
    """Facts of the library about these claims: those that a run would find, and those that the gold labels cite."""

    @property
    def shown(self) -> verifier.Shown:
        """What verifiers of gold claims are shown."""
        return verifier.Shown(self.asked, self.key, self.background)


@dataclass(frozen=True)
class Gold:
    items: tuple[GoldItem, ...]
    files: Mapping[str, str]
    """Gold file to its hash."""
    references: Mapping[str, str]
    """Facts and plan files that filled the keys, to their hashes."""
    rubrics: Mapping[str, str]
    """Version to hash."""
    background: tuple[BackgroundFact, ...]
    """Of the plan year that the gold set is for."""

    @property
    def claims(self) -> int:
        return sum(len(item.claims) for item in self.items)

    def drawn(self, limit: int | None, seed: int) -> Gold:
        """Only so many replies, drawn at random by the seed, in the order of the files; None: all."""
        if limit is None or limit >= len(self.items):
            return self
        chosen = set(Random(derive_seed(seed, "limit")).sample(range(len(self.items)), limit))  # noqa: S311
        return replace(self, items=tuple(item for at, item in enumerate(self.items) if at in chosen))

    def off_topic(self) -> tuple[str, ...]:
        """Gold claims whose label a verifier may not give with the gold evidence, by the rule of topical overlap.

        Gold labels that break another rule are refused when they are loaded.
        """
        return tuple(
            f"{item.reply.reply_id} {claim.claim_id}"
            for item in self.items
            for claim, seen in zip(item.reply.claims, item.claims, strict=True)
            if verifier.violations(verdict_of(claim), seen, item.shown)
        )


def verdict_of(claim: GoldClaim) -> Verdict:
    return Verdict(
        claim_id=claim.claim_id, label=claim.label, evidence=claim.evidence, severity=claim.severity, notes=""
    )


def load_gold(split: Split, folder: Path | None = None) -> Gold:
    """Read one part of the gold set, or all files of a folder.

    Each scenario is filled in for the plan year that the gold set was written for.

    Raises:
        InputError: a file is not valid, or a label breaks the rules that judges must follow.
    """
    root = folder or data_folder("gold") / split
    files: dict[str, str] = {}
    sources: dict[Path, GoldFile] = {}
    for path in sorted(root.glob("*.json")):
        data, sources[path] = read_user_file(path, GoldFile)
        files[f"{split}/{path.name}"] = sha256(data)
    if not sources:
        raise InputError(f"{root} contains no gold files. Give a folder of .json files with `gold`.")
    found = gold_of(root, sources)
    for item in found.items:
        for claim_id, problem in label_problems(item).items():
            raise InputError(f"{item.path}: {item.reply.reply_id} {claim_id} {problem}.")
    return replace(found, files=files)


def gold_of(root: Path, sources: Mapping[Path, GoldFile]) -> Gold:
    """Gold files with their questions, keys and facts; their labels are not checked."""
    library = Library()
    bank = {path.stem: path for path in expand([str(data_folder("scenarios"))])}
    items: list[GoldItem] = []
    scenarios: list[ScenarioFile] = []
    every: list[PlannedScenario] = []
    years: set[int] = set()
    for path, gold in sources.items():
        if gold.scenario_id not in bank:
            raise InputError(f"{path}: field scenario_id: there is no scenario {gold.scenario_id!r} in the bank.")
        scenarios.append(read_scenario(bank[gold.scenario_id]))
        planned = {one.variant: one for one in scenarios[-1].planned(gold.plan_year, library)}
        rubric = load_rubric(scenarios[-1].scenario.rubric_version, scenarios[-1].path).rubric
        every += planned.values()
        years.add(gold.plan_year)
        for reply in gold.replies:
            _check_ids(path, reply, items)
            items.append(_item(path, gold, reply, planned, rubric))
    if len(years) > 1:
        listed = ", ".join(map(str, sorted(years)))
        raise InputError(f"{root} has files of several plan years ({listed}). Check each year by itself.")
    background = background_for(years.pop(), library, {one.scenario.persona.state for one in every})
    check_ids(every, background)
    shown = _with_background(items, background.facts)
    rubrics = {version: rubric.sha256 for version, rubric in load_rubrics(scenarios).items()}
    return Gold(shown, {}, library.used, rubrics, background.facts)


def _with_background(items: Sequence[GoldItem], facts: Sequence[BackgroundFact]) -> tuple[GoldItem, ...]:
    finder, by_id = FactFinder(facts), {fact.fact_id: fact for fact in facts}
    ready = []
    for item in items:
        found = {fact.fact_id: fact for fact in finder.find(item.claims, item.key, item.state)}
        cited = {one for claim in item.reply.claims for one in claim.evidence}
        found |= {one: verifier.fact_in_view(by_id[one]) for one in cited & by_id.keys()}
        ready.append(replace(item, background=tuple(found[one] for one in sorted(found))))
    return tuple(ready)


def _check_ids(path: Path, reply: GoldReply, items: Sequence[GoldItem]) -> None:
    if any(item.reply.reply_id == reply.reply_id for item in items):
        raise InputError(f"{path}: reply_id {reply.reply_id!r} is used more than once in the gold set.")
    names = [claim.claim_id for claim in reply.claims]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(f"{path}: {reply.reply_id}: claim_id {repeated[0]!r} is used more than once.")


def _item(
    path: Path, gold: GoldFile, reply: GoldReply, planned: Mapping[str | None, PlannedScenario], rubric: Rubric
) -> GoldItem:
    if reply.variant and reply.variant not in planned:
        raise InputError(f"{path}: {reply.reply_id}: the scenario has no variant {reply.variant!r}.")
    asked_of = planned.get(reply.variant) or next(iter(planned.values()))
    scenario = asked_of.scenario
    turns = questioner.question(QuestionerInput(scenario=scenario, seed=0)).turns
    place = next((at for at, turn in enumerate(turns) if turn.turn_id == reply.turn_id), None)
    if place is None:
        raise InputError(f"{path}: {reply.reply_id}: the scenario has no turn {reply.turn_id!r}.")
    conditional = {turn.turn_id for turn in scenario.scripted_turns if turn.condition}
    earlier = tuple(turn.user_message for turn in turns[:place] if turn.turn_id not in conditional)
    said = reply.asked or (*earlier, turns[place].user_message)
    spans = tuple(_spans(path, reply, claim) for claim in reply.claims)
    return GoldItem(
        path=path,
        scenario_id=gold.scenario_id,
        reply=reply,
        asked=AskedTurn(said[-1], gold.plan_year, said[:-1], about(scenario.persona), state_of(scenario.persona)),
        key=verifier.key_in_view(scenario.answer_key),
        scenario=scenario,
        rubric=rubric,
        state=asked_of.state_code,
        claims=tuple(_in_view(reply, claim, where) for claim, where in zip(reply.claims, spans, strict=True)),
        spans=spans,
    )


def _spans(path: Path, reply: GoldReply, claim: GoldClaim) -> tuple[QuoteSpan, ...]:
    found = tuple(span for quote in claim.quotes if (span := find_quote(reply.text, quote)))
    if len(found) < len(claim.quotes):
        raise InputError(f"{path}: {reply.reply_id} {claim.claim_id}: a quote is not in the reply.")
    return found


def _in_view(reply: GoldReply, claim: GoldClaim, spans: Sequence[QuoteSpan]) -> ClaimInView:
    """The claim as judges see it: without its label and reason."""
    quotes = tuple(reply.text[span.start : span.end] for span in spans)
    return ClaimInView(claim_id=claim.claim_id, text=claim.text, quotes=quotes)


def label_problems(item: GoldItem) -> dict[str, str]:
    """By claim: how its gold label breaks the rules that a judge's verdicts must follow, except topical overlap.

    Topical overlap is a rough test of words that some correct labels fail; `Gold.off_topic` lists those.
    """
    facts = item.shown.facts
    found: dict[str, str] = {}
    for claim, seen in zip(item.reply.claims, item.claims, strict=True):
        cited = tuple(facts[one].statement for one in claim.evidence if one in facts)
        in_the_key_s_words = seen.model_copy(update={"quotes": (*seen.quotes, *cited)})
        for problem in verifier.violations(verdict_of(claim), in_the_key_s_words, item.shown):
            found.setdefault(claim.claim_id, problem)
    return found
