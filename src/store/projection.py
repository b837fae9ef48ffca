"""Some fields of a record, decoded fast: a struct that msgspec fills, made from the record and a list of fields.

A run has many lines, and most readers need few fields of each. What is not listed is skipped, not checked. The fields
have the record's names, types and defaults, so code that reads a record reads its projection too, and the type checker
takes one for the other. A field that is not listed does not exist in the projection: reading it is an AttributeError.
Constraints of the record (patterns, limits, validators) are not checked again; the hash chain says that a line is what
was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from pydantic import BaseModel

R = TypeVar("R", bound=BaseModel)
Fields = Mapping[str, str]
"""By the path of a record inside the record, "" for itself: names of its fields, separated by spaces.

A field that is named is read in full; of one that is only in a path, the fields that are named there. Names of lists
and mappings stand for their entries.
"""
_Tree = dict[str, "_Tree"]
_IN_FULL = "*"


def projection(record: type[R], fields: Fields) -> Callable[[bytes], R]:
    """A decoder of the record's JSON for these fields.

    Raises:
        KeyError: The record has no such field. Known when the decoder is made.
    """
    tree: _Tree = {}
    for path, names in fields.items():
        inside = tree
        for part in path.split(".") if path else ():
            inside = inside.setdefault(part, {})
        for name in names.split():
            inside.setdefault(name, {})[_IN_FULL] = {}
    return cast("Callable[[bytes], R]", msgspec.json.Decoder(_struct(record, tree)).decode)


def _struct(record: type[BaseModel], tree: _Tree) -> type[msgspec.Struct]:
    known = record.model_fields
    if unknown := tree.keys() - known.keys():
        raise KeyError(f"{record.__name__} has no field {', '.join(sorted(unknown))}")
    fields: list[Any] = []
    for name, info in known.items():
        if not tree or name in tree:
            kind = _type(info.annotation, tree.get(name, {}))
            if info.is_required():
                fields.append((name, kind))
            elif info.default_factory is not None:
                fields.append(
                    (name, kind, msgspec.field(default_factory=cast("Callable[[], Any]", info.default_factory)))
                )
            else:
                fields.append((name, kind, info.default))
    return msgspec.defstruct(record.__name__, fields, kw_only=True, frozen=True, gc=False)


def _type(given: Any, tree: _Tree) -> Any:
    """A type of a record without its constraints, and with projections in place of records."""
    tree = {} if _IN_FULL in tree else tree
    if isinstance(given, type) and issubclass(given, BaseModel):
        return _struct(given, tree)
    origin, arguments = get_origin(given), get_args(given)
    if origin is Annotated:
        return _type(arguments[0], tree)
    if origin is None or origin is Literal:
        if tree:
            raise KeyError(f"{given} has no fields, so none can be listed: {', '.join(sorted(tree))}")
        return given
    if origin is dict:
        return dict.__class_getitem__((_type(arguments[0], {}), _type(arguments[1], tree)))
    kinds = [one if one in (..., type(None)) else _type(one, tree) for one in arguments]
    return reduce(or_, kinds) if origin in (Union, UnionType) else origin[tuple(kinds)]
