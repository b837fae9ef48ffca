"""Hostile replies through the whole judging of a conversation: `python -m tests.fuzz_conversations`.

Each conversation has a few turns; what the target says is made from a seed: long text without punctuation, one sentence
repeated, one line of many characters, bytes read as text, deep Markdown, mixed scripts, text that no reader sees. The
judges behind it answer by rule, some of them badly. Every conversation ends with a result that can be written, in few
calls and few characters, and no fault of the code is hidden in it. The same seed gives the same conversations.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from src.adapters.base import ModelRequest
from src.calls.gateway import CallId, Gateway
from src.orchestrator import TrialRunner
from src.planning.trials import trials
from src.records.base import TrialOutcome
from src.runner.judge_turn import MOST_CHARACTERS
from src.schemas import CallRecord, RunPlan, TrialResult
from src.storage import encode_record
from tests.helpers import call_record, fact_json, scenario
from tests.scripted_judges import ADVICE, CATS, MARKED, NETWORKS, PREMIUM, Judges, Seen, a_plan

TURNS = 3
CALLS_PER_REPLY = 900
"""Judges' calls of one reply: no reply makes more, however long it is."""
SHOWN_PER_CALL = 4 * MOST_CHARACTERS + 20_000
"""Characters that one call may show: the limit of a reply, what is asked for again, and the key."""

WORDS = [
    "Medicare",
    "Part",
    "B",
    "plan",
    "premium",
    "$202.90",
    "a",
    "month",
    "deductible",
    "20%",
    "you",
    "may",
    "not",
    "must",
    "always",
    "never",
    "enroll",
    "penalty",
    "because",
    "October",
    "15",
    "7",
    "months",
    "Medigap",
    "Medicaid",
    "network",
    "covered",
    "and",
    "but",
    "or",
    "if",
    "after",
    "before",
    "until",
    "Mr.",
    "e.g.",
    "U.S.",
    "65",
    "1-800-MEDICARE",
]
SCRIPTS = (
    "Медикэр оплачивает",
    "メディケアは支払う",
    "医疗保险支付",
    "ميديكير يدفع",
    "מדיקר משלם",
    "เมดิแคร์จ่าย",
    "मेडिकेयर",
    "🙂🙃",
)
SENTENCES = (NETWORKS, PREMIUM, CATS, ADVICE, MARKED)


def _words(dice: random.Random, number: int) -> str:
    return " ".join(dice.choices(WORDS, k=number))


def _size(dice: random.Random) -> int:
    return dice.choice((3, 40, 900, 6_000, 30_000))


def _markdown(dice: random.Random) -> str:
    depth = dice.choice((3, 60, 2_000))
    mark = dice.choice(("> ", "#", "- ", "  ", "**", "`", "[", "|", "1. ", "<b>", "![", "~~~\n", "```\n"))
    inner = dice.choice(SENTENCES)
    return dice.choice(
        (
            mark * depth + inner,
            "\n".join(mark * at + inner for at in range(1, min(depth, 90))),
            "\n".join("|".join([inner] * dice.randrange(1, 9)) for _ in range(min(depth, 90))),
            mark * depth + inner + mark * depth,
        )
    )


def _unseen(dice: random.Random) -> str:
    hidden = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e\u0301\ufe0f\U000e0041"
    text = dice.choice((*SENTENCES, ""))
    return "".join(
        char + "".join(dice.choices(hidden, k=dice.choice((0, 1, 30)))) for char in text * dice.choice((1, 40))
    )


KINDS: dict[str, Callable[[random.Random], str]] = {
    "no punctuation": lambda dice: _words(dice, _size(dice)),
    "repeats": lambda dice: dice.choice((" ", "\n", "", "\n\n")).join(
        [dice.choice(SENTENCES)] * dice.choice((2, 50, 3_000, 100_000))
    ),
    "one character": lambda dice: dice.choice("a.0$ \n#*|>?!,;:-\u00a0é漢") * dice.choice((1, 500, 100_000)),
    "one line": lambda dice: "".join(dice.choices("abcdefghij$0123456789%", k=_size(dice) * 5)),
    "like bytes": lambda dice: dice.randbytes(_size(dice)).decode("latin-1"),
    "any characters": lambda dice: "".join(chr(dice.randrange(0x20, 0xD800)) for _ in range(_size(dice))),
    "markdown": _markdown,
    "scripts": lambda dice: dice.choice((" ", ". ", "")).join(
        dice.choice((*SCRIPTS, *SENTENCES)) for _ in range(min(_size(dice), 2_000))
    ),
    "unseen": _unseen,
    "mixed": lambda dice: "\n".join(dice.choice((_markdown, _unseen, lambda d: _words(d, 50)))(dice) for _ in range(5)),
    "figures": lambda dice: " ".join(
        f"{dice.choice('$#-')}{dice.randrange(10 ** dice.randrange(1, 30))}{dice.choice(('%', ' months', ',', '.', '/'))}"
        for _ in range(min(_size(dice), 3_000))
    ),
    "an answer": lambda dice: " ".join(dice.choices(SENTENCES, k=dice.randrange(1, 9))),
}


@dataclass
class Target(Judges):
    """A target that says these replies, and judges that answer by rule, each in a way of its own."""

    replies: Sequence[str] = ()
    dice: random.Random = field(default_factory=lambda: random.Random(0))
    characters: int = 0
    """The most that one call showed."""

    async def call(self, call: CallId, request: ModelRequest) -> CallRecord:
        if call.stage == "target":
            text = self.replies[int(call.turn.removeprefix("Q")) - 1]
            return call_record(call.attempt(1), request=request, text=text, outcome="ok" if text.strip() else "empty")
        self.characters = max(self.characters, sum(len(message.content) for message in request.messages[:1]))
        return await super().call(call, request)

    def _extractor(self, one: Seen) -> dict[str, Any]:
        way = self.dice.randrange(6)
        reply = one.payload["reply"]
        if way == 0:
            return {"claims": []}
        if way == 1:
            quotes = [reply[:19_000], reply[-50:]]
            claim = {"text": reply[:300], "quotes": quotes, "type": "factual", "confidence": "low", "verifiable": True}
            return {"claims": [{"claim_id": "C1", **claim}]}
        claims = super()._extractor(one)["claims"]
        most = max(10, len(reply) // 20)
        return {"claims": self.dice.sample(claims, min(len(claims), most if way > 3 else 20))}


def conversation(number: int, seed: int) -> tuple[str, Target]:
    """Its kind, and what the target says; the kinds go round."""
    dice = random.Random(f"{seed}|{number}")
    name = list(KINDS)[number % len(KINDS)]
    others = [dice.choice((KINDS[name], KINDS["an answer"]))(dice) for _ in range(TURNS - 1)]
    replies = [KINDS[name](dice), *others]
    dice.shuffle(replies)
    return name, Target(replies=replies, dice=dice)


def planned(seed: int) -> RunPlan:
    asked = [
        {"turn_id": f"Q{n}", "user_message": f"Question {n}?", "required_points": ["F1"]} for n in range(1, TURNS + 1)
    ]
    key = {
        "canonical_facts": [fact_json("F1", NETWORKS), fact_json("F2", PREMIUM, "high")],
        "required_points": ["F1", "F2"],
        "disallowed_claims": ["Naming a doctor as in-network"],
    }
    made = a_plan(audit_sample=0.2)
    one = made.scenarios[0].model_copy(update={"scenario": scenario(scripted_turns=asked, answer_key=key)})
    return made.model_copy(update={"scenarios": (one,), "seed": seed})


def problems(result: TrialResult, target: Target) -> list[str]:
    """What is wrong with how a conversation ended."""
    found = []
    if result.outcome not in get_args(TrialOutcome):
        found.append(f"outcome {result.outcome}")
    found += [f"{one.stage}: {one.reason[:300]}" for one in result.judge_failures if "internal error" in one.reason]
    if len(target.seen) > TURNS * CALLS_PER_REPLY:
        found.append(f"{len(target.seen)} calls of judges")
    if target.characters > SHOWN_PER_CALL:
        found.append(f"a call of {target.characters} characters")
    said = sum(len(reply) for reply in target.replies)
    written = len(encode_record(result))
    if written > 12 * said + TURNS * 60 * MOST_CHARACTERS:
        found.append(f"a result of {written} bytes for {said} characters")
    replies = {one.turn_id: one.reply or "" for one in result.conversation}
    for claim in result.claims:
        ends = [span.end for span in claim.quote_spans]
        if not ends or max(ends) > len(replies[str(claim.turn_id)]):
            found.append(f"{claim.claim_id} quotes what was not said")
    for reading in result.readings:
        unread = max(0, len(replies[reading.turn_id]) - MOST_CHARACTERS)
        if reading.how == "judges" and reading.unjudged < unread:
            found.append(f"{reading.turn_id} leaves {unread} characters, and says {reading.unjudged}")
    return found


@dataclass
class Tally:
    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in KINDS})
    calls: int = 0
    most_calls: int = 0
    problems: list[str] = field(default_factory=list)


async def _play(number: int, seed: int, plan: RunPlan, tally: Tally) -> None:
    name, target = conversation(number, seed)
    where = f"{name}, --seed {seed}, conversation {number}"
    try:
        result = await TrialRunner(plan, cast(Gateway, target)).run_trial(trials(plan)[0])
    except Exception as error:  # any at all is what is looked for
        tally.problems.append(f"{where}: {type(error).__name__}: {str(error)[:200]}")
        tally.outcomes[name]["RAISED"] += 1
        return
    tally.outcomes[name][result.outcome] += 1
    tally.problems += [f"{where}: {one}" for one in problems(result, target)]
    tally.calls += len(target.seen)
    tally.most_calls = max(tally.most_calls, len(target.seen))


def fuzz(conversations: int, seed: int, first: int = 0) -> Tally:
    tally, plan = Tally(), planned(seed)
    for number in range(first, first + conversations):
        asyncio.run(_play(number, seed, plan, tally))
    return tally


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=2_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first conversation")
    parser.add_argument("--seed", type=int, default=42)
    given = parser.parse_args(arguments)
    tally = fuzz(given.conversations, given.seed, given.first)
    for name, counts in tally.outcomes.items():
        print(f"{name:>16}  " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    for problem in tally.problems[:20]:
        print(problem)
    print(
        f"{given.conversations} conversations, {tally.calls} calls of judges, at most {tally.most_calls} in one: "
        f"{len(tally.problems)} problems"
    )
    return 1 if tally.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
