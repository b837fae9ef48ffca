"""Some fields of a record, decoded fast: they are the record's own fields, with the record's own values."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from pydantic import BaseModel, Field

from src.schemas import CallRecord, Manifest, TrialResult
from src.store import hash_chain, run_folder
from src.store.projection import projection
from tests.runs import ROOT, THREE, shared_run

FORMATS = sorted((ROOT / "tests" / "formats").glob("*/run"))
RECORDS: dict[str, type[BaseModel]] = {one.__name__: one for one in (CallRecord, Manifest, TrialResult)}


def modules() -> list[str]:
    """Those that make a projection."""
    found = [path.relative_to(ROOT) for path in (ROOT / "src").rglob("*.py") if " = projection(" in path.read_text()]
    return sorted(".".join(path.with_suffix("").parts) for path in found)


def decoders(module: str) -> list[msgspec.json.Decoder[Any]]:
    made = [getattr(value, "__self__", None) for value in vars(importlib.import_module(module)).values()]
    return [one for one in made if isinstance(one, msgspec.json.Decoder)]


def lines(run: Path, record: type[BaseModel]) -> list[bytes]:
    if record is Manifest:
        return [(run / run_folder.MANIFEST).read_bytes()]
    path = run / (run_folder.RESULTS if record is TrialResult else run_folder.JOURNAL)
    start = hash_chain.GENESIS if record is TrialResult else run_folder.manifest_sha256(run)
    payloads = [line.payload for line in hash_chain.ChainReader(path, start)]
    return payloads if record is TrialResult else [one for one in payloads if hash_chain.is_call(one)]


def same(found: Any, record: Any) -> None:
    if isinstance(record, BaseModel):
        assert type(found).__name__ == type(record).__name__
        for field in msgspec.structs.fields(found):
            same(getattr(found, field.name), getattr(record, field.name))
    elif isinstance(record, dict | tuple):
        assert type(found) is type(record)
        assert len(found) == len(record)
        for key in record if isinstance(record, dict) else range(len(record)):
            same(found[key], record[key])
    else:
        assert (type(found), found) == (type(record), record)


@pytest.fixture(scope="module")
def run() -> Path:
    targets = [word for name in ("partial", "wrong", "evasive") for word in ("--target", f"fake:{name}")]
    return shared_run("--scenario", THREE, *targets)


@pytest.mark.parametrize("module", modules())
def test_a_projection_says_what_the_record_says(module: str, run: Path) -> None:
    assert decoders(module)
    for decoder in decoders(module):
        record = RECORDS[decoder.type.__name__]
        for folder in (*FORMATS, run):
            found = lines(folder, record)
            assert found
            for line in found:
                same(decoder.decode(line), record.model_validate_json(line))


def test_every_module_that_reads_runs_fast_is_compared() -> None:
    assert {"src.trials.tables", "src.findings.cost"} <= set(modules())


class Inner(BaseModel):
    name: Annotated[str, Field(min_length=1)]
    size: int = 0


class Outer(BaseModel):
    kind: Literal["a", "b"]
    count: int
    score: float | None
    inner: Inner
    many: tuple[Inner, ...]
    by_name: dict[str, tuple[tuple[Inner, ...], ...]] = Field(default_factory=dict)
    sometimes: Annotated[str, Field(max_length=9)] | None = Field(default=None, exclude_if=lambda value: value is None)


FULL = Outer(kind="a", count=1, score=0.5, inner=Inner(name="x", size=2), many=(Inner(name="y"),), sometimes="now")
LINE = FULL.model_dump_json().encode()


def test_nothing_listed_is_everything() -> None:
    found: Any = projection(Outer, {})(LINE)
    same(found, FULL)
    assert len(msgspec.structs.fields(found)) == len(Outer.model_fields)


def test_a_record_that_is_only_named_is_read_in_full() -> None:
    found = projection(Outer, {"": "inner", "many": "size"})(LINE)
    assert (found.inner.name, found.inner.size, found.many[0].size) == ("x", 2, 0)


def test_a_record_that_is_named_is_read_in_full_also_if_some_of_its_fields_are_listed() -> None:
    for fields in ({"inner": "name", "": "inner"}, {"": "inner", "inner": "name"}):
        assert projection(Outer, fields)(LINE).inner.size == 2


def test_what_is_not_listed_is_not_read() -> None:
    found = projection(Outer, {"inner": "name"})(b'{"kind":7,"inner":{"name":"x","size":"none"}}')
    assert found.inner.name == "x"
    with pytest.raises(AttributeError):
        _ = found.kind
    with pytest.raises(AttributeError):
        _ = found.inner.size


def test_an_absent_field_has_the_records_default() -> None:
    decode = projection(Outer, {"": "sometimes", "inner": "size", "by_name": "name"})
    found = decode(b'{"inner":{}}')
    assert (found.sometimes, found.inner.size, found.by_name) == (None, 0, {})
    assert found.by_name is not decode(b'{"inner":{}}').by_name


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b'{"kind":"c","many":[],"by_name":{}}',
        b'{"kind":"a","many":[{}],"by_name":{}}',
        b'{"kind":"a","many":[],"by_name":{"x":[[{"name":1}]]}}',
        b'{"kind":"a","many":null,"by_name":{}}',
    ],
)
def test_what_the_record_does_not_allow_is_refused(line: bytes) -> None:
    decode = projection(Outer, {"": "kind", "many": "name", "by_name": "name"})
    assert decode(b'{"kind":"a","many":[{"name":"x"}],"by_name":{"x":[[{"name":"y"}]]}}').by_name["x"][0][0].name == "y"
    with pytest.raises(msgspec.ValidationError):
        decode(line)


@pytest.mark.parametrize(
    "fields",
    [{"": "counts"}, {"inner": "title"}, {"by_name": "title"}, {"sometimes": "name"}, {"kind": "a"}, {"none": "name"}],
)
def test_a_field_that_the_record_does_not_have_is_found_when_the_decoder_is_made(fields: dict[str, str]) -> None:
    with pytest.raises(KeyError):
        projection(Outer, fields)
