"""The other side: a bare loop over the SDK that makes the same calls, in the same order of dependence, and no more.

The bodies are those our own run sent, read from its journal, so both send the same bytes. A trial is a task: its turns
follow each other; behind each, side by side with the next turn, the extractor's call, then the verifiers' and the
scorer's together. Replies are taken and dropped. No retries, no limiter, no journal, no checks.

It imports nothing of `src`, so that it can run in another environment (see `bench.others`).
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from .costs import measured
from .study import KEY

WARM_UP_TRIALS = 8
Body = dict[str, Any]
Turn = tuple[Body, Body, list[Body]]
"""To the target, to the extractor, and to verifiers and scorer."""
Send = Callable[[Body], Awaitable[Any]]


def recorded_trials(journal: Path, most: int) -> list[list[Turn]]:
    """The first trials' calls as our run made them: a list of turns each."""
    found: dict[str, dict[str, dict[str, list[Body]]]] = {}
    with journal.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            trial, stage, turn, *_ = record["call"].split("|")
            if trial not in found and len(found) >= most:
                continue
            found.setdefault(trial, {}).setdefault(turn, {}).setdefault(stage, []).append(record["sent"])
    trials = []
    for turns in found.values():
        stages = [turns[name] for name in sorted(turns)]
        whole = all(len(s.get("verifier", [])) == 2 and s.get("scorer") and s.get("extractor") for s in stages)
        if whole and len(stages) == max(len(other) for other in found.values()):
            trials.append([(s["target"][0], s["extractor"][0], s["verifier"] + s["scorer"]) for s in stages])
    return trials


async def one_trial(turns: list[Turn], send: Send) -> None:
    async def judge(extractor: Body, others: list[Body]) -> None:
        await send(extractor)
        await asyncio.gather(*(send(body) for body in others))

    judging = []
    for target, extractor, others in turns:
        await send(target)
        judging.append(asyncio.create_task(judge(extractor, others)))
    await asyncio.gather(*judging)


def make_client(base_url: str, transport: str) -> Any:
    openai: Any = importlib.import_module("openai")
    options: dict[str, Any] = {}
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


async def loop(
    trials: list[list[Turn]], count: int, concurrency: int, calls_at_once: int | None, arguments: argparse.Namespace
) -> int:
    calls = 0
    gate = asyncio.Semaphore(calls_at_once or 1_000_000)
    client = make_client(arguments.base_url, arguments.transport)
    shared = sender(client, arguments.via)

    async def send(body: Body) -> Any:
        nonlocal calls
        calls += 1
        async with gate:
            if arguments.client == "shared":
                return await shared(body)
            async with make_client(arguments.base_url, arguments.transport) as own:
                return await sender(own, arguments.via)(body)

    async def worker(numbers: Iterator[int]) -> None:
        for number in numbers:
            await one_trial(trials[number % len(trials)], send)

    numbers = iter(range(count))
    await asyncio.gather(*(worker(numbers) for _ in range(min(concurrency, count))))
    await client.close()
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--trials", type=int, required=True)
    parser.add_argument("--concurrency", type=int, default=64, help="trials at once")
    parser.add_argument("--calls-at-once", type=int)
    parser.add_argument("--via", choices=("create", "raw", "post"), default="create")
    parser.add_argument("--transport", choices=("httpx2", "aiohttp"), default="httpx2")
    parser.add_argument("--client", choices=("shared", "per-call"), default="shared")
    parser.add_argument("--profile", type=Path)
    arguments = parser.parse_args()
    trials = recorded_trials(arguments.journal, most=min(arguments.trials, 64))
    asyncio.run(loop(trials, WARM_UP_TRIALS, WARM_UP_TRIALS, None, arguments))

    def run() -> int:
        return asyncio.run(loop(trials, arguments.trials, arguments.concurrency, arguments.calls_at_once, arguments))

    print(measured(run, arguments.profile).to_json())


if __name__ == "__main__":
    main()
