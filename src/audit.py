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
from typing import TYPE_CHECKING, Any

from .errors import HarnessError, IncompleteRun, IntegrityError
from .planning.trials import trials_of
from .records.ids import evidence_ids, scenario_name
from .store import hash_chain, run_folder, strict_json, structs

if TYPE_CHECKING:
    from .records.contracts import Claim
    from .records.result import TrialResult
    from .records.run import JournalNote, Manifest, Seal
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
class _FileRead:
    count: int
    head: str
    torn_lines: int = 0


@dataclass(frozen=True)
class StoredLines:
    """The results of a run, by where each line is."""

    path: Path
    places: tuple[tuple[int, str], ...]
    """Of each line: its offset, and the chain value before it."""
    head: str

    def pieces(self, count: int) -> list[StoredPiece]:
        """The results in so many pieces of about the same size, in order; each can be compared by itself."""
        edges = [len(self.places) * number // count for number in range(count + 1)]
        return [StoredPiece(self.path, *self.places[a], range(a, b)) for a, b in pairwise(edges) if a < b]


@dataclass(frozen=True)
class StoredPiece:
    path: Path
    offset: int
    previous: str
    """The chain value before its first line."""
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
        places.append((line.offset, previous))
        previous = line.chain
    if seal:
        run_folder.check_count(path, "trial", len(places), seal.trials)
    return StoredLines(path, tuple(places), reader.head)


class ResultComparer:
    """Chains results that are computed again and compares each line with the stored one."""

    def __init__(self, stored: StoredPiece) -> None:
        self._stored = stored
        self._head = stored.previous
        self._count = stored.trials.start

    def __enter__(self) -> ResultComparer:
        self._file = self._stored.path.open("rb")
        self._file.seek(self._stored.offset)
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


def _line(name: str, path: Path, line: hash_chain.ChainedLine, *, exact: bool) -> Any:
    """A line as a struct, or as a record if that is refused; `exact`: as a record, whose refusals have sentences."""
    if not exact and (found := structs.read_line("ResultLine" if name == "TrialResult" else name, line.payload)):
        return found
    from . import schemas
    from .store import run_files

    return run_files.parsed(path, line, getattr(schemas, name))


def _note(path: Path, line: hash_chain.ChainedLine, *, exact: bool) -> JournalNote:
    found: JournalNote | None = None if exact else structs.read_note(line.payload)
    if found is None:
        from .store import run_files

        found = run_files.parsed_note(path, line)
    return found


def _read_manifest(folder: Path, *, exact: bool) -> Manifest:
    path = folder / run_folder.MANIFEST
    if not exact and path.is_file():
        found: Manifest | None = structs.read_file("Manifest", path.read_bytes())
        if found and strict_json.sha256(structs.sorted_json(found.plan)) == found.plan_sha256:
            return found
    from .store import run_files

    manifest = run_files.read_manifest(folder)
    if strict_json.fingerprint(manifest.plan.model_dump(mode="json")) != manifest.plan_sha256:
        raise IntegrityError(f"{path} was changed after it was written: the plan does not match its hash.")
    return manifest


def verify(folder: Path, expect: str | None = None) -> Verified:
    try:
        return _verify(folder, expect, exact=False)
    except (HarnessError, OSError):
        return _verify(folder, expect, exact=True)


def _verify(folder: Path, expect: str | None, *, exact: bool) -> Verified:
    manifest = _read_manifest(folder, exact=exact)
    planned = [trial.trial_id for trial in trials_of(manifest)]
    seal = _seal(folder, manifest, len(planned), exact=exact)
    genesis = run_folder.manifest_sha256(folder)
    journal = _journal(folder / run_folder.JOURNAL, genesis, manifest.format, exact=exact)
    results = _results(folder / run_folder.RESULTS, manifest, planned, exact=exact)
    if seal:
        _compare_seal(folder, seal, journal, results)
    if expect is not None and expect.lower() != results.head:
        raise IntegrityError(
            f"{folder / run_folder.RESULTS}: the results hash is {results.head}, not the expected {expect}."
        )
    return Verified(
        manifest.run_id, results.count, len(planned), journal.count, journal.torn_lines, results.head, seal is not None
    )


def _seal(folder: Path, manifest: Manifest, trials: int, *, exact: bool) -> Seal | None:
    path = folder / run_folder.SEAL
    if not path.exists():
        return None
    seal: Seal | None = None if exact else structs.read_file("Seal", path.read_bytes())
    if seal is None:
        from .records.run import Seal
        from .store import run_files

        seal = run_files.read_record(path, Seal)
    run_folder.check_seal(folder, seal, manifest.format, trials)
    return seal


def _compare_seal(folder: Path, seal: Seal, journal: _FileRead, results: _FileRead) -> None:
    """The files are whole and agree with each other; now they must be the sealed ones, to the byte."""
    if journal.head != seal.journal_head:
        run_folder.check_count(folder / run_folder.JOURNAL, "call", journal.count, seal.calls)
    run_folder.check_count(folder / run_folder.RESULTS, "trial", results.count, seal.trials)
    agrees = {
        run_folder.JOURNAL: (journal.head, journal.count) == (seal.journal_head, seal.calls),
        run_folder.RESULTS: results.head == seal.results_head,
    }
    for name, as_sealed in agrees.items():
        if not as_sealed or run_folder.file_sha256(folder / name) != seal.files[name]:
            raise run_folder.differs_from_seal(folder / name)


def _journal(path: Path, genesis: str, written: int, *, exact: bool) -> _FileRead:
    if not path.exists():
        return _FileRead(0, genesis)
    reader = hash_chain.ChainReader(path, genesis)
    calls = torn = 0
    for line in reader:
        if hash_chain.is_note(line.payload):
            _check_format(path, line.number, _note(path, line, exact=exact).format, written)
        elif hash_chain.is_recovery(line.payload):
            torn += len(_line("RecoveryRecord", path, line, exact=exact).recovered)
        else:
            _check_format(path, line.number, _line("CallRecord", path, line, exact=exact).format, written)
            calls += 1
    return _FileRead(calls, reader.head, torn + len(reader.torn))


def _results(path: Path, manifest: Manifest, planned: list[str], *, exact: bool) -> _FileRead:
    if not path.exists():
        return _FileRead(0, hash_chain.GENESIS)
    scenarios = {scenario_name(one.scenario.scenario_id, one.variant): one for one in manifest.plan.scenarios}
    background = frozenset(fact.fact_id for fact in manifest.plan.background or ())
    known = {name: evidence_ids(one.scenario.answer_key) | background for name, one in scenarios.items()}
    reader = hash_chain.ChainReader(path, hash_chain.GENESIS)
    for line in reader:
        result: TrialResult = _line("TrialResult", path, line, exact=exact)
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
    return _FileRead(reader.count, reader.head)


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
        shorter, claims = replies, tuple(one for one in result.claims if one.claim_id not in without.left_out)
        if without.claims:  # up to format 5, the marked replies were judged again without the passages
            from .text.sentences import Excerpt

            marked = {reading.turn_id: reading.marked for reading in result.readings if reading.marked}
            shorter = {turn: Excerpt.without(said, marked.get(turn, ())).text for turn, said in replies.items()}
            claims = (*(claim for claim in result.claims if claim.turn_id not in marked), *without.claims)
        missing = set(without.left_out).difference(claim.claim_id for claim in result.claims)
        problems += [f"claim {claim_id} is left out, and does not exist" for claim_id in sorted(missing)]
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
