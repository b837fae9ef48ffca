"""How many calls and tokens a plan needs and what they cost, estimated before the first call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil

from ..records.model_name import split_name
from ..schemas import PlannedScenario, Price, RunPlan, Stage, Usage
from .prices import cost, price_for

# The assumptions behind an estimate; the docstring of `estimate` explains each.
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
    """Calls and tokens by role, model and target, in order of first use."""

    def __init__(self) -> None:
        self.counts: dict[tuple[Stage, str, str | None], tuple[float, float, float]] = {}

    def add(self, role: Stage, model: str, target: str | None, *, calls: float, sent: float, received: float) -> None:
        """Count calls and the tokens that all of them send and receive."""
        old = self.counts.get((role, model, target), (0.0, 0.0, 0.0))
        self.counts[role, model, target] = (old[0] + calls, old[1] + sent, old[2] + received)


def estimate(plan: RunPlan, prices: Mapping[str, Price], *, api_id_of: Callable[[str], str]) -> list[EstimateRow]:
    """Calls, tokens and cost of a plan, by role, model and target.

    Assumptions: a token is four characters. Every turn is asked. A reply has 400 tokens, or the plan's limit if that
    is lower, and a target is sent the whole conversation so far. The extractor reads prompt, question and reply and
    writes 1.2 times the reply plus 100 tokens. A reply has one claim per 25 tokens. Each verifier reads prompt,
    question, key and claims and writes 40 tokens per claim. The scorer reads prompt, question and reply and writes 100
    tokens. One claim in ten is tied, and the adjudicator reads and writes for it what a verifier does. The questioner
    writes 1.2 times its turns. Not counted: retries, caching, reasoning tokens, and a schema sent outside the prompt.
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
    """All repeats of one scenario for one target."""
    prompts = {role: _tokens(prompt.text) for role, prompt in plan.prompts.items()}
    answer_key = planned.scenario.answer_key
    key = sum(_tokens(fact.statement) for fact in answer_key.canonical_facts)
    key += sum(_tokens(statement) for statement in answer_key.disallowed_claims)
    reply = min(plan.parameters_of(target).max_tokens, REPLY_TOKENS)
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
