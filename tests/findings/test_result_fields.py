"""The structs that read results and calls fast restate fields of records: each must still be the record's own field."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from pydantic import BaseModel, Field

from src.findings.analysis import call_fields, result_fields, split_codes
from src.findings.report import evidence_fields
from src.schemas import CallRecord, TrialResult

ROOTS: dict[type[msgspec.Struct], type[BaseModel]] = {
    result_fields.TrialFields: TrialResult,
    split_codes.SplitFields: TrialResult,
    evidence_fields.TrialFields: TrialResult,
    evidence_fields.CodedFields: TrialResult,
    evidence_fields.ClaimedFields: TrialResult,
    call_fields.CallFields: CallRecord,
}


def plain_type(given: Any) -> Any:
    """A type without constraints; a closed list of words is text."""
    if get_origin(given) is Annotated:
        return plain_type(get_args(given)[0])
    if get_origin(given) is Literal:
        kinds = {type(value) for value in get_args(given)}
        assert len(kinds) == 1
        return kinds.pop()
    return given


def without_none(given: Any) -> tuple[Any, bool]:
    """A type without `| None`, and whether it had it."""
    if get_origin(given) not in (Union, types.UnionType):
        return given, False
    kinds = [kind for kind in get_args(given) if kind is not type(None)]
    assert len(kinds) == 1, given
    return kinds[0], True


def differences(
    mine: Any, theirs: Any, where: str, seen: set[type[msgspec.Struct]]
) -> Iterator[str]:  # one sentence for each way in which a type cannot take what the record writes
    (mine, may_be_none), (theirs, can_be_none) = without_none(mine), without_none(plain_type(theirs))
    mine, theirs = plain_type(mine), plain_type(theirs)
    if can_be_none and not may_be_none:
        yield f"{where} can be None"
    if mine is msgspec.Raw:
        return
    if isinstance(mine, type) and issubclass(mine, msgspec.Struct):
        if isinstance(theirs, type) and issubclass(theirs, BaseModel):
            yield from struct_differences(mine, theirs, seen)
        else:
            yield f"{where} is no record but {theirs}"
    elif get_origin(mine) is list:
        arguments = get_args(theirs)
        if get_origin(theirs) is not tuple or arguments[1:] != (...,):
            yield f"{where} is no list but {theirs}"
        else:
            yield from differences(get_args(mine)[0], arguments[0], f"{where}[]", seen)
    elif get_origin(mine) is dict:
        if get_origin(theirs) is not dict:
            yield f"{where} is no mapping but {theirs}"
        else:
            yield from differences(get_args(mine)[1], get_args(theirs)[1], f"{where}{{}}", seen)
    elif mine is not theirs:
        yield f"{where} is {theirs}, not {mine}"


def struct_differences(
    struct: type[msgspec.Struct], record: type[BaseModel], seen: set[type[msgspec.Struct]]
) -> Iterator[str]:
    seen.add(struct)
    hints = get_type_hints(record, include_extras=True)
    for field in msgspec.structs.fields(struct):
        where = f"{record.__name__}.{field.encode_name}"
        info = record.model_fields.get(field.encode_name)
        if info is None:
            yield f"{where} does not exist"
            continue
        if field.required and info.exclude_if is not None:
            yield f"{where} is not always written"
        yield from differences(field.type, hints[field.encode_name], where, seen)


@pytest.mark.parametrize(
    ("struct", "record"), ROOTS.items(), ids=[f"{struct.__module__}.{struct.__name__}" for struct in ROOTS]
)
def test_every_field_is_the_records_own(struct: type[msgspec.Struct], record: type[BaseModel]) -> None:
    assert list(struct_differences(struct, record, set())) == []


def test_every_struct_of_these_modules_is_compared() -> None:
    seen: set[type[msgspec.Struct]] = set()
    for struct, record in ROOTS.items():
        assert not list(struct_differences(struct, record, seen))
    there = {
        kind
        for module in (result_fields, split_codes, evidence_fields, call_fields)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    }
    assert len(there) > 15
    assert there == seen


class Inner(BaseModel):
    name: Annotated[str, Field(min_length=1)]


class Outer(BaseModel):
    kind: Literal["a", "b"]
    count: int
    score: float | None
    inner: Inner
    many: tuple[Inner, ...]
    by_name: dict[str, tuple[int, ...]]
    sometimes: str | None = Field(default=None, exclude_if=lambda value: value is None)


class InnerFields(msgspec.Struct):
    name: str


class RenamedInner(msgspec.Struct):
    title: str


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ([("kind", str), ("count", int), ("score", float | None), ("inner", InnerFields)], []),
        ([("many", list[InnerFields]), ("by_name", dict[str, list[int]]), ("sometimes", str | None, None)], []),
        ([("counts", int)], ["Outer.counts does not exist"]),
        ([("count", str)], ["Outer.count is <class 'int'>, not <class 'str'>"]),
        ([("score", float)], ["Outer.score can be None"]),
        ([("inner", RenamedInner)], ["Inner.title does not exist"]),
        ([("many", list[RenamedInner])], ["Inner.title does not exist"]),
        ([("many", InnerFields)], ["Outer.many is no record but tuple[tests.findings.test_result_fields.Inner, ...]"]),
        ([("count", list[int])], ["Outer.count is no list but <class 'int'>"]),
        ([("count", dict[str, int])], ["Outer.count is no mapping but <class 'int'>"]),
        ([("by_name", dict[str, list[str]])], ["Outer.by_name{}[] is <class 'int'>, not <class 'str'>"]),
        ([("sometimes", str | None)], ["Outer.sometimes is not always written"]),
    ],
)
def test_the_comparison_finds_what_it_must(fields: list[Any], found: list[str]) -> None:
    struct = msgspec.defstruct("Made", fields)
    assert list(struct_differences(struct, Outer, set())) == found
