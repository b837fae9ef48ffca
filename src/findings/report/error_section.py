"""The report's section on why calls failed, and the sentence for a run in which nothing was scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...text.count import counted
from ..analysis.call_errors import UNUSABLE, CallError
from ..analysis.read_run import Findings
from .document import Block, Cell, Column, Count, Linked, Paragraph, Section, Table, Text, Words, say, words
from .links import of_trial
from .series import Run, Runs

ERRORS_CSV = "errors.csv"
TOP = 10
"""Kinds that each table of the report shows; the CSV file has all."""
LONGEST = 300
"""Characters of a message that a report shows; the CSV file has more."""
NOTHING_LOST = "No call ended without a usable answer."
NOTE = f"One message stands for all that differ only in numbers and ids. All kinds are in {ERRORS_CSV}."
KINDS = {
    "transient": "server or network error",
    "timeout": "no answer in time",
    "rate_limited": "too many requests",
    "malformed": "response not readable",
    "permanent": "request rejected",
    "denied": "key, account or model refused",
    "refused": "declined to answer",
    "blocked": "blocked by a content filter",
    "truncated": "cut off at the length limit",
    "empty": "empty answer",
    UNUSABLE: "answers not usable",
}
"""Classes of failures in plain words."""
SHORT_OUTCOMES = {"truncated": "cut off", "judge_failure": "not judged", "questioner_failure": "not asked"}


class _Found(NamedTuple):
    run: Run
    error: CallError


def kind_text(error: CallError) -> str:
    return KINDS.get(error.outcome, error.outcome)


def shortened(message: str, longest: int) -> str:
    return message if len(message) <= longest else f"{message[: longest - 1].rstrip()}…"


def nothing_scored(found: Findings) -> tuple[Cell, ...]:
    """That no trial of a run has a score, what became of them, and the most frequent reason."""
    outcomes = Counter(row.outcome for row in found.rows).most_common()
    became = ", ".join(f"{count:,} {SHORT_OUTCOMES.get(name, name)}" for name, count in outcomes)
    told = f"Nothing was scored ({counted(len(found.rows), 'trial')}: {became})."
    if not found.errors:
        return words(told)
    top = found.errors[0]
    message = shortened(top.message, LONGEST)
    said: tuple[Cell, ...] = (Words(": "), Text(message)) if message else ()
    times = counted(top.lost or top.attempts, "time")
    start = say(f"{told} Most frequent reason, {times}: {top.role} ", Text(top.model), f", {kind_text(top)}")
    return (*start, *said, *(() if message.endswith((".", "…")) else words(".")))


def error_sections(runs: Runs) -> Iterator[Section]:
    """Nothing if no call failed."""
    found = _found(runs)
    if not found:
        return
    lost, again = (sum(count(one.error) for one in found) for count in (_lost, _tried_again))
    first = f"{counted(lost, 'call')} ended without a usable answer, so data is missing." if lost else NOTHING_LOST
    second = f" {counted(again, 'failed attempt was', 'failed attempts were')} tried again: that cost only time."
    blocks: list[Block] = [Paragraph(words(f"{first}{second if again else ''} {NOTE}"))]
    missing = sorted((one for one in found if one.error.lost), key=lambda one: -one.error.lost)
    retried = sorted((one for one in found if one.error.tried_again), key=lambda one: -one.error.tried_again)
    if missing:
        blocks.append(_top_table(runs, "Why data is missing", missing, lost=True))
    if retried:
        blocks.append(_top_table(runs, "Why attempts were repeated", retried, lost=False))
    yield Section(words("Why calls failed"), tuple(blocks), short="Failed calls")


def _found(runs: Runs) -> list[_Found]:
    return [_Found(run, error) for run in runs.runs for error in run.found.errors]


def _lost(error: CallError) -> int:
    return error.lost


def _tried_again(error: CallError) -> int:
    return error.tried_again


def _top_table(runs: Runs, caption: str, found: Sequence[_Found], *, lost: bool) -> Table:
    count = _lost if lost else _tried_again
    rows = tuple(
        (
            *runs.lead(one.run),
            Text(one.error.role),
            Text(one.error.model),
            Text(kind_text(one.error)),
            Text(shortened(one.error.message, LONGEST)),
            Count(count(one.error)),
            _example(runs, one),
        )
        for one in found[:TOP]
    )
    columns = (
        *runs.lead_columns(target=False),
        *(Column(name, "text") for name in ("role", "model", "what happened", "message")),
        Column("calls lost" if lost else "tried again"),
        Column("for example", "text"),
    )
    more = f"; {counted(len(found) - TOP, 'more kind')} in {ERRORS_CSV}" if len(found) > TOP else ""
    return Table(f"{caption}{more}.", columns, rows)


def _example(runs: Runs, one: _Found) -> Cell:
    """The trial of the example, with a link to its page if it has one."""
    trial_id = one.error.example.partition("|")[0]
    for series in runs.series:
        if series.run is one.run and any(row.trial_id == trial_id for row in series.rows):
            return Linked(Text(trial_id), of_trial(series, trial_id))
    return Text(trial_id)


def error_table(runs: Runs) -> Table:
    """Every kind, for the CSV file."""
    rows = tuple(
        (
            *runs.lead(run),
            Text(error.role),
            Text(error.model),
            Text(error.outcome),
            Text("" if error.status is None else str(error.status)),
            Text(error.message),
            Count(error.attempts),
            Count(error.lost),
            Text(error.example),
        )
        for run, error in _found(runs)
    )
    names = ("role", "model", "outcome", "status", "message", "attempts", "lost", "example")
    columns = tuple(Column(name, "count" if name in ("attempts", "lost") else "text", name) for name in names)
    return Table("Failed attempts by kind.", (*runs.lead_columns(target=False), *columns), rows)
