"""How many calls and tokens a plan needs and what they cost, estimated before the first call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from ..adapters.capabilities import cache_rule
from ..records.model_name import split_name
from ..schemas import PlannedScenario, Price, Role, RunPlan, Stage, Usage
from .batches import NEVER_BATCHED
from .prices import RESULT_TOKENS, cost, price_for

# The assumptions behind an estimate; the docstring of `estimate` explains each.
CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 400
TOKENS_PER_CLAIM = 25
FACT_OVERHEAD = 15
VERDICT_TOKENS = 40
SCORER_TOKENS = 100
RETOLD = 1.2
EXTRACTOR_OVERHEAD = 100
TIED_SHARE = 0.1
MARKED_SHARE = 0.05
SHARED_CALLS = 2
REASONING_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class EstimateRow:
    role: Stage
    model: str
    target: str | None
    """Whose trials the calls are for; None for the questioner, whose wording all targets share."""
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Of the input: what the provider can read from its cache."""
    cost: float | None
    """With caching; None where the model's price is unknown."""


@dataclass
class _Counts:
    calls: float = 0.0
    sent: float = 0.0
    received: float = 0.0
    cached: float = 0.0
    written: float = 0.0
    searches: float = 0.0


@dataclass(frozen=True)
class _Start:
    """What calls of one role and model start with."""

    name: str
    """Calls with the same name start alike."""
    tokens: int


class _Tally:
    """Calls and tokens by role, model and target, in order of first use."""

    def __init__(self, api_id_of: Callable[[str], str]) -> None:
        self.counts: dict[EstimatedCalls, _Counts] = {}
        self._api_id_of = api_id_of
        self._seen: set[tuple[Stage, str, str]] = set()

    def add(
        self,
        role: Stage,
        model: str,
        target: str | None,
        *,
        calls: float,
        sent: float,
        received: float,
        searches: float = 0.0,
        start: _Start | None = None,
    ) -> None:
        """Count calls and the tokens that all of them send and receive."""
        counts = self.counts.setdefault(EstimatedCalls(role, model, target), _Counts())
        counts.calls += calls
        counts.sent += sent
        counts.received += received
        counts.searches += searches
        rule = cache_rule(split_name(model).provider, self._api_id_of(model)) if start and calls else None
        if start is None or rule is None or start.tokens < rule.shortest:
            return
        first = 0.0 if (role, model, start.name) in self._seen else min(1.0, calls)
        self._seen.add((role, model, start.name))
        counts.cached += (calls - first) * start.tokens
        if rule.how in ("cache_control", "breakpoints"):
            counts.written += first * start.tokens


def estimate(
    plan: RunPlan, prices: Mapping[str, Price], *, api_id_of: Callable[[str], str], batch: bool = False
) -> list[EstimateRow]:
    """Calls, tokens and cost of a plan, by role, model and target.

    Assumptions: a token is four characters. Every turn is asked. A reply has 400 tokens, or the plan's limit if that
    is lower, and a target is sent its system prompt and the whole conversation so far. A target that searches does so
    once per reply and reads 8,000 tokens of results. A target with a reasoning effort also writes half of its room for
    reasoning. The extractor reads prompt, question and reply and
    writes 1.2 times the reply plus 100 tokens. A reply has one claim per 25 tokens. A verifier's call reads prompt, key
    (15 tokens a fact more than its words), question and claims and writes 40 tokens per claim; how many claims it has
    is the plan's isolation, and with `flagged` the claims of a reply share two calls. The scorer reads prompt, question
    and reply and writes 100 tokens. One reply in twenty is marked and judged a second time, one claim per call. One
    claim in ten is tied, and the adjudicator, if there is one, reads and writes for it what a verifier does. The
    questioner writes 1.2 times its turns.

    Judges' calls of a scenario start alike, with prompt and key. If the model's provider caches that, and it is long
    enough to be cached, all but the first call are assumed to read it from the cache. Not counted: retries, reasoning
    tokens of judges and of targets without an effort, results of earlier searches that are sent back, background facts,
    a schema sent outside the prompt, and starts that are sent again because they were cached too long ago or are not
    cached yet. With `batch`, judges' calls have the prices of batches, where they are known.
    """
    tally = _Tally(api_id_of)
    for planned in plan.scenarios:
        if plan.questioner and planned.scenario.variation_knobs.paraphrase:
            turns = sum(_tokens(turn.user_message) for turn in planned.scenario.scripted_turns)
            sent, times = _tokens(plan.prompts["questioner"].text) + turns, plan.repeats
            tally.add(
                "questioner", plan.questioner, None, calls=times, sent=times * sent, received=times * RETOLD * turns
            )
    for target in plan.targets:
        for planned in plan.scenarios:
            _Trials(tally, plan.for_target(target), planned, target).count()
    return [
        _row(
            calls,
            counts,
            price_for(prices, split_name(calls.model).provider, api_id_of(calls.model)),
            batch=batch and calls.role not in NEVER_BATCHED,
        )
        for calls, counts in tally.counts.items()
    ]


class EstimatedCalls(NamedTuple):
    role: Stage
    model: str
    target: str | None


def _row(calls: EstimatedCalls, counts: _Counts, price: Price | None, *, batch: bool) -> EstimateRow:
    sent, received, cached, written = (
        ceil(round(count, 6)) for count in (counts.sent, counts.received, counts.cached, counts.written)
    )
    used = Usage(input_tokens=sent, output_tokens=received, cached_tokens=cached, cache_write_tokens=written)
    return EstimateRow(
        **calls._asdict(),
        calls=ceil(round(counts.calls, 6)),
        input_tokens=sent,
        output_tokens=received,
        cached_tokens=cached,
        cost=None if price is None else cost(price, used, searches=ceil(round(counts.searches, 6)), batch=batch),
    )


def _tokens(text: str) -> int:
    return ceil(len(text) / CHARACTERS_PER_TOKEN)


@dataclass(frozen=True)
class _Ways:
    """How often the claims of a reply are verified, on average."""

    together: float
    """In shared calls."""
    alone: float
    """One claim per call."""
    settled_together: float
    """Of the first: how often the verdicts count, so that ties are settled."""
    calls: int = 1
    """Calls that share the claims of a reply."""


def _ways(plan: RunPlan) -> _Ways:
    if plan.isolation == "claim":
        return _Ways(0.0, 1 + MARKED_SHARE, 0.0)
    if plan.isolation == "reply":
        return _Ways(1.0, MARKED_SHARE, 1.0)
    unmarked, audit = 1 - MARKED_SHARE, plan.audit_sample
    return _Ways(unmarked, unmarked * audit + 2 * MARKED_SHARE, unmarked * (1 - audit), SHARED_CALLS)


class _Trials:
    """All repeats of one scenario for one target."""

    def __init__(self, tally: _Tally, plan: RunPlan, planned: PlannedScenario, target: str) -> None:
        self._tally, self._plan, self._planned, self._target = tally, plan, planned, target
        self._prompts = {role: _tokens(prompt.text) for role, prompt in plan.prompts.items()}
        answer_key = planned.scenario.answer_key
        stated = [*(fact.statement for fact in answer_key.canonical_facts), *answer_key.disallowed_claims]
        self._key = sum(_tokens(statement) + FACT_OVERHEAD for statement in stated)
        self._reply = min(plan.parameters_of(target).max_tokens, REPLY_TOKENS)
        self._claims = ceil(self._reply / TOKENS_PER_CLAIM)
        self._retold = RETOLD * self._reply + EXTRACTOR_OVERHEAD

    def count(self) -> None:
        plan, settings = self._plan, self._plan.settings_of(self._target)
        searches = 1 if settings.search else 0
        reasoning = settings.reasoning_tokens * REASONING_SHARE if settings.reasoning_effort else 0.0
        context = _tokens(settings.system_prompt.text) if settings.system_prompt else 0
        for turn in self._planned.scenario.scripted_turns:
            question = _tokens(turn.user_message)
            read, written = context + question + searches * RESULT_TOKENS, self._reply + reasoning
            self._add("target", self._target, 1, read, written, searches=searches)
            context += question + self._reply
            self._count_reading("extractor", plan.extractor, question, self._retold)
            self._count_reading("scorer", plan.scorer, question, SCORER_TOKENS)
            again = 1 + plan.judge_repeats * plan.judge_sample
            ways = _ways(plan)
            for verifier in plan.verifiers:
                alone = again * ways.alone * self._claims
                self._add_verdicts("verifier", verifier, question, again * ways.together * ways.calls + alone)
                written = again * (ways.together + ways.alone)
                self._add("verifier", verifier, 0, written * self._retold, written * VERDICT_TOKENS * self._claims)
            if plan.adjudicator is not None:
                self._count_ties(plan.adjudicator, question, ways)

    def _count_reading(self, role: Role, model: str, question: int, received: float) -> None:
        """The extractor's or the scorer's."""
        times, prompt = 1 + MARKED_SHARE, self._prompts[role]
        sent = times * (prompt + question + self._reply)
        self._add(role, model, times, sent, times * received, start=_Start("", prompt))

    def _count_ties(self, adjudicator: str, question: int, ways: _Ways) -> None:
        ties = TIED_SHARE * self._claims
        calls = ways.settled_together * min(1.0, ties) + ways.alone * ties
        self._add_verdicts("adjudicator", adjudicator, question, calls)
        share = TIED_SHARE * (ways.settled_together + ways.alone)
        self._add("adjudicator", adjudicator, 0, share * self._retold, share * VERDICT_TOKENS * self._claims)

    def _add_verdicts(self, role: Role, model: str, question: int, calls: float) -> None:
        """Calls about claims, without the claims."""
        start = _Start(self._planned.name, self._prompts[role] + self._key)
        self._add(role, model, calls, calls * (start.tokens + question), 0, start=start)

    def _add(
        self,
        role: Stage,
        model: str,
        calls: float,
        sent: float,
        received: float,
        *,
        searches: int = 0,
        start: _Start | None = None,
    ) -> None:
        """Of one trial; there are as many as repeats."""
        n = self._plan.repeats
        self._tally.add(
            role,
            model,
            self._target,
            calls=n * calls,
            sent=n * sent,
            received=n * received,
            searches=n * searches,
            start=start,
        )
