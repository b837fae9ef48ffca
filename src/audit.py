"""`verify`: is a run folder exactly what was written, and does every reference in it hold?

Checked in this order: manifest, that the seal belongs to it, journal chain, results chain, records against their
schemas, every quote span and evidence id, plan order, seal. The first thing wrong is named by file and line.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from .errors import IncompleteRun, IntegrityError
from .planning.trials import trials_of
from .records.result import TrialResult
from .records.run import CallRecord, Manifest, RecoveryRecord, Seal
from .records.scenario import Scenario
from .store import hash_chain, run_files, strict_json


@dataclass(frozen=True)
class Verified:
    run_id: str
    trials: int
    planned: int
    calls: int
    torn_lines: int
    head: str
    sealed: bool


@dataclass(frozen=True)
class Replayed:
    run_id: str
    trials: int
    """Results computed again, each identical to the stored one."""
    planned: int
    head: str


@dataclass(frozen=True)
class _JournalRead:
    calls: int
    torn_lines: int
    head: str


@dataclass(frozen=True)
class _ResultsRead:
    count: int
    head: str


@dataclass(frozen=True)
class StoredLines:
    """The results of a run, by where each line is."""

    path: Path
    places: tuple[LinePlace, ...]
    head: str

    def pieces(self, count: int) -> list[StoredPiece]:
        """The results in so many pieces of about the same size, in order; each can be compared by itself."""
        edges = [len(self.places) * number // count for number in range(count + 1)]
        return [StoredPiece(self.path, self.places[a], range(a, b)) for a, b in pairwise(edges) if a < b]


@dataclass(frozen=True)
class LinePlace:
    offset: int
    previous: str
    """The chain value before the line."""


@dataclass(frozen=True)
class StoredPiece:
    path: Path
    start: LinePlace
    trials: range
    """By their number in the plan, from 0."""


def stored_lines(folder: Path, manifest: Manifest) -> StoredLines:
    """The results that a run has, once their chain and their number are checked."""
    path = folder / run_files.RESULTS
    seal = run_files.read_seal_record(folder, manifest)
    if not path.exists():
        raise IncompleteRun(f"{folder} has no results yet. First run: medicare-eval resume {folder}")
    reader = hash_chain.ChainReader(path, hash_chain.GENESIS)
    places, previous = [], hash_chain.GENESIS
    for line in reader:
        places.append(LinePlace(line.offset, previous))
        previous = line.chain
    if seal:
        run_files.check_count(path, "trial", len(places), seal.trials)
    return StoredLines(path, tuple(places), reader.head)


class ResultComparer:
    """Chains results that are computed again and compares each line with the stored one."""

    def __init__(self, stored: StoredPiece) -> None:
        self._stored = stored
        self._head = stored.start.previous
        self._count = stored.trials.start

    def __enter__(self) -> ResultComparer:
        self._file = self._stored.path.open("rb")
        self._file.seek(self._stored.start.offset)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __call__(self, payload: bytes) -> None:
        self._head, line = hash_chain.chained(self._head, payload)
        self._count += 1
        if self._file.read(len(line)) != line:
            where = f"{self._stored.path}, line {self._count} ({run_files.trial_id(payload)})"
            raise IntegrityError(f"{where}: does not match the result recomputed from the journal.")


def verify(folder: Path, expect: str | None = None) -> Verified:
    manifest = run_files.read_manifest(folder)
    if strict_json.fingerprint(manifest.plan.model_dump(mode="json")) != manifest.plan_sha256:
        path = folder / run_files.MANIFEST
        raise IntegrityError(f"{path} was changed after it was written: the plan does not match its hash.")
    seal = run_files.read_seal_record(folder, manifest)
    journal = _journal(folder / run_files.JOURNAL, run_files.manifest_sha256(folder), manifest.format)
    results = _results(folder / run_files.RESULTS, manifest)
    if seal:
        _compare_seal(folder, seal, journal, results)
    if expect is not None and expect.lower() != results.head:
        raise IntegrityError(
            f"{folder / run_files.RESULTS}: the results hash is {results.head}, not the expected {expect}."
        )
    return Verified(
        manifest.run_id,
        results.count,
        manifest.trial_count,
        journal.calls,
        journal.torn_lines,
        results.head,
        seal is not None,
    )


def _compare_seal(folder: Path, seal: Seal, journal: _JournalRead, results: _ResultsRead) -> None:
    """The files are whole and agree with each other; now they must be the sealed ones, to the byte."""
    if journal.head != seal.journal_head:
        run_files.check_count(folder / run_files.JOURNAL, "call", journal.calls, seal.calls)
    run_files.check_count(folder / run_files.RESULTS, "trial", results.count, seal.trials)
    agrees = {
        run_files.JOURNAL: (journal.head, journal.calls) == (seal.journal_head, seal.calls),
        run_files.RESULTS: results.head == seal.results_head,
    }
    for name, as_sealed in agrees.items():
        if not as_sealed or run_files.file_sha256(folder / name) != seal.files[name]:
            raise run_files.differs_from_seal(folder / name)


def _journal(path: Path, genesis: str, written: int) -> _JournalRead:
    if not path.exists():
        return _JournalRead(0, 0, genesis)
    reader = hash_chain.ChainReader(path, genesis)
    calls = torn = 0
    for line in reader:
        if hash_chain.is_note(line.payload):
            _check_format(path, line.number, run_files.parsed_note(path, line).format, written)
        elif hash_chain.is_recovery(line.payload):
            torn += len(run_files.parsed(path, line, RecoveryRecord).recovered)
        else:
            _check_format(path, line.number, run_files.parsed(path, line, CallRecord).format, written)
            calls += 1
    return _JournalRead(calls, torn + len(reader.torn), reader.head)


def _results(path: Path, manifest: Manifest) -> _ResultsRead:
    if not path.exists():
        return _ResultsRead(0, hash_chain.GENESIS)
    scenarios = {planned.name: planned for planned in manifest.plan.scenarios}
    planned = [trial.trial_id for trial in trials_of(manifest)]
    background = [fact.fact_id for fact in manifest.plan.background]
    reader = hash_chain.ChainReader(path, hash_chain.GENESIS)
    for line in reader:
        result = run_files.parsed(path, line, TrialResult)
        _check_format(path, line.number, result.format, manifest.format)
        if reader.count > len(planned) or result.trial_id != planned[reader.count - 1]:
            raise _bad(path, line.number, f"trial {result.trial_id} is not the one planned at this place")
        own = scenarios[result.trial_id.partition(".")[0]]
        named = (result.scenario_id, result.variant) == (own.scenario.scenario_id, own.variant)
        if not named or result.target.name not in manifest.plan.targets:
            raise _bad(path, line.number, f"trial {result.trial_id} names a scenario or target that is not its own")
        for problem in dangling(result, own.scenario, background):
            raise _bad(path, line.number, problem)
    return _ResultsRead(reader.count, reader.head)


def _check_format(path: Path, number: int, found: int, written: int) -> None:
    if found != written:
        raise _bad(path, number, f"its format is {found}, the run's is {written}")


def _bad(path: Path, number: int, why: str) -> IntegrityError:
    return IntegrityError(f"{path}, line {number}: {why}.")


def dangling(result: TrialResult, scenario: Scenario, background: Collection[str] = ()) -> list[str]:
    """Broken references of a result: spans outside their reply, claims or evidence that do not exist.

    `background` are the ids of the plan's background facts, which verdicts may cite too.
    """
    replies = {exchange.turn_id: exchange.reply or "" for exchange in result.conversation}
    claim_ids = {claim.claim_id for claim in result.claims}
    evidence_ids = scenario.answer_key.evidence_ids() | frozenset(background)
    problems = []
    for claim in result.claims:
        reply = replies.get(claim.turn_id or "", "")
        for span in claim.quote_spans:
            if not (span.start < span.end <= len(reply)):
                problems.append(f"the quote of claim {claim.claim_id} is outside its reply")
    by_judge = [*result.verdicts.values(), *result.shared_verdicts.values()]
    judged = [(v.claim_id, v.evidence) for verdicts in by_judge for v in verdicts]
    judged += [(final.claim_id, final.evidence) for final in result.final_claims]
    for claim_id, evidence in judged:
        if claim_id not in claim_ids:
            problems.append(f"a verdict is about claim {claim_id}, which does not exist")
        problems += [
            f"claim {claim_id} cites {cited}, which is not in the key"
            for cited in evidence
            if cited not in evidence_ids
        ]
    if shorter := _without_marked(result):
        problems += [f"without its marked passages, {one}" for one in dangling(shorter, scenario, background)]
    return problems + _dangling_codes(result, replies, evidence_ids)


def _without_marked(result: TrialResult) -> TrialResult | None:
    """The trial as if no marked passage had been written, with the claims and codes it then has."""
    without = result.without_marked
    if without is None:
        return None
    from .scoring.result import cut  # most runs need nothing of it, and it imports all agents

    marked = {reading.turn_id: reading.marked for reading in result.readings if reading.marked}
    conversation = tuple(
        one.model_copy(update={"reply": cut(one.reply or "", marked[one.turn_id])}) if one.turn_id in marked else one
        for one in result.conversation
    )
    return result.model_copy(
        update={
            "conversation": conversation,
            "claims": (*(claim for claim in result.claims if claim.turn_id not in marked), *without.claims),
            "final_claims": without.final_claims,
            "study_codes": without.study_codes,
            "verdicts": {},
            "shared_verdicts": {},
            "without_marked": None,
        }
    )


def _dangling_codes(result: TrialResult, replies: dict[str, str], evidence_ids: frozenset[str]) -> list[str]:
    turns = {claim.claim_id: claim.turn_id for claim in result.claims}
    problems = []
    for code in result.study_codes:
        where = f"the code of {code.question_group}"
        backings = [backing for made in (*code.points_met, *code.partial_points_met) for backing in made.claims]
        for backing in (*backings, *code.wrong, *code.minor):
            if backing.claim_id not in turns or not evidence_ids.issuperset(backing.evidence):
                problems.append(f"{where} rests on claim {backing.claim_id}, which is missing or cites a missing fact")
            said = replies.get(turns.get(backing.claim_id) or "", "")  # perhaps in a turn of another group
            problems += [f"{where} quotes something that was not said" for quote in backing.quotes if quote not in said]
        named = [*(made.point for made in (*code.points_met, *code.partial_points_met)), *code.points_missed]
        if not evidence_ids.issuperset(fact for point in named for fact in point.split("|")):
            problems.append(f"{where} names a point that is not in the key")
    return problems
