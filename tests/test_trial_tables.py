"""The columns of trials: each says where its value is, and that place exists in the record."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from src.exports import tables as exported
from src.exports.tables import TABLES
from src.trials import tables
from src.trials.columns import MISSING, DataColumn, DataTable, integer, text
from src.trials.tables import OF_TRIALS

PARTS = {
    name: get_args(kind)[0]
    for module in (tables, exported)
    for name, kind in get_type_hints(module).items()
    if get_origin(kind) is DataTable
}
"""By table: what its rows are about."""


def kinds(given: Any) -> list[Any]:
    """The types that a value can have, other than None."""
    if get_origin(given) is Annotated:
        return kinds(get_args(given)[0])
    if get_origin(given) in (Union, types.UnionType):
        return [one for inner in get_args(given) for one in kinds(inner)]
    if get_origin(given) is tuple:
        return kinds(get_args(given)[0])
    return [] if given is type(None) else [given]


def attribute(owner: type, name: str) -> Any:
    if issubclass(owner, BaseModel) and name in owner.model_fields:
        return owner.model_fields[name].annotation
    hints = get_type_hints(owner)
    if name in hints:
        return hints[name]
    made = getattr(owner, name, None)
    if isinstance(made, property):
        return get_type_hints(made.fget)["return"]
    raise AttributeError(f"{owner.__name__} has no {name}")


def type_at(part: Any, path: str) -> list[Any]:
    found = [part]
    for name in path.split("."):
        found = [kind for owner in found for kind in kinds(attribute(owner, name))]
    return found


def paths() -> list[tuple[str, str]]:
    return [
        (table.name, column.source) for table in TABLES for column in table.columns if isinstance(column.source, str)
    ]


def test_every_path_leads_to_a_value() -> None:
    kind_of = {(table.name, column.source): column.kind for table in TABLES for column in table.columns}
    assert len(paths()) > 100
    for table, path in paths():
        for kind in type_at(PARTS[table.upper()], path):
            plain = str if get_origin(kind) is Literal else get_origin(kind) or kind
            assert not issubclass(plain, dict), (table, path)
            assert kind_of[table, path] == "integer" or not issubclass(plain, BaseModel), (table, path)


@pytest.mark.parametrize("path", ["trial.outcomes", "trial.target.title", "part.outcome", "trial.outcome.name"])
def test_a_path_that_leads_nowhere_is_found(path: str) -> None:
    with pytest.raises((AttributeError, TypeError)):
        type_at(tables.TrialPart, path)


def test_a_path_ends_where_a_value_is_none_and_lists_are_joined() -> None:
    class Inner(BaseModel):
        names: tuple[str, ...] = ()
        size: int | None = None

    class Outer(BaseModel):
        inner: Inner | None = None
        many: tuple[Inner, ...] = ()

    names: DataColumn[Outer] = text("names", "Names", "inner.names")
    assert names.cell(Outer()) is None
    assert names.cell(Outer(inner=Inner())) is None
    assert names.cell(Outer(inner=Inner(names=("a", "b")))) == "a; b"
    how_many: DataColumn[Outer] = integer("how_many", "How many", "inner.names")
    in_all: DataColumn[Outer] = integer("in_all", "In all", "many.size")
    assert (how_many.cell(Outer()), how_many.cell(Outer(inner=Inner()))) == (None, 0)
    assert how_many.cell(Outer(inner=Inner(names=("a", "b")))) == 2
    assert in_all.cell(Outer(many=(Inner(size=2), Inner(), Inner(size=3)))) == 5
    assert in_all.cell(Outer()) == 0


def test_columns_have_names_of_their_own_and_reasons_are_known() -> None:
    for table in TABLES:
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        assert set(table.keys) <= set(names)
        for column in table.columns:
            assert set(column.reasons) <= MISSING.keys()
            assert bool(column.reasons) is (f"{column.name}_missing" in names)
            if column.absent and column.kind not in ("text", "reason"):
                assert column.absent in MISSING
    assert [table.name for table in OF_TRIALS] == [
        "trial", "judge", "turn", "claim", "verdict", "citation", "question",
    ]  # fmt: skip
