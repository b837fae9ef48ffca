"""`verify` reads runs as structs first: what a struct accepts, the record accepts, and both have the same values."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator, PlainValidator, ValidationError, WrapValidator

from src import audit
from src.errors import HarnessError, IntegrityError
from src.planning.trials import trials_of
from src.records.result import TrialResult
from src.records.run import (
    BatchCreated,
    BatchEnded,
    BatchIntent,
    BatchLine,
    CallRecord,
    JournalNote,
    LimitsNote,
    Manifest,
    RecoveryRecord,
    RunLimits,
    Seal,
)
from src.store import hash_chain, run_files, run_folder, strict_json, structs
from tests.cases import each_case
from tests.runs import ONE, ROOT, copied_run

FORMATS = sorted((ROOT / "tests" / "formats").glob("*/run"))
ROUNDS = [200, pytest.param(2_000, marks=pytest.mark.nightly)]
SHA = "0123456789abcdef" * 4
NOTES = [
    LimitsNote(limits=RunLimits(max_cost=2.5, requests_per_minute={"openai": 60}, batch="judges"), started="now"),
    BatchIntent(
        intent="i",
        model="openai:gpt-4.1",
        lines=(BatchLine(custom_id="a", call="t|verifier|Q1|1|0|1", request_sha256=SHA),),
        started="now",
    ),
    BatchCreated(intent="i", batch="b", ends="later"),
    BatchEnded(intent="i", batch=None, state="failed"),
]
RECOVERY = hash_chain.recovery_payload([hash_chain.Torn(3, 17, SHA, True), hash_chain.Torn(4, 0, SHA, True)])
DEEP: Any = "x"
for _ in range(150):
    DEEP = [DEEP]
TOO_DEEP: Any = "x"
for _ in range(220):
    TOO_DEEP = {"a": TOO_DEEP}
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 5, 6, 0.0, 1.0, 0.5, 1.5, 2**70, 10**25, "", "x", "F1", "D1", "Q1", "fake:careful", SHA,
    f"{SHA}\n", "Q1\n", "a b", "\u00a0", "_", "\x1f", "\u2028", "😀" * 1_001, "x" * 4_001, "2026-01-01", [], {}, [None],
    ["F1"], [["F1"]], {"a": 1}, {"judge_1": []}, DEEP, TOO_DEEP,
]  # fmt: skip
"""Values that some field may not have."""
TEXTS = [
    b"NaN", b"-Infinity", b"1e999", b"-0", b"1E2", b"01", b"5.0", b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\xff"', b'"\xed\xa0\x80"',
    b'"\x01"', b"1" * 400, b"1" * 5_000, b"{}", b'{"a":1,"a":2}', b"[1,]", b" null ", b"\xef\xbb\xbf1",
]  # fmt: skip
"""What no encoder would write, in place of a value."""
Json = Any


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unsealed run of two trials whose manifest is small: with few background facts."""
    folder = copied_run(
        tmp_path_factory.mktemp("run"), "--scenario", ONE, "--target", "fake:partial", "--target", "fake:wrong"
    )
    document = json.loads((folder / run_folder.MANIFEST).read_bytes())
    cited = (folder / run_folder.RESULTS).read_text(encoding="utf-8")
    document["plan"]["background"] = [
        fact
        for place, fact in enumerate(document["plan"]["background"])
        if place < 3 or f'"{fact["fact_id"]}"' in cited
    ]
    rewrite(folder, document)
    assert audit._verify(folder, None, exact=True).trials == 2
    return folder


def rewrite(folder: Path, manifest: Json) -> None:
    """Put in another manifest, with its plan hash and a journal that is chained to it; the seal goes."""
    path = folder / run_folder.JOURNAL
    payloads = [line.payload for line in hash_chain.ChainReader(path, run_folder.manifest_sha256(folder))]
    if isinstance(manifest.get("plan"), dict) and "plan_sha256" in manifest:
        manifest["plan_sha256"] = strict_json.fingerprint(manifest["plan"])
    (folder / run_folder.MANIFEST).write_bytes(strict_json.encode(manifest) + b"\n")
    path.write_bytes(chained(run_folder.manifest_sha256(folder), payloads))
    (folder / run_folder.SEAL).unlink(missing_ok=True)


def chained(head: str, payloads: list[bytes]) -> bytes:
    lines = []
    for payload in payloads:
        head, line = hash_chain.chained(head, payload)
        lines.append(line)
    return b"".join(lines)


def places(value: Json) -> Iterator[tuple[Any, Any]]:
    """Every container in a document with a key or an index of it."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def changed(payload: bytes, dice: random.Random) -> bytes:
    """One random change to a document; it may also change nothing that matters."""
    document = json.loads(payload)
    holder, key = dice.choice(list(places(document)))
    value = holder[key]
    how = dice.randrange(9)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder["unheard_of"] = value
    elif how == 2 and isinstance(holder, list):
        holder.insert(key, value)
    elif how == 3 and isinstance(value, str):
        holder[key] = value + dice.choice(["\n", " ", "x", "\x00", "é"])
    elif how == 4 and isinstance(value, int | float):
        holder[key] = dice.choice([value + 1, -value, float(value), str(value), 1_000_000 * value])
    elif how == 5:
        holder[key] = dice.choice(list(places(document)))[1]
    elif how == 6:
        holder[key] = "@@"
        return strict_json.encode(document).replace(b'"@@"', dice.choice(TEXTS), 1)
    elif how == 7:
        raw = bytearray(payload)
        raw[dice.randrange(len(raw))] = dice.choice(b'"\\{}[],:019.-eE tn\x00\x7f\x80\xff')
        return bytes(raw).replace(b"\n", b" ")
    else:
        holder[key] = dice.choice(ODD)
    return strict_json.encode(document)


def verdict(check: Callable[[bool], object], *, exact: bool) -> str:
    """What is wrong, or nothing."""
    try:
        check(exact)
    except HarnessError as error:
        return str(error)
    return ""


def verdict_of_structs(check: Callable[[bool], object]) -> str:
    """The verdict of structs; where they refuse, records decide, as in `verify`."""
    return verdict(check, exact=False) and verdict(check, exact=True)


def same(struct: Any, record: Any) -> None:
    if isinstance(record, BaseModel):
        assert {field.name for field in msgspec.structs.fields(struct)} == set(type(record).model_fields)
        for name in type(record).model_fields:
            if (found := getattr(struct, name)) is not msgspec.UNSET:
                same(found, getattr(record, name))
    elif isinstance(record, dict | tuple):
        assert len(struct) == len(record)
        for key in record if isinstance(record, dict) else range(len(record)):
            same(struct[key], record[key])
    else:
        assert struct == record


@pytest.fixture(params=["new", *(path.parent.name for path in FORMATS)])
def folder(request: pytest.FixtureRequest, run: Path) -> Path:
    return run if request.param == "new" else ROOT / "tests" / "formats" / request.param / "run"


def test_every_line_that_a_release_wrote_is_read_as_a_struct_with_the_same_values(folder: Path) -> None:
    manifest = structs.read_file("Manifest", (folder / run_folder.MANIFEST).read_bytes())
    same(manifest, run_files.read_manifest(folder))
    assert strict_json.sha256(structs.sorted_json(manifest.plan)) == manifest.plan_sha256
    journal = list(hash_chain.ChainReader(folder / run_folder.JOURNAL, run_folder.manifest_sha256(folder)))
    results = list(hash_chain.ChainReader(folder / run_folder.RESULTS, hash_chain.GENESIS))
    assert journal and results
    for line in journal:
        same(structs.read_line("CallRecord", line.payload), CallRecord.model_validate_json(line.payload))
    for line in results:
        same(structs.read_line("ResultLine", line.payload), TrialResult.model_validate_json(line.payload))
    if (folder / run_folder.SEAL).exists():
        data = (folder / run_folder.SEAL).read_bytes()
        same(structs.read_file("Seal", data), Seal.model_validate_json(data))


@each_case("note", NOTES, ids=lambda note: note.note)
def test_notes_are_read_as_structs_with_the_same_values(note: BaseModel) -> None:
    same(structs.read_note(note.model_dump_json().encode()), note)


def test_recovery_records_are_read_as_structs_with_the_same_values() -> None:
    same(structs.read_line("RecoveryRecord", RECOVERY), RecoveryRecord.model_validate_json(RECOVERY))


@pytest.mark.parametrize("rounds", ROUNDS)
def test_changed_results_get_the_verdict_of_the_records(folder: Path, rounds: int, tmp_path: Path) -> None:
    dice = random.Random(f"results {rounds}")
    manifest = run_files.read_manifest(folder)
    planned = [trial.trial_id for trial in trials_of(manifest)]
    payload = next(iter(hash_chain.ChainReader(folder / run_folder.RESULTS, hash_chain.GENESIS))).payload
    path = tmp_path / run_folder.RESULTS
    refused = 0
    for _ in range(rounds):
        made = changed(payload, dice)
        path.write_bytes(chained(hash_chain.GENESIS, [made]))
        check = lambda exact: audit._results(path, manifest, planned, exact=exact)  # noqa: E731
        expected = verdict(check, exact=True)
        assert verdict_of_structs(check) == expected, made
        refused += expected != ""
    assert rounds * 0.3 < refused < rounds


@pytest.mark.parametrize("rounds", ROUNDS)
def test_changed_lines_of_the_journal_get_the_verdict_of_the_records(folder: Path, rounds: int, tmp_path: Path) -> None:
    dice = random.Random(f"journal {rounds}")
    written = run_files.read_manifest(folder).format
    lines = hash_chain.ChainReader(folder / run_folder.JOURNAL, run_folder.manifest_sha256(folder))
    payloads = [line.payload for line in lines][:40] + [note.model_dump_json().encode() for note in NOTES] * 5
    path = tmp_path / run_folder.JOURNAL
    refused = 0
    for _ in range(rounds):
        made = changed(dice.choice(payloads), dice)
        path.write_bytes(chained(hash_chain.GENESIS, [made]))
        check = lambda exact: audit._journal(path, hash_chain.GENESIS, written, exact=exact)  # noqa: E731
        expected = verdict(check, exact=True)
        assert verdict_of_structs(check) == expected, made
        refused += expected != ""
    assert rounds * 0.3 < refused < rounds


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_changed_recovery_record_or_seal_is_accepted_only_if_the_record_accepts_it(run: Path, rounds: int) -> None:
    dice = random.Random(f"others {rounds}")
    seal = Seal(
        results_head=SHA, journal_head=SHA, trials=2, calls=3, files=dict.fromkeys(run_folder.SEALED, SHA)
    )  # fmt: skip
    accepted = 0
    for _ in range(rounds):
        made = changed(RECOVERY, dice)
        if structs.read_line("RecoveryRecord", made) is not None:
            RecoveryRecord.model_validate_json(made)
        made = changed(run_files.encode_record(seal), dice) + b"\n"
        if structs.read_file("Seal", made) is not None:
            assert run_files.encode_record(Seal.model_validate_json(made)) + b"\n" == made
            accepted += 1
    assert 0 < accepted < rounds / 2


@pytest.mark.parametrize("rounds", [100, pytest.param(2_000, marks=pytest.mark.nightly)])
def test_a_forged_manifest_is_accepted_only_if_no_schema_could_tell(run: Path, rounds: int, tmp_path: Path) -> None:
    """Plan hash and journal are computed again. What is left to records is named in `src.audit`."""
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    dice = random.Random(f"manifest {rounds}")
    data = (run / run_folder.MANIFEST).read_bytes()
    refused = 0
    for _ in range(rounds):
        made = changed(data.rstrip(b"\n"), dice)
        try:
            document = strict_json.loads(made.decode("utf-8"))
        except ValueError:
            document = None
        if isinstance(document, dict):
            rewrite(copy, document)
        else:
            (copy / run_folder.MANIFEST).write_bytes(made + b"\n")
        check = lambda exact: audit._verify(copy, None, exact=exact)  # noqa: E731
        expected = verdict(check, exact=True)
        refused += expected != ""
        if verdict_of_structs(check) != expected:
            assert expected
            try:
                Manifest.model_validate_json((copy / run_folder.MANIFEST).read_bytes())
            except ValidationError as error:
                kinds = {one["type"] for one in error.errors()}
                assert "value_error" in kinds, made
                assert kinds <= {"value_error", "too_short"}, made  # too short without what was refused
            else:
                assert "was changed after it was written" in expected
        shutil.copytree(run, copy, dirs_exist_ok=True)
    assert rounds * 0.3 < refused


@pytest.mark.parametrize("rounds", [100, pytest.param(2_000, marks=pytest.mark.nightly)])
def test_a_manifest_that_was_changed_afterward_is_refused(run: Path, rounds: int, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    path = copy / run_folder.MANIFEST
    data = path.read_bytes()
    dice = random.Random(f"edited {rounds}")
    for _ in range(rounds):
        made = changed(data.rstrip(b"\n"), dice) + b"\n"
        path.write_bytes(made)
        check = lambda exact: audit._verify(copy, None, exact=exact)  # noqa: E731
        expected = verdict(check, exact=True)
        assert verdict_of_structs(check) == expected, made
        assert bool(expected) == (made != data)


def test_a_manifest_with_a_number_without_limit_is_refused_in_a_sentence(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    path = copy / run_folder.MANIFEST
    made = path.read_bytes().replace(b'"max_cost":null', b'"max_cost":1e999')
    assert made != path.read_bytes()
    path.write_bytes(made)
    with pytest.raises(IntegrityError, match="was changed after it was written"):
        audit.verify(copy)


def parts(kind: Any) -> Iterator[Any]:
    """A type and everything that it is made of: records, the types of their fields, and what is noted about them."""
    yield kind
    inner: list[Any] = [*get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for field in kind.model_fields.values():
            inner += [field.annotation, *field.metadata]
    for one in inner:
        yield from parts(one)


def test_no_rule_of_a_line_or_the_seal_is_stated_only_in_code() -> None:
    """Structs know schemas only. A rule that is added to these records must also be checked in `src.audit`."""
    ruled = set()
    for kind in parts(TrialResult | CallRecord | RecoveryRecord | Seal | JournalNote):
        assert not isinstance(kind, AfterValidator | BeforeValidator | PlainValidator | WrapValidator), kind
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            rules = kind.__pydantic_decorators__
            if rules.model_validators or rules.field_validators or rules.root_validators or rules.validators:
                ruled.add(kind.__name__)
    assert ruled == {"QuoteSpan"}  # `dangling` checks that a span has a length


def test_a_keyword_that_has_no_type_is_an_error() -> None:
    for schema in ({"type": "string", "contentEncoding": "base64"}, {"type": "string", "pattern": r"^\p{L}$"}):
        with pytest.raises(KeyError):
            structs._Types(schema, exact=False).top()
