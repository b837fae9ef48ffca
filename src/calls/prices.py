"""What calls cost: a dated price table that can be overridden, the cost of a call, a budget, and an estimate of a plan.

Amounts are US dollars. A price nobody stated is None and stays so: an unknown cost is never counted as nothing. Where
it is not known whether a call was billed, it counts as if it had been, so that a limit holds. This file knows records
only, and neither adapters nor the environment: reports may use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from math import ceil, isfinite
from pathlib import Path
from typing import Literal

from ..errors import InputError
from ..records.model_name import split_name
from ..schemas import (
    CallOutcome,
    IsoDate,
    ModelName,
    PlannedScenario,
    Price,
    Record,
    RunPlan,
    Stage,
    Usage,
)
from ..store.input_files import read_user_file

PRICE_FILE = Path(__file__).resolve().parent / "prices.json"
PER = 1_000_000
"""Prices are for this many tokens."""
FREE_PROVIDERS = ("fake", "offline")
MAYBE_BILLED: frozenset[CallOutcome] = frozenset(
    {"ok", "refused", "blocked", "truncated", "empty", "timeout", "malformed", "transient"}
)
"""Outcomes after which the provider may have sent a bill, unless it answered with an HTTP error."""
_DATE_SUFFIX = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))$")
_PARTS = 10**12
"""A budget counts in whole parts of a dollar: sums of floats drift, and a limit must not."""


class PriceTable(Record):
    """A file of prices."""

    as_of: IsoDate
    currency: Literal["USD"]
    unit: Literal["1M tokens"]
    note: str = ""
    prices: dict[ModelName, Price]
    """By `provider:API id`."""


FREE = Price(input=0.0, output=0.0, cached=0.0, source="runs on this machine", read="2026-11-16")


def read_table(path: Path) -> PriceTable:
    """A price file; what is wrong with it is said with file and field."""
    return read_user_file(path, PriceTable)[1]


def load_prices(
    override: Path | None, *, today: date | None = None, full_id: Callable[[str], str] = lambda name: name
) -> dict[str, Price]:
    """The built-in prices, with a user's own added and put in place of them; those in force on `today`, if given.

    `full_id` turns a name as a user may write it (`grok:grok-2`) into the one rows are kept by (`xai:grok-2-1212`).
    """
    found = dict(read_table(PRICE_FILE).prices)
    if override is not None:
        given: dict[str, str] = {}
        for name, price in read_table(override).prices.items():
            row = full_id(name)
            if given.setdefault(row, name) != name:
                raise InputError(f"{override}: field prices > {name}: means the same as {given[row]}; keep one.")
            found[row] = price
    return {name: price.on(today) if today else price for name, price in found.items()}


def _undated(name: str) -> str:
    return _DATE_SUFFIX.sub("", name)


def price_for(prices: Mapping[str, Price], provider: str, api_id: str) -> Price | None:
    """A model's price: its own row, or that of the same id with or without a date where only one can be meant."""
    if provider in FREE_PROVIDERS:
        return FREE
    name = f"{provider}:{api_id}"
    if name in prices:
        return prices[name]
    if _undated(name) != name:
        return prices.get(_undated(name))
    dated = [price for row, price in prices.items() if _undated(row) == name]
    return dated[0] if len(dated) == 1 else None


def cost(price: Price, usage: Usage) -> float | None:
    """What a call cost by the tokens it used; None where the provider did not say how many."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    cached_rate = price.input if price.cached is None else price.cached
    whole = (usage.input_tokens - cached) * price.input + cached * cached_rate + usage.output_tokens * price.output
    return whole / PER


def worst_case(price: Price, characters: int, max_tokens: int) -> float:
    """The most a call should cost: a token for every three characters sent, and the longest reply."""
    return (ceil(characters / 3) * price.input + max_tokens * price.output) / PER


def charge(outcome: CallOutcome, status: int | None, usage: Usage, price: Price | None, reserved: float) -> float:
    """What an attempt counts as: by its usage if known; in full if it may have been billed; else nothing."""
    known = cost(price, usage) if price else None
    if known is not None:
        return known
    refused_by_http = status is not None and not 200 <= status < 300
    return reserved if outcome in MAYBE_BILLED and not refused_by_http else 0.0


class Budget:
    """What may be spent, what is, and what calls in flight may still cost. For one event loop: it never waits.

    As long as no call costs more than was reserved for it, spent and reserved together never pass the limit. Should
    one do, what it cost is counted all the same, and nothing more is granted.
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = None if limit is None else _parts(limit)
        self._spent = 0
        self._reserved = 0

    @property
    def spent(self) -> float:
        return self._spent / _PARTS

    @property
    def reserved(self) -> float:
        return self._reserved / _PARTS

    def reserve(self, amount: float) -> bool:
        """Set an amount aside before a call; False, and nothing set aside, where it could pass the limit."""
        parts = _parts(amount)
        if self._limit is not None and self._spent + self._reserved + parts > self._limit:
            return False
        self._reserved += parts
        return True

    def settle(self, reserved: float, actual: float) -> None:
        """Put what a call cost in the place of what was reserved for it.

        A call that the journal already holds is settled with nothing reserved.
        """
        held, paid = _parts(reserved), _parts(actual)
        if held > self._reserved:
            raise ValueError("more is settled than was reserved")
        self._reserved -= held
        self._spent += paid


def _parts(amount: float) -> int:
    if not isfinite(amount) or amount < 0:
        raise ValueError(f"an amount of money is a number from 0, not {amount}")
    return round(amount * _PARTS)


# How a plan's calls are guessed at; `estimate` says in words what each stands for.
CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 400
TOKENS_PER_CLAIM = 25
VERDICT_TOKENS = 40
SCORER_TOKENS = 100
RETOLD = 1.2
EXTRACTOR_OVERHEAD = 100
TIED_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class EstimateRow:
    role: Stage
    model: str
    target: str | None
    """Whose trials the calls are for; None for the questioner, whose wording all targets share."""
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    """None where the model's price is unknown."""


class _Tally:
    """Calls and tokens by role, model and target, in the order in which they are first counted."""

    def __init__(self) -> None:
        self.counts: dict[tuple[Stage, str, str | None], tuple[float, float, float]] = {}

    def add(self, role: Stage, model: str, target: str | None, *, calls: float, sent: float, received: float) -> None:
        """Count calls and the tokens that all of them send and receive."""
        old = self.counts.get((role, model, target), (0.0, 0.0, 0.0))
        self.counts[role, model, target] = (old[0] + calls, old[1] + sent, old[2] + received)


def estimate(plan: RunPlan, prices: Mapping[str, Price], *, api_id_of: Callable[[str], str]) -> list[EstimateRow]:
    """Calls, tokens and cost of a plan, by role, model and target.

    A guess before the first call, from the plan's own texts: a token is four characters. Every turn is asked; a reply
    has 400 tokens, or the most the plan allows if that is less; a target is sent the whole conversation so far. The
    extractor gets prompt, question and reply and writes the reply again by 1.2, and 100 tokens. A reply holds a claim
    for every 25 tokens. Each verifier gets prompt, question, key and claims, and writes 40 tokens a claim. The scorer
    gets prompt, question and reply and writes 100 tokens. Every tenth claim is tied: the adjudicator gets and writes
    for those what a verifier does. The questioner writes its turns by 1.2. No call is repeated, none is cached, and
    neither thinking nor a schema sent apart from the prompt is counted.
    """
    tally = _Tally()
    for planned in plan.scenarios:
        if plan.questioner and planned.scenario.variation_knobs.paraphrase:
            turns = sum(_tokens(turn.user_message) for turn in planned.scenario.scripted_turns)
            sent, times = _tokens(plan.prompts["questioner"].text) + turns, plan.repeats
            tally.add(
                "questioner", plan.questioner, None, calls=times, sent=times * sent, received=times * RETOLD * turns
            )
    for target in plan.targets:
        for planned in plan.scenarios:
            _count_trials(tally, plan, planned, target)
    return [
        _row(role, model, target, counts, price_for(prices, split_name(model).provider, api_id_of(model)))
        for (role, model, target), counts in tally.counts.items()
    ]


def _row(
    role: Stage, model: str, target: str | None, counts: tuple[float, float, float], price: Price | None
) -> EstimateRow:
    calls, sent, received = (ceil(round(count, 6)) for count in counts)
    return EstimateRow(
        role=role,
        model=model,
        target=target,
        calls=calls,
        input_tokens=sent,
        output_tokens=received,
        cost=None if price is None else cost(price, Usage(input_tokens=sent, output_tokens=received)),
    )


def _tokens(text: str) -> int:
    return ceil(len(text) / CHARACTERS_PER_TOKEN)


def _count_trials(tally: _Tally, plan: RunPlan, planned: PlannedScenario, target: str) -> None:
    """All repeats of one scenario put to one target."""
    prompts = {role: _tokens(prompt.text) for role, prompt in plan.prompts.items()}
    answer_key = planned.scenario.answer_key
    key = sum(_tokens(fact.statement) for fact in answer_key.canonical_facts)
    key += sum(_tokens(statement) for statement in answer_key.disallowed_claims)
    reply = min(plan.target_parameters.max_tokens, REPLY_TOKENS)
    claims = ceil(reply / TOKENS_PER_CLAIM)
    retold = RETOLD * reply + EXTRACTOR_OVERHEAD
    context, times = 0, plan.repeats

    def add(role: Stage, model: str, sent: float, received: float) -> None:
        tally.add(role, model, target, calls=times, sent=times * sent, received=times * received)

    for turn in planned.scenario.scripted_turns:
        question = _tokens(turn.user_message)
        add("target", target, context + question, reply)
        context += question + reply
        add("extractor", plan.extractor, prompts["extractor"] + question + reply, retold)
        for verifier in plan.verifiers:
            add("verifier", verifier, prompts["verifier"] + question + key + retold, VERDICT_TOKENS * claims)
        add("scorer", plan.scorer, prompts["scorer"] + question + reply, SCORER_TOKENS)
        asked = times * min(1.0, TIED_SHARE * claims)
        tally.add(
            "adjudicator",
            plan.adjudicator,
            target,
            calls=asked,
            sent=asked * (prompts["adjudicator"] + question + key) + times * TIED_SHARE * retold,
            received=times * TIED_SHARE * VERDICT_TOKENS * claims,
        )
