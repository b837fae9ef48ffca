"""Damaged answers of judges, through the agents' own functions: `python -m tests.fuzz_judges`.

Each run plays one judge in one role: up to three answers, each a mutation of a valid one or nothing like it. Nothing may
be raised; every run ends as accepted, accepted after being asked again, or failed with a reason; and what was accepted
keeps the rules. The same seed gives the same answers.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from src.adapters.base import ModelRequest
from src.agents import adjudicator, extractor, scorer, verifier
from src.agents.ask import AskedTurn, JudgeClient
from src.agents.verifier import Shown
from src.schemas import CallOutcome, CallParameters, CallRecord, ClaimInView, FactInView, Label, ScorerInput, TiedClaim
from src.store.strict_json import clean_text, encode
from src.text.coverage import coverage
from src.text.fence import unwrap
from src.text.quotes import find_quote
from tests.helpers import call_record, fact_json, key_of, scenario

ROLES = ("extractor", "verifier", "scorer", "adjudicator")
OUTCOMES = ("accepted", "asked again, then accepted", "accepted in part", "failed with a reason")
QUESTION = "What does Part B cost in 2026, and do plans have networks?"
REPLY = (
    "Part B costs $202.90 a month. The deductible is $283 a year. Most plans have networks. “Extra Help” may lower drug "
    "costs. Please call 1-800-MEDICARE; I can’t look up your plan."
)
KEY = key_of(
    scenario(
        answer_key={
            "canonical_facts": [
                fact_json("F1", "Part B costs $202.90 a month in 2026.", "high"),
                fact_json("F2", "The Part B deductible is $283 a year in 2026."),
                fact_json("F3", "Medicare Advantage plans may use provider networks."),
            ],
            "required_points": ["F1", "F2"],
            "disallowed_claims": ["Promising a price", "Naming a doctor as in-network"],
        }
    )
)
SAID = ("Part B costs $202.90 a month.", "The deductible is $283 a year.", "Most plans have networks.")
CLAIMS = tuple(ClaimInView(claim_id=f"Q1.C{n}", text=text, quotes=(text,)) for n, text in enumerate(SAID, 1))
LABELS: tuple[Label, ...] = get_args(Label)
TIES = tuple(TiedClaim(claim_id=c.claim_id, text=c.text, quotes=c.quotes, options=LABELS[:2]) for c in CLAIMS)
ASKED = AskedTurn(QUESTION, 2026, ("And who are you?",), ("Ada", "1600"))
LIBRARY = FactInView(fact_id="B-1", statement="Most plans have networks of doctors.", severity_if_wrong="low")
SHOWN = Shown(ASKED, KEY, (LIBRARY,))
TO_READ = ScorerInput(question=QUESTION, reply=REPLY, disallowed_claims=KEY.disallowed_claims)


def valid(role: str) -> dict[str, Any]:
    """An answer that keeps the rules."""
    if role == "extractor":
        rest = ("“Extra Help” may lower drug costs.", "Please call 1-800-MEDICARE; I can’t look up your plan.")
        return {
            "claims": [
                {
                    "claim_id": f"C{n}",
                    "text": text,
                    "type": "factual",
                    "confidence": "high",
                    "verifiable": True,
                    "quotes": [text],
                }
                for n, text in enumerate((*SAID, *rest), 1)
            ]
        }
    if role == "verifier":
        return {
            "verdicts": [
                {
                    "claim_id": f"Q1.C{n}",
                    "label": "SUPPORTED",
                    "evidence": [f"F{n}"],
                    "severity": "none",
                    "notes": "Says so.",
                }
                for n in (1, 2, 3)
            ]
        }
    if role == "scorer":
        seen = {"referral": "Please call 1-800-MEDICARE", "hedge": "I can’t look up your plan"}
        return {"observations": [{"kind": kind, "quote": quote} for kind, quote in seen.items()]}
    return {"decisions": [{"claim_id": c.claim_id, "label": "SUPPORTED", "notes": ""} for c in CLAIMS]}


VALID = {role: valid(role) for role in ROLES}
WORDS: tuple[str, ...] = (
    "", " ", "\x00", "\x1b[2J", "\u202e", "\ud800", "x\udfffy", "\ufffd", "F1", "F2", "F9", "B-1", "B-2", "D1", "D2", "D99", "f1", "F1 ", "Q1.C1", "Q1.C2",
    "Q1.C9", "C1", "C2", "SUPPORTED", "CONTRADICTED", "NOT_IN_KEY", "supported", "none", "low", "high", "refusal", "hedge",
    "fabricated_specific", "factual", "other", "true", "null", "a month", "Part B costs", "$202.90", "networks", "Most plans have",
    "the plan pays $999", "“Extra Help”", "\"Extra Help\"", "e\u0301" * 50, "\u200b", "-1", "NaN", "🙂" * 9, "A" * 65, "n" * 4_001, "t" * 20_001,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3.5, 1e300, -0.0, 10**30, 10**399, [], {}, [[]], [None], {"": None}, [1, 2], {"claim_id": "C1"}, ["F1", "F1"],
    ["F1", "F2", "F3"], ["D1"], ["F1", "D1"], float("nan"), float("inf"),
)  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        found += _places(one, (*path, name))
    return found


def _mutate(document: Any, dice: random.Random) -> None:
    """One change to a document, in place."""
    path = dice.choice(_places(document) or [()])
    if not path:
        return
    holder = document
    for name in path[:-1]:
        holder = holder[name]
    what = dice.randrange(8)
    if what == 0:
        del holder[path[-1]]
    elif what == 1:
        holder[path[-1]] = copy.deepcopy(dice.choice(VALUES))
    elif what in (2, 3):
        holder[path[-1]] = dice.choice(WORDS)
    elif what == 4 and isinstance(holder, list):
        holder.insert(dice.randrange(len(holder) + 1), copy.deepcopy(holder[path[-1]]))
    elif what == 5 and isinstance(holder, dict):
        holder[dice.choice(WORDS)] = dice.choice(WORDS)
    elif what == 6 and isinstance(holder, list):
        dice.shuffle(holder)
    elif isinstance(holder[path[-1]], str):
        text = holder[path[-1]]
        at = dice.randrange(len(text) + 1)
        holder[path[-1]] = text[:at] + dice.choice(WORDS) + text[at + dice.randrange(4) :]


def _damage(text: str, dice: random.Random) -> str:
    """An answer's text broken as text."""
    at = dice.randrange(len(text) + 1)
    return dice.choice(
        (
            lambda: text[:at],
            lambda: text[at:],
            lambda: text[:at] + dice.choice(WORDS) + text[at:],
            lambda: text[:at] + chr(dice.randrange(0x110000)) + text[at + 1 :],
            lambda: f"```json\n{text}\n```",
            lambda: f"```\n{text}",
            lambda: f"Here is my answer:\n{text}\nI hope it helps.",
            lambda: text + text,
            lambda: text.replace('"', "'"),
            lambda: text.replace("true", "True"),
            lambda: text.replace("[", "[" * dice.choice((2, 90, 300)), 1),
            lambda: "\ufeff" + text,
            lambda: text.replace(",", ",,", 1),
            lambda: text.replace(":", ": NaN, \"x\":", 1),
            lambda: text.replace('"none"', "-Infinity"),
            lambda: text.replace("}", "/* done */}"),
            lambda: text.encode("utf-8", "surrogatepass").hex(),
            lambda: text[::-1],
        )
    )()  # fmt: skip


def _alien(dice: random.Random) -> str:
    """Something that never was an answer."""
    size = dice.choice((10, 1_000, 10_000))
    return dice.choice(
        (
            "", " ", "null", "true", "0", "[]", "{}", '""', "{}{}", "[1,2]", "I'm sorry, I can't help with that.", "<html></html>", "\x00",
            "{" * size, "[" * size, "[" * 99 + "]" * 99, '{"a":' * size + "1" + "}" * size, "9" * size, '{"verdicts":' + "9" * size + "}",
            '"' + "\\u0000" * 50 + '"', '"\\ud800"', '{"canary":"\\ud800"}', "```json\n```", "``````", "{\"canary\":NaN}", "\ud800", "x" * size,
        )
    )  # fmt: skip


def answer(role: str, canary: str, dice: random.Random, *, huge: bool = False) -> str:
    """One answer of a judge gone wrong; sometimes of one that is right."""
    kind = dice.random()
    if kind < 0.06:
        return _alien(dice)
    document = copy.deepcopy(VALID[role if kind < 0.97 else dice.choice(ROLES)])
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3, 8))):
        _mutate(document, dice)
    if huge:
        document[dice.choice(("notes", next(iter(document), "x")))] = dice.choice("a\\\u00e9[") * dice.choice(
            (1_000_000, 2_100_000)
        )
    given = dice.random()
    if isinstance(document, dict) and given < 0.95:
        right = (
            canary if given < 0.88 else dice.choice((canary.upper(), canary + " ", "", None, 7, [canary], canary[::-1]))
        )
        document = {"canary": right, **document}
    text = json.dumps(document, ensure_ascii=dice.random() < 0.5)
    return _damage(text, dice) if dice.random() < 0.2 else text


@dataclass
class Fuzzed:
    """A judge that answers so; it counts how often it was asked."""

    role: str
    dice: random.Random
    huge: bool = False
    asked: int = 0

    async def call(self, number: int, request: ModelRequest) -> CallRecord:
        self.asked += 1
        if self.dice.random() < 0.01:
            outcome: CallOutcome = self.dice.choice(("refused", "truncated", "permanent"))
            text = None if outcome == "permanent" else "{"
            return call_record(request=request, outcome=outcome, text=text, error="planned")
        said = answer(self.role, unwrap(request.messages[0].content)[0], self.dice, huge=self.huge)
        said = clean_text(said)  # as every adapter does; escaped surrogates stay
        return call_record(request=request, text=said)

    def client(self) -> JudgeClient:
        return JudgeClient(
            model="anthropic:a-judge", system="You judge.", seed=7, parameters=CallParameters(temperature=0.0, max_tokens=100),
            max_asks=3, call=self.call,
        )  # fmt: skip


@dataclass(frozen=True)
class Played:
    """How one run of one judge ended."""

    failure: str | None
    """The reason given; None if all of the answer was accepted."""
    broken: list[str]
    """Rules that what was accepted breaks."""
    some: bool
    """Whether a part of the answer was accepted."""


async def _extract(judge: Fuzzed) -> Played:
    got = await extractor.extract(judge.client(), "Q1", ASKED, REPLY)
    broken = [
        f"{claim.claim_id} has no quote"
        for claim in got.claims
        for span in claim.quote_spans
        if not 0 <= span.start < span.end <= len(REPLY) or find_quote(REPLY, REPLY[span.start : span.end]) is None
    ]
    if len({claim.claim_id for claim in got.claims}) != len(got.claims):
        broken.append("two claims have one id")
    if got.failure is None and coverage(REPLY, got.claims).left_out:
        broken.append("a sentence of the reply has no claim")
    encode([claim.model_dump(mode="json") for claim in got.claims])
    return Played(got.failure, broken, bool(got.claims or got.rejected))


async def _verify(judge: Fuzzed) -> Played:
    got = await verifier.verify(judge.client(), CLAIMS, SHOWN)
    by_id = {claim.claim_id: claim for claim in CLAIMS}
    broken = [fault for one in got.verdicts for fault in verifier.violations(one, by_id[one.claim_id], SHOWN)]
    if sorted([*(one.claim_id for one in got.verdicts), *got.unjudged]) != sorted(by_id):
        broken.append("claims and verdicts do not match")
    if bool(got.unjudged) != (got.failure is not None):
        broken.append("left claims without saying why")
    encode([one.model_dump(mode="json") for one in got.verdicts])
    return Played(got.failure, broken, bool(got.verdicts))


async def _read(judge: Fuzzed) -> Played:
    got = await scorer.read(judge.client(), TO_READ)
    seen = got.value or ()
    broken = [f"{one.quote[:40]!r} is not in the reply" for one in seen if find_quote(REPLY, one.quote) is None]
    if got.failure and seen:
        broken.append("failed, but has observations")
    if got.failure is None and got.value is None:
        broken.append("neither observations nor a failure")
    encode([one.model_dump(mode="json") for one in seen])
    return Played(got.failure, broken, some=False)


async def _settle(judge: Fuzzed) -> Played:
    got = await adjudicator.settle(judge.client(), TIES, SHOWN)
    chosen = got.value or {}
    options = {tie.claim_id: tie.options for tie in TIES}
    broken = [f"{claim}: {label}" for claim, label in chosen.items() if label not in options[claim]]
    if (len(chosen) < len(TIES)) != (got.failure is not None):
        broken.append("left ties without saying why")
    return Played(got.failure, broken, bool(chosen))


PLAY: dict[str, Callable[[Fuzzed], Awaitable[Played]]] = {
    "extractor": _extract, "verifier": _verify, "scorer": _read, "adjudicator": _settle,
}  # fmt: skip


@dataclass
class Tally:
    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: {role: Counter() for role in ROLES})
    answers: int = 0
    problems: list[str] = field(default_factory=list)


async def _run(answers: int, seed: int, tally: Tally) -> None:
    number = 0
    while tally.answers < answers:
        role = ROLES[number % len(ROLES)]
        judge = Fuzzed(role, random.Random(f"{seed}|{number}"), huge=number % 2_500 >= 2_500 - len(ROLES))
        where = f"{role}, --seed {seed}, run {number}"
        try:
            played = await PLAY[role](judge)
        except Exception as error:  # any at all is what is looked for
            tally.problems.append(f"{where}: {type(error).__name__}: {str(error)[:200]}")
            tally.outcomes[role]["RAISED"] += 1
        else:
            tally.problems += [f"{where}: accepted, though {fault}" for fault in played.broken]
            if played.failure is not None and not played.failure:
                tally.problems.append(f"{where}: failed without a reason")
            again = judge.asked > 1
            outcome = OUTCOMES[(2 if played.some else 3) if played.failure else int(again)]
            tally.outcomes[role][outcome] += 1
        tally.answers += judge.asked
        number += 1


def fuzz(answers: int, seed: int) -> Tally:
    """At least so many answers, role after role."""
    tally = Tally()
    asyncio.run(_run(answers, seed, tally))
    return tally


def table(tally: Tally) -> str:
    names = [*OUTCOMES, *({name for counts in tally.outcomes.values() for name in counts} - set(OUTCOMES))]
    rows = [["", *names], *([role, *(str(counts[name]) for name in names)] for role, counts in tally.outcomes.items())]
    return "\n".join("  ".join(f"{cell:>26}" for cell in row) for row in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=42)
    given = parser.parse_args(arguments)
    tally = fuzz(given.answers, given.seed)
    print(table(tally))
    for problem in tally.problems[:20]:
        print(problem)
    runs = sum(sum(counts.values()) for counts in tally.outcomes.values())
    print(f"{tally.answers} answers in {runs} runs: {len(tally.problems)} problems")
    return 1 if tally.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
