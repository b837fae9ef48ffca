"""What the run of a cell of the fault matrix must have left behind: the checks, each of which gives its problems."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from src import storage
from src.schemas import CallRecord, TrialResult
from src.store.hash_chain import GENESIS, ChainReader, is_call
from tests.fault_cells import ATTEMPTS, LAST_OR_ONE_MORE, NO_FAULT, Cell, Finding, Place, expected
from tests.runs import call


@dataclass(frozen=True)
class Examined:
    finding: Finding
    problems: list[str]


def examine(place: Place) -> Examined:
    """What a cell came to, and everything that is not as expected."""
    if place.crash:
        return Examined(Finding("traceback", 0, 0, "none"), [place.crash])
    cell = place.cell
    records = _records(place.folder)
    lines = [line.payload for line in ChainReader(place.folder / storage.RESULTS, GENESIS)]
    result = TrialResult.model_validate_json(lines[0])
    mine = [record for record in records if record.call.split("|")[1] == cell.role]
    calls = Counter(record.call.rpartition("|")[0] for record in mine)
    outcomes = sorted({record.outcome for record in mine})
    unresolved = any(claim.label is None for claim in result.final_claims)
    trial = result.outcome + (", unresolved" if unresolved and result.outcome == "scored" else "")
    problems = [*_wire_problems(place, records), *_result_problems(cell, result), *_command_problems(place.folder)]
    if place.stopped is not None:
        return _examine_stopped(place, mine, trial, problems)
    by_judge = Counter(name.rpartition("|")[0] for name in calls)
    if (
        len(by_judge) != (2 if cell.role == "verifier" else 1)
        or (len({*calls.values()}) > 1 and expected(cell).attempts)
        or len({*by_judge.values()}) > 1
    ):
        problems.append(f"calls of the role and their attempts: {dict(calls)}")
    if cell.fault is not NO_FAULT:
        for record in mine:
            last = calls[record.call.rpartition("|")[0]]
            problems += [f"{record.call}: {problem}" for problem in _record_problems(cell, record, last)]
    attempts = max(calls.values(), default=0)
    if "ok" in outcomes:  # a retry succeeded
        pass
    elif expected(cell).attempts == LAST_OR_ONE_MORE and attempts in (ATTEMPTS, ATTEMPTS + 1):
        attempts = LAST_OR_ONE_MORE
    elif not expected(cell).attempts:
        attempts = 0 if attempts > 1 else attempts
    finding = Finding(" ".join(outcomes), attempts, max(by_judge.values(), default=0), trial)
    if finding != expected(cell):
        problems.insert(0, f"came to {finding}, not to {expected(cell)}")
    return Examined(finding, problems)


def _examine_stopped(place: Place, mine: Sequence[CallRecord], trial: str, problems: list[str]) -> Examined:
    """A run that stopped and was resumed: every failed attempt is there, none of them ended a call."""
    cell = place.cell
    failed = [record for record in mine if record.outcome != "ok"]
    for record in failed:
        problems += [f"{record.call}: {problem}" for problem in _record_problems(cell, record, None)]
    finding = Finding(" ".join(sorted({record.outcome for record in failed})), 0, 0, trial, stopped=True)
    if finding != expected(cell):
        problems.insert(0, f"came to {finding}, not to {expected(cell)}")
    model = place.model if cell.role != "adjudicator" else place.contrary
    if not any(name in (place.stopped or "") for name in (place.model, model)):
        problems.append(f"the run stopped with: {place.stopped}")
    return Examined(finding, problems)


def _records(folder: Path) -> list[CallRecord]:
    reader = ChainReader(folder / storage.JOURNAL, storage.manifest_sha256(folder))
    return [CallRecord.model_validate_json(line.payload) for line in reader if is_call(line.payload)]


def _wire_problems(place: Place, records: Sequence[CallRecord]) -> Iterator[str]:
    """Every request the server saw is one attempt in the journal, and the other way round."""
    asked = Counter(
        record.call.split("|")[1] for record in records if record.model.partition(":")[0] == place.cell.provider
    )
    if asked != place.seen:
        yield f"the server saw {dict(place.seen)}, the journal holds {dict(asked)}"
    if not asked[place.cell.role]:
        yield "the role was never asked"


def _record_problems(cell: Cell, record: CallRecord, last: int | None) -> Iterator[str]:
    """What is wrong with the record of a failed attempt; `last` is the call's last one, None if there must be none."""
    number = int(record.call.rpartition("|")[2])
    if record.final != (number == last):
        yield f"attempt {number} of {last} is final: {record.final}"
    if record.text is not None or record.served_model is not None or record.stop_reason is not None:
        yield f"holds an answer: {record.text!r}"
    if record.status != cell.fault.status:
        yield f"has status {record.status}, not {cell.fault.status}"
    if not record.error or not record.sent:
        yield f"does not say what was sent and what went wrong: {record.error!r}"
    if (record.received is None) != (cell.fault.name in ("timeout", "reset")):
        yield f"keeps of the body: {record.received!r}"


def _result_problems(cell: Cell, result: TrialResult) -> Iterator[str]:
    """Where a failure was taken for an answer."""
    labels = [claim.label for claim in result.final_claims]
    if cell.fault is NO_FAULT or expected(cell).stopped:
        if result.judge_failures or labels != ["SUPPORTED", "SUPPORTED"] or not result.final_scores:
            yield f"the control has failures {result.judge_failures} and labels {labels}"
        if cell.role == "adjudicator" and {claim.decided_by for claim in result.final_claims} != {"adjudicator"}:
            yield "the control has no tie"
        return
    if result.outcome != "scored" and (result.final_scores or result.scores_by_judge or result.error_categories):
        yield "a trial that was not scored has scores"
    if cell.role == "target":
        if result.claims or labels or result.conversation[0].reply is not None:
            yield "the failed call left a reply or claims"
        if result.conversation[0].outcome != cell.fault.outcome or not result.conversation[0].detail:
            yield f"the turn's outcome is {result.conversation[0].outcome}: {result.conversation[0].detail!r}"
        return
    failures = [(failure.stage, failure.judge) for failure in result.judge_failures]
    if failures != [(cell.role, number) for number in ((1, 2) if cell.role == "verifier" else (0,))]:
        yield f"the judge failures recorded are {failures}"
    if not all(f"the call failed: {cell.fault.outcome}: " in failure.reason for failure in result.judge_failures):
        yield f"the reasons given are {[failure.reason for failure in result.judge_failures]}"
    yield from _verdict_problems(cell, result)


def _verdict_problems(cell: Cell, result: TrialResult) -> Iterator[str]:
    """Verdicts, claims or observations that no judge gave."""
    labels = [claim.label for claim in result.final_claims]
    if cell.role == "extractor" and (result.claims or labels):
        yield "there are claims, but no extractor"
    if cell.role == "scorer" and result.observations:
        yield "there are observations, but no scorer"
    if cell.role == "verifier" and any(result.verdicts.values()):
        yield "there are verdicts, but no verifier"
    if cell.role in ("verifier", "adjudicator"):
        if labels != [None, None] or {claim.decided_by for claim in result.final_claims} != {"unresolved"}:
            yield f"the claims are labeled {labels}"
        if not result.needs_manual_review:
            yield "the unresolved claims are not marked for review"


def _command_problems(folder: Path) -> Iterator[str]:
    for command in ("verify", "replay", "report"):
        try:
            code, _, err = call(command, folder)
        except Exception:
            yield f"{command}: {traceback.format_exc()}"
            continue
        if code or err:
            yield f"{command}: exit {code}: {err}"
