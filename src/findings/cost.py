"""What a run's calls cost, when they were made and why they failed, from one pass over its journal.

The same fault often comes with another request id, number or time. So messages are compared with those replaced, and
the first real one is shown. Nothing here knows any provider's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from string import digits
from typing import NamedTuple

from .. import storage
from ..calls.prices import cost
from ..records.result import CALL_FAILED
from ..schemas import CallRecord, Manifest
from ..store import hash_chain
from ..store.projection import projection
from ..text.escape import plain

UNUSABLE = "unusable"
"""In place of a call's outcome: a judge or the questioner answered, but never as it was asked to."""
MOST_KINDS = 1_000
"""Kinds of errors that are told apart, so that a provider that never repeats itself cannot fill the memory."""
OTHERS = f"(all messages after the first {MOST_KINDS:,} kinds)"
LONGEST = 500
"""Characters of a message that are kept."""
_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.+-]|,(?=[0-9]))*")
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_NOT_LETTERS = re.compile(r"[^A-Za-z0-9]")
_CHANGE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
"""Where letters and digits meet, or a capital follows a small letter. Ids have many of these, words have few."""


@dataclass(frozen=True)
class CallError:
    """One kind of failure, and how often it happened."""

    role: str
    """`target`, `probe`, or the role of a judge."""
    model: str
    outcome: str
    """The class of the failure as the journal has it, or `unusable`."""
    status: int | None
    """The HTTP status, if it was an error."""
    message: str
    """Of the example, on one line and without control characters. Others may differ in numbers and ids."""
    attempts: int
    """Attempts that failed in this way. If `unusable`: how often a judge was given up after all its answers."""
    lost: int
    """Of these, how many nothing followed: a reply or a judgment is missing. The others were tried again."""
    example: str
    """The id of one such call, as in calls.jsonl. If `unusable`: without the number of the ask."""

    @property
    def tried_again(self) -> int:
        return self.attempts - self.lost


class ErrorKey(NamedTuple):
    role: str
    model: str
    outcome: str
    status: int | None
    pattern: str


@dataclass
class ErrorCount:
    """What is counted of one kind. Two parts of a run are added field by field, and the first text is kept."""

    attempts: int = 0
    lost: int = 0
    message: str = ""
    example: str = ""


ErrorCounts = dict[ErrorKey, ErrorCount]


def _count_attempt(counts: ErrorCounts, unanswered: dict[str, ErrorKey], call: CallRecord) -> None:
    """Count an attempt of the journal if it failed.

    `unanswered`: by trial, stage, turn and judge, calls that ended without an answer, if no other ask has followed.
    """
    question = call.call.rsplit("|", 2)[0]
    if unanswered and (before := unanswered.pop(question, None)):
        counts[before].lost -= 1  # a judge that does not accept the schema is asked again without it
    stage = call.call.split("|")[1]
    if call.outcome == "ok" or (call.outcome == "refused" and stage == "target"):  # a refusal is an answer
        return
    message = call.error or (f"stop reason: {call.stop_reason}" if call.stop_reason else "")
    # A judge that wrote something unusable is asked again; if no answer of it was usable, the results say so.
    lost = call.final and stage != "probe" and (stage == "target" or call.error is not None)
    key = count_error(counts, (stage, call.model, call.outcome, call.status), message, example=call.call, lost=lost)
    if lost:
        unanswered[question] = key


def count_judge_failure(counts: ErrorCounts, role: str, model: str, reason: str, example: str) -> None:
    """Count a judge that failed; if its call did, as the journal has it."""
    outcome, _, error = reason.partition(CALL_FAILED)[2].partition(": ")
    count_error(counts, (role, model, outcome or UNUSABLE, None), error or reason, example=example, lost=True)


def count_error(
    counts: ErrorCounts, kind: tuple[str, str, str, int | None], message: str, *, example: str, lost: bool
) -> ErrorKey:
    key = ErrorKey(*kind, pattern_of(message))
    if key not in counts and len(counts) >= MOST_KINDS:
        key, message = ErrorKey(*kind, OTHERS), OTHERS
    count = counts.setdefault(key, ErrorCount())
    if not count.attempts or (lost and not count.lost):
        count.message, count.example = plain(message)[:LONGEST], example
    count.attempts += 1
    count.lost += lost
    return key


def errors_of(journal: ErrorCounts, judges: ErrorCounts) -> tuple[CallError, ...]:
    """All kinds, those that lost most first. What both the journal and the results have is counted once."""
    known = {key._replace(status=None) for key in journal}
    # A judge's reply that the journal calls ok was rejected later, for example because the wrong model answered.
    rejected = ((key._replace(outcome=UNUSABLE), count) for key, count in judges.items() if key not in known)
    found = [
        CallError(*key[:4], count.message, count.attempts, count.lost, count.example)
        for key, count in (*journal.items(), *rejected)
    ]
    return tuple(
        sorted(found, key=lambda one: (-one.lost, -one.attempts, one.role, one.model, one.outcome, one.message))
    )


@lru_cache(maxsize=1_024)
def pattern_of(message: str) -> str:
    """A message without what differs from one time to the next: numbers, times, ids. Repeated parts count once."""
    masked = _WORD.sub(lambda word: _masked(word[0]), plain(message))
    return "; ".join(dict.fromkeys(masked.split("; ")))


def _masked(word: str) -> str:
    letters = _NOT_LETTERS.sub("", word)
    changes = len(_CHANGE.findall(letters))
    if word[0] in digits or changes >= max(2, len(letters) / 5):
        return "#"
    return _NUMBER.sub("#", word)


PARTS = ("questioner", "target", "judges")
_decode = projection(
    CallRecord, {"": "call model outcome final status usage stop_reason started error batch", "search": "searches"}
)


@dataclass
class Spending:
    """What one model's calls in one role cost."""

    part: str
    """One of `PARTS`."""
    model: str
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input: read from the provider's cache."""
    searches: int = 0
    """On the web."""
    without_usage: int = 0
    """Attempts for which the provider reported no tokens."""
    cost: float | None = 0.0
    """None if the model's price is unknown, or that of its searches."""


class CallTimes(NamedTuple):
    """When the first and the last call started, as ISO timestamps in UTC."""

    first: str
    last: str

    @staticmethod
    def spanning(times: list[CallTimes]) -> CallTimes | None:
        """From the earliest of the first to the latest of the last; None if there are none."""
        return CallTimes(min(t.first for t in times), max(t.last for t in times)) if times else None


@dataclass
class CallTotals:
    spending: list[Spending] = field(default_factory=list)
    times: dict[str, CallTimes] = field(default_factory=dict)
    """By model."""
    errors: ErrorCounts = field(default_factory=dict)


def read_calls(folder: Path, manifest: Manifest, others: Iterable[tuple[Path, Manifest]] = ()) -> CallTotals:
    """Attempts, tokens, cost, times and errors by model; the target's calls are counted apart from the judges'.

    `others`: further runs, whose calls are added.
    """
    found, rows = CallTotals(), dict[tuple[str, str], Spending]()
    for run, of in ((folder, manifest), *others):
        if (run / storage.JOURNAL).exists():
            _read_journal(found, rows, run, of)
    found.spending = sorted(rows.values(), key=lambda row: (PARTS.index(row.part), row.model))
    return found


def _read_journal(found: CallTotals, rows: dict[tuple[str, str], Spending], folder: Path, manifest: Manifest) -> None:
    path = folder / storage.JOURNAL
    unanswered: dict[str, ErrorKey] = {}
    for line in hash_chain.ChainReader(path, storage.manifest_sha256(folder)):
        if not hash_chain.is_call(line.payload):
            continue
        call = _decode(line.payload)
        _count_attempt(found.errors, unanswered, call)
        stage = call.call.split("|")[1]
        if stage == "probe":
            stage = "target" if call.model in manifest.plan.targets else "judge"
        part = stage if stage in ("target", "questioner") else "judges"
        _add(rows.setdefault((part, call.model), Spending(part, call.model)), call, manifest)
        times = found.times.get(call.model, CallTimes(call.started, call.started))
        found.times[call.model] = CallTimes(min(times.first, call.started), max(times.last, call.started))


def _add(row: Spending, call: CallRecord, manifest: Manifest) -> None:
    usage = call.usage
    row.attempts += 1
    row.input_tokens += usage.input_tokens or 0
    row.output_tokens += usage.output_tokens or 0
    row.cached_tokens += usage.cached_tokens or 0
    row.without_usage += usage.output_tokens is None
    searches = call.search.searches if call.search else 0
    row.searches += searches
    price = manifest.prices.get(call.model)
    if price is None or row.cost is None or (searches and price.search is None):
        row.cost = None
    else:
        row.cost += cost(price, usage, searches=searches, batch=call.batch is not None) or 0.0
