"""The other side: a bare loop over the SDK that makes the same calls, in the same order of dependence, and no more.

The request bodies are those our own run sent, read from its journal, so both sides send the same bytes. A trial is a
task. Its turns follow each other; after each turn, alongside the next one, come the extractor's call and then the
verifiers' and the scorer's together. Replies are received and dropped. No retries, no rate limits, no journal, no
checks. It imports nothing from `src`.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .costs import measured
from .study import KEY

WARM_UP_TRIALS = 8
TIMEOUT_S = 600.0
Body = dict[str, Any]
Send = Callable[[Body], Awaitable[Any]]


@dataclass(frozen=True)
class Turn:
    target: Body
    extractor: Body
    others: list[Body]
    """To the verifiers and the scorer."""


Trial = list[Turn]


def recorded_trials(journal: Path, most: int, turns: int | None) -> list[Trial]:
    """The calls of the first trials as our run made them; of each trial the first turns."""
    found: dict[str, dict[str, dict[str, list[Body]]]] = {}
    with journal.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            trial, stage, turn, *_ = record["call"].split("|")
            if trial in found or len(found) < most:
                found.setdefault(trial, {}).setdefault(turn, {}).setdefault(stage, []).append(record["sent"])
    return [
        [
            Turn(stages["target"][0], stages["extractor"][0], stages["verifier"] + stages["scorer"])
            for stages in (by_turn[name] for name in sorted(by_turn)[:turns])
        ]
        for by_turn in found.values()
    ]


async def one_trial(turns: Trial, send: Send) -> None:
    async def judge(turn: Turn) -> None:
        await send(turn.extractor)
        await asyncio.gather(*(send(body) for body in turn.others))

    judging = []
    for turn in turns:
        await send(turn.target)
        judging.append(asyncio.create_task(judge(turn)))
    await asyncio.gather(*judging)


def make_client(base_url: str, transport: str) -> Any:
    openai: Any = importlib.import_module("openai")
    options: dict[str, Any] = {"timeout": TIMEOUT_S}  # the SDK's 5 s to connect are not enough on a busy machine
    if transport == "aiohttp":
        options["http_client"] = openai.DefaultAioHttpClient(timeout=None)
    return openai.AsyncOpenAI(api_key=KEY, base_url=base_url, max_retries=0, **options)


def sender(client: Any, via: str) -> Send:
    """The ways the SDK offers: typed objects, raw responses, or a plain post."""
    if via == "create":

        async def send(body: Body) -> Any:
            return (await client.chat.completions.create(**body)).choices[0].message.content
    elif via == "raw":

        async def send(body: Body) -> Any:
            return (await client.chat.completions.with_raw_response.create(**body)).text
    else:
        response: Any = importlib.import_module("httpx2").Response

        async def send(body: Body) -> Any:
            return (await client.post("/chat/completions", cast_to=response, body=body)).content

    return send


async def loop(trials: list[Trial], count: int, arguments: argparse.Namespace) -> int:
    """Run so many trials; returns the calls made."""
    calls = 0
    client = make_client(arguments.base_url, arguments.transport)
    shared = sender(client, arguments.via)

    async def send(body: Body) -> Any:
        nonlocal calls
        calls += 1
        if arguments.client == "shared":
            return await shared(body)
        async with make_client(arguments.base_url, arguments.transport) as own:
            return await sender(own, arguments.via)(body)

    async def worker(numbers: Iterator[int]) -> None:
        for number in numbers:
            await one_trial(trials[number % len(trials)], send)

    numbers = iter(range(count))
    await asyncio.gather(*(worker(numbers) for _ in range(min(arguments.concurrency, count))))
    await client.close()
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--trials", type=int, required=True)
    parser.add_argument("--turns", type=int, help="only the first turns of each trial")
    parser.add_argument("--concurrency", type=int, default=64, help="trials at once")
    parser.add_argument("--via", choices=("create", "raw", "post"), default="create")
    parser.add_argument("--transport", choices=("httpx2", "aiohttp"), default="httpx2")
    parser.add_argument("--client", choices=("shared", "per-call"), default="shared")
    arguments = parser.parse_args()
    trials = recorded_trials(arguments.journal, most=min(arguments.trials, 64), turns=arguments.turns)
    asyncio.run(loop(trials, WARM_UP_TRIALS, arguments))
    calls: list[int] = []
    costs = measured(lambda: calls.append(asyncio.run(loop(trials, arguments.trials, arguments))))
    print(replace(costs, calls=calls[0]).to_json())


if __name__ == "__main__":
    main()
