"""`python -m bench.cacheable RUN...`: how much of a run's input no provider can read from a cache.

For every call in the journal: the longest start that it shares with an earlier call to the same model. A provider can
read that from its cache if it is long enough, and, where prefixes must be marked, up to a mark that an earlier call had
too. This is the most that caching can save: it assumes that nothing is dropped from a cache, and that a call is made
only after the one before it. A token is four characters. Reply schemas are left out: they are equal in all calls of a
role. The wire format is the one that today's adapters use; runs of formats 1 and 2 were sent without marks.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from src import storage
from src.schemas import CallRecord

CHARACTERS_PER_TOKEN = 4
STAGES = ("extractor", "verifier", "scorer", "adjudicator", "questioner")
END = "\0"
"""Between the parts of a prompt."""
SHARED, OWN = '{"shared":', '"canary":'
"""How the part of a message begins that the calls of a scenario share, and the part that each has for itself."""


@dataclass(frozen=True)
class Cache:
    """What a provider caches."""

    name: str
    shortest: int
    """Tokens of the shortest prefix that is cached."""
    block: int = 1
    """Prefixes are cached in multiples of so many tokens."""
    marked: bool = False
    """Whether a prefix is cached only up to a mark."""


CACHES = (
    Cache("OpenAI, to GPT-5.5", 1_024, block=128),
    Cache("OpenAI, from GPT-5.6", 1_024, marked=True),
    Cache("Claude Opus 5", 512, marked=True),
    Cache("Claude Sonnet 4.6", 2_048, marked=True),
    Cache("Claude Opus 4.6", 4_096, marked=True),
    Cache("Gemini 3", 4_096),
    Cache("Grok", 128, block=128),
)


@dataclass(frozen=True)
class Prompt:
    """All text of one request, in the order in which a provider reads it."""

    text: str
    marks: tuple[int, ...]
    """Where a judge's call marks the end of a prefix."""


def prompt_of(sent: dict[str, Any], *, marked: bool) -> Prompt:
    """The prompt of a request body in any of the wire formats."""
    system = _text(sent.get("system") or sent.get("systemInstruction"))
    messages = [_text(one) for one in sent.get("messages") or sent.get("contents") or ()]
    if not system and len(messages) > 1 and sent["messages"][0].get("role") == "system":
        system = messages.pop(0)
    head = system + END
    first = messages[0] if messages else ""
    stable = first.index(OWN) if first.startswith(SHARED) and OWN in first else 0
    marks = (len(head), len(head) + stable) if marked and system else ()
    return Prompt(head + END.join(messages), tuple(dict.fromkeys(marks)))


def _text(part: Any) -> str:
    if isinstance(part, dict):
        part = next((part[name] for name in ("content", "parts", "text") if name in part), "")
    return "".join(map(_text, part)) if isinstance(part, list) else str(part or "")


def _equal_start(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


class Earlier:
    """The prompts that one model was sent so far."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._marked: set[str] = set()

    def shared(self, prompt: Prompt) -> int:
        """Characters of the longest start that an earlier prompt had too. In sorted order, it is a neighbor's."""
        place = bisect_left(self._texts, prompt.text)
        around = self._texts[max(0, place - 1) : place + 1]
        return max((_equal_start(prompt.text, other) for other in around), default=0)

    def shared_to_a_mark(self, prompt: Prompt) -> int:
        return max((mark for mark in prompt.marks if prompt.text[:mark] in self._marked), default=0)

    def add(self, prompt: Prompt) -> None:
        self._texts.insert(bisect_left(self._texts, prompt.text), prompt.text)
        self._marked.update(prompt.text[:mark] for mark in prompt.marks)


@dataclass
class Sums:
    """Of all calls of one stage."""

    calls: int = 0
    sent: float = 0.0
    not_cached: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By cache."""


@dataclass(frozen=True)
class Measured:
    trials: int
    by_stage: dict[str, Sums]


def measured(calls: Iterable[CallRecord]) -> Measured:
    """Tokens of the judges' calls, and how many of them each provider would have had to read anew."""
    trials: set[str] = set()
    earlier: dict[str, Earlier] = defaultdict(Earlier)
    by_stage: dict[str, Sums] = defaultdict(Sums)
    for call in calls:
        trial, stage, *_ = call.call.split("|")
        trials.add(trial)
        if stage not in STAGES or not isinstance(call.sent, dict):
            continue
        prompt, before, sums = prompt_of(call.sent, marked=call.format > 2), earlier[call.model], by_stage[stage]
        whole = len(prompt.text) / CHARACTERS_PER_TOKEN
        sums.calls += 1
        sums.sent += whole
        for cache in CACHES:
            shared = before.shared_to_a_mark(prompt) if cache.marked else before.shared(prompt)
            tokens = shared // CHARACTERS_PER_TOKEN // cache.block * cache.block
            sums.not_cached[cache.name] += whole - (tokens if tokens >= cache.shortest else 0)
        before.add(prompt)
    return Measured(len(trials), {stage: by_stage[stage] for stage in STAGES if stage in by_stage})


def table(found: Measured) -> str:
    """Tokens per trial, by stage and provider."""
    stages = found.by_stage
    rows = [
        ["calls", *_row([sums.calls for sums in stages.values()], found.trials)],
        ["tokens sent", *_row([sums.sent for sums in stages.values()], found.trials)],
    ]
    for cache in CACHES:
        tokens = [sums.not_cached[cache.name] for sums in stages.values()]
        rows.append([f"not cacheable, {cache.name}", *_row(tokens, found.trials)])
    lines = [["per trial", *stages, "all judges"], *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
    )


def _row(numbers: list[float], trials: int) -> list[str]:
    return [f"{number / trials:,.1f}" for number in (*numbers, sum(numbers))]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cacheable", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    for folder in parser.parse_args(words).runs:
        found = measured(storage.read_calls(folder, storage.read_manifest(folder)))
        print(f"{folder}: {found.trials} trials\n{table(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
