"""The questioner: takes a scenario and a seed, and returns the exact turns to ask. Code does this.

It fills slots, draws knobs and orders turns as the scenario allows, and nothing else. The draw depends on the run's
seed, the scenario and the repetition, never on the target: every target is asked the same. A model rewords the turns
only if the scenario and the user both allow it, and code then checks that turns and figures stayed the same.
"""

from __future__ import annotations

import random
import re

from ..schemas import SLOT, Condition, PlannedTurn, QuestionerInput, QuestionerOutput
from ..store.strict_json import derive_seed
from ..text.figures import figures
from ..text.quotes import fold
from .ask import JudgeAnswer, JudgeClient, ask


def question(payload: QuestionerInput) -> QuestionerOutput:
    """The turns, in the order in which to ask them."""
    scenario, knobs = payload.scenario, payload.scenario.variation_knobs
    drawn = {
        name: _random(payload.seed, "choice", name).choice(values) for name, values in sorted(knobs.choices.items())
    }
    turns = [
        PlannedTurn(
            turn_id=turn.turn_id,
            user_message=SLOT.sub(lambda match: scenario.slot_value(match.group(1), drawn), turn.user_message),
        )
        for turn in scenario.scripted_turns
    ]
    for number, group in enumerate(knobs.shuffle):
        places = [place for place, turn in enumerate(turns) if turn.turn_id in group]
        moved = [turns[place] for place in places]
        _random(payload.seed, "shuffle", number).shuffle(moved)
        for place, turn in zip(places, moved, strict=True):
            turns[place] = turn
    return QuestionerOutput(turns=tuple(turns))


def _random(seed: int, *use: object) -> random.Random:
    return random.Random(derive_seed(seed, *use))  # noqa: S311 - for study design, not for secrets


async def paraphrase(client: JudgeClient, turns: QuestionerOutput) -> JudgeAnswer[QuestionerOutput]:
    """The turns reworded by a model."""

    def check(reply: QuestionerOutput, _: QuestionerOutput | None) -> JudgeAnswer[QuestionerOutput]:
        problems = changes(turns, reply)
        return JudgeAnswer(None if problems else reply, problems)

    return await ask(client, turns, QuestionerOutput, check, longest=len(turns.turns))


def changes(before: QuestionerOutput, after: QuestionerOutput) -> tuple[str, ...]:
    """How a rewording differs from the original where it must not: in its turns or in their figures."""
    if [turn.turn_id for turn in after.turns] != [turn.turn_id for turn in before.turns]:
        return (f"the turn ids must be {[turn.turn_id for turn in before.turns]}, in this order",)
    return tuple(
        f"turn {old.turn_id}: the figures must stay exactly {sorted(figures(old.user_message))}"
        for old, new in zip(before.turns, after.turns, strict=True)
        if figures(old.user_message) != figures(new.user_message)
    )


def holds(condition: Condition | None, last_reply: str | None) -> bool:
    """Whether to ask a conditional turn after this reply."""
    if condition is None:
        return True
    reply = last_reply or ""
    if condition.unless_last_reply_mentions and mentions(reply, condition.unless_last_reply_mentions):
        return False
    return not condition.if_last_reply_mentions or mentions(reply, condition.if_last_reply_mentions)


def mentions(reply: str, phrases: tuple[str, ...]) -> bool:
    """Whether one of the phrases appears in the reply as whole words, in any case and typography."""
    folded = fold(reply)
    for phrase in phrases:
        words = r"\s+".join(re.escape(word) for word in fold(phrase).split())
        if re.search(rf"(?<!\w){words}(?!\w)", folded, re.IGNORECASE):
            return True
    return False
