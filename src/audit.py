"""`verify`: is a run folder exactly what was written, and does every reference in it hold?

Checked in this order: manifest, that the seal belongs to it, journal chain, results chain, records against their
schemas, every quote span and evidence id, plan order, seal. The first thing wrong is named by file and line.

A run is first read as structs made from the published schemas (`store.structs`), which needs no Pydantic. If anything
is wrong, it is read again as records, and they decide. Journal, results and seal are refused in the same cases either
way. Of the manifest, structs do not check what no schema states: rules inside scenarios, facts, rubrics and prices (a
point names a fact of its key), and which fields are left out while they have their default value. Whoever writes such
a manifest must compute its plan hash, the journal's chain and the seal again. `replay` and every command that uses the
run refuse it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import HarnessError, IncompleteRun, IntegrityError
from .planning.trials import trials_of
from .records.ids import evidence_ids, scenario_name
from .store import hash_chain, run_folder, strict_json, structs

if TYPE_CHECKING:
    from .records.contracts import Claim
    from .records.result import TrialResult
    from .records.run import CallRecord, JournalNote, Manifest, RecoveryRecord, Seal
    from .records.study_code import QuestionCode


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
    from .store import run_files

    path = folder / run_folder.RESULTS
    seal = run_files.read_seal_record(folder, manifest)
    if not path.exists():
        raise IncompleteRun(f"{folder} has no results yet. First run: medicare-eval resume {folder}")
    reader = hash_chain.ChainReader(path, hash_chain.GENESIS)
    places, previous = [], hash_chain.GENESIS
    for line in reader:
        places.append(LinePlace(line.offset, previous))
        previous = line.chain
    if seal:
        run_folder.check_count(path, "trial", len(places), seal.trials)
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
            from .store import run_files

            where = f"{self._stored.path}, line {self._count} ({run_files.trial_id(payload)})"
            raise IntegrityError(f"{where}: does not match the result recomputed from the journal.")


class _Records:
    """Reads a run as records. Every refusal and its sentence come from here."""

    def manifest(self, folder: Path) -> Manifest:
        from .store import run_files

        manifest = run_files.read_manifest(folder)
        if strict_json.fingerprint(manifest.plan.model_dump(mode="json")) != manifest.plan_sha256:
            path = folder / run_folder.MANIFEST
            raise IntegrityError(f"{path} was changed after it was written: the plan does not match its hash.")
        return manifest

    def seal(self, path: Path) -> Seal:
        from .records.run import Seal
        from .store import run_files

        return run_files.read_record(path, Seal)

    def call(self, path: Path, line: hash_chain.ChainedLine) -> CallRecord:
        from .records.run import CallRecord
        from .store import run_files

        return run_files.parsed(path, line, CallRecord)

    def note(self, path: Path, line: hash_chain.ChainedLine) -> JournalNote:
        from .store import run_files

        return run_files.parsed_note(path, line)

    def recovery(self, path: Path, line: hash_chain.ChainedLine) -> RecoveryRecord:
        from .records.run import RecoveryRecord
        from .store import run_files

        return run_files.parsed(path, line, RecoveryRecord)

    def result(self, path: Path, line: hash_chain.ChainedLine) -> TrialResult:
        from .records.result import TrialResult
        from .store import run_files

        return run_files.parsed(path, line, TrialResult)


class _Structs(_Records):
    """Reads a run as structs with the fields of the records, and as a record what a struct does not accept."""

    def manifest(self, folder: Path) -> Manifest:
        path = folder / run_folder.MANIFEST
        found: Manifest | None = structs.read_file("Manifest", path.read_bytes()) if path.is_file() else None
        if found and strict_json.sha256(structs.sorted_json(found.plan)) == found.plan_sha256:
            return found
        return super().manifest(folder)

    def seal(self, path: Path) -> Seal:
        return structs.read_file("Seal", path.read_bytes()) or super().seal(path)

    def call(self, path: Path, line: hash_chain.ChainedLine) -> CallRecord:
        return structs.read_line("CallRecord", line.payload) or super().call(path, line)

    def note(self, path: Path, line: hash_chain.ChainedLine) -> JournalNote:
        return structs.read_note(line.payload) or super().note(path, line)

    def recovery(self, path: Path, line: hash_chain.ChainedLine) -> RecoveryRecord:
        return structs.read_line("RecoveryRecord", line.payload) or super().recovery(path, line)

    def result(self, path: Path, line: hash_chain.ChainedLine) -> TrialResult:
        return structs.read_line("ResultLine", line.payload) or super().result(path, line)


def verify(folder: Path, expect: str | None = None) -> Verified:
    try:
        return _verify(folder, expect, _Structs())
    except (HarnessError, OSError):
        return _verify(folder, expect, _Records())


def _verify(folder: Path, expect: str | None, read: _Records) -> Verified:
    manifest = read.manifest(folder)
    planned = [trial.trial_id for trial in trials_of(manifest)]
    seal = _seal(folder, manifest, len(planned), read)
    journal = _journal(folder / run_folder.JOURNAL, run_folder.manifest_sha256(folder), manifest.format, read)
    results = _results(folder / run_folder.RESULTS, manifest, planned, read)
    if seal:
        _compare_seal(folder, seal, journal, results)
    if expect is not None and expect.lower() != results.head:
        raise IntegrityError(
            f"{folder / run_folder.RESULTS}: the results hash is {results.head}, not the expected {expect}."
        )
    return Verified(
        manifest.run_id, results.count, len(planned), journal.calls, journal.torn_lines, results.head, seal is not None
    )


def _seal(folder: Path, manifest: Manifest, trials: int, read: _Records) -> Seal | None:
    try:
        seal = read.seal(folder / run_folder.SEAL)
    except FileNotFoundError:
        return None
    run_folder.check_seal(folder, seal, manifest.format, trials)
    return seal


def _compare_seal(folder: Path, seal: Seal, journal: _JournalRead, results: _ResultsRead) -> None:
    """The files are whole and agree with each other; now they must be the sealed ones, to the byte."""
    if journal.head != seal.journal_head:
        run_folder.check_count(folder / run_folder.JOURNAL, "call", journal.calls, seal.calls)
    run_folder.check_count(folder / run_folder.RESULTS, "trial", results.count, seal.trials)
    agrees = {
        run_folder.JOURNAL: (journal.head, journal.calls) == (seal.journal_head, seal.calls),
        run_folder.RESULTS: results.head == seal.results_head,
    }
    for name, as_sealed in agrees.items():
        if not as_sealed or run_folder.file_sha256(folder / name) != seal.files[name]:
            raise run_folder.differs_from_seal(folder / name)


def _journal(path: Path, genesis: str, written: int, read: _Records) -> _JournalRead:
    if not path.exists():
        return _JournalRead(0, 0, genesis)
    reader = hash_chain.ChainReader(path, genesis)
    calls = torn = 0
    for line in reader:
        if hash_chain.is_note(line.payload):
            _check_format(path, line.number, read.note(path, line).format, written)
        elif hash_chain.is_recovery(line.payload):
            torn += len(read.recovery(path, line).recovered)
        else:
            _check_format(path, line.number, read.call(path, line).format, written)
            calls += 1
    return _JournalRead(calls, torn + len(reader.torn), reader.head)


def _results(path: Path, manifest: Manifest, planned: list[str], read: _Records) -> _ResultsRead:
    if not path.exists():
        return _ResultsRead(0, hash_chain.GENESIS)
    scenarios = {scenario_name(one.scenario.scenario_id, one.variant): one for one in manifest.plan.scenarios}
    background = frozenset(fact.fact_id for fact in manifest.plan.background or ())
    known = {name: evidence_ids(one.scenario.answer_key) | background for name, one in scenarios.items()}
    reader = hash_chain.ChainReader(path, hash_chain.GENESIS)
    for line in reader:
        result = read.result(path, line)
        _check_format(path, line.number, result.format, manifest.format)
        if reader.count > len(planned) or result.trial_id != planned[reader.count - 1]:
            raise _bad(path, line.number, f"trial {result.trial_id} is not the one planned at this place")
        name = result.trial_id.partition(".")[0]
        own = scenarios[name]
        named = (result.scenario_id, result.variant) == (own.scenario.scenario_id, own.variant)
        if not named or result.target.name not in manifest.plan.targets:
            raise _bad(path, line.number, f"trial {result.trial_id} names a scenario or target that is not its own")
        for problem in dangling(result, known[name]):
            raise _bad(path, line.number, problem)
    return _ResultsRead(reader.count, reader.head)


def _check_format(path: Path, number: int, found: int, written: int) -> None:
    if found != written:
        raise _bad(path, number, f"its format is {found}, the run's is {written}")


def _bad(path: Path, number: int, why: str) -> IntegrityError:
    return IntegrityError(f"{path}, line {number}: {why}.")


def dangling(result: TrialResult, known: Collection[str]) -> list[str]:
    """Broken references of a result: spans outside their reply, claims or evidence that do not exist.

    Args:
        result: the record, or a struct with its fields.
        known: what a verdict may cite: `evidence_ids` of the key, and the ids of the plan's background facts.
    """
    replies = {exchange.turn_id: exchange.reply or "" for exchange in result.conversation}
    by_judge = [*result.verdicts.values(), *result.shared_verdicts.values()]
    judged = [(one.claim_id, one.evidence) for verdicts in by_judge for one in verdicts]
    judged += [(final.claim_id, final.evidence) for final in result.final_claims]
    problems = _broken(replies, result.claims, judged, known)
    if without := result.without_marked:
        from .text.sentences import cut

        marked = {reading.turn_id: reading.marked for reading in result.readings if reading.marked}
        shorter = {turn: cut(reply, marked.get(turn, ())) for turn, reply in replies.items()}
        claims = (*(claim for claim in result.claims if claim.turn_id not in marked), *without.claims)
        judged = [(final.claim_id, final.evidence) for final in without.final_claims]
        found = _broken(shorter, claims, judged, known) + _broken_codes(without.study_codes, shorter, claims, known)
        problems += [f"without its marked passages, {one}" for one in found]
    return problems + _broken_codes(result.study_codes, replies, result.claims, known)


def _broken(
    replies: Mapping[str, str],
    claims: Collection[Claim],
    judged: Iterable[tuple[str, tuple[str, ...]]],
    known: Collection[str],
) -> list[str]:
    problems = []
    for claim in claims:
        reply = replies.get(claim.turn_id or "", "")
        for span in claim.quote_spans:
            if not (span.start < span.end <= len(reply)):
                problems.append(f"the quote of claim {claim.claim_id} is outside its reply")
    claim_ids = {claim.claim_id for claim in claims}
    for claim_id, evidence in judged:
        if claim_id not in claim_ids:
            problems.append(f"a verdict is about claim {claim_id}, which does not exist")
        problems += [
            f"claim {claim_id} cites {cited}, which is not in the key" for cited in evidence if cited not in known
        ]
    return problems


def _broken_codes(
    codes: Iterable[QuestionCode], replies: Mapping[str, str], claims: Collection[Claim], known: Collection[str]
) -> list[str]:
    turns = {claim.claim_id: claim.turn_id for claim in claims}
    problems = []
    for code in codes:
        where = f"the code of {code.question_group}"
        backings = [backing for made in (*code.points_met, *code.partial_points_met) for backing in made.claims]
        for backing in (*backings, *code.wrong, *code.minor):
            if backing.claim_id not in turns or not all(cited in known for cited in backing.evidence):
                problems.append(f"{where} rests on claim {backing.claim_id}, which is missing or cites a missing fact")
            said = replies.get(turns.get(backing.claim_id) or "", "")  # perhaps in a turn of another group
            problems += [f"{where} quotes something that was not said" for quote in backing.quotes if quote not in said]
        named = [*(made.point for made in (*code.points_met, *code.partial_points_met)), *code.points_missed]
        if not all(fact in known for point in named for fact in point.split("|")):
            problems.append(f"{where} names a point that is not in the key")
    return problems
