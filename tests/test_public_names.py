"""The public names: what they are, that they can be found, and that each function says how it is used.

A changed signature breaks other people's code. To accept a change on purpose: python -m tests.test_public_names --write
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import src as me
from src.api.runs import Frozen
from src.audit import Replayed, Verified
from src.findings.compare import Compared
from src.findings.compare_judges import JudgesCompared
from src.findings.cost import CallError
from src.reading import RunClaim, RunVerdict
from src.reporting import Summary
from tests.cases import each_case
from tests.runs import ROOT

SNAPSHOT = Path(__file__).parent / "snapshots" / "public_api.txt"
REGENERATE = "python -m tests.test_public_names --write"
SECTIONS = ("Args:", "Returns:", "Raises:", "Example:")
FUNCTIONS = [name for name in me.__all__ if inspect.isfunction(getattr(me, name))]
CLASSES = [name for name in me.__all__ if inspect.isclass(getattr(me, name))]
RETURNED = (CallError, Compared, Frozen, JudgesCompared, Replayed, RunClaim, RunVerdict, Summary, Verified)
"""Not made by users, but read by them."""
AWAITED = [name for name in FUNCTIONS if name.endswith("_async")]


def parameter(one: inspect.Parameter) -> str:
    star = "**" if one.kind is one.VAR_KEYWORD else "*" if one.kind is one.VAR_POSITIONAL else ""
    said = "" if one.annotation is one.empty else f": {annotation(one.annotation)}"
    default = "" if one.default is one.empty else f" = {one.default!r}"
    return f"{star}{one.name}{said}{default}"


def annotation(given: Any) -> str:
    return given if isinstance(given, str) else getattr(given, "__name__", repr(given))


def signature(function: Any) -> str:
    """As it is written, with / and * where they belong; the same on every version of Python."""
    made = inspect.signature(function)
    kinds = [one.kind for one in made.parameters.values()]
    parts: list[str] = []
    for number, one in enumerate(made.parameters.values()):
        before = kinds[number - 1] if number else None
        if before is one.POSITIONAL_ONLY and one.kind is not one.POSITIONAL_ONLY:
            parts.append("/")
        if one.kind is one.KEYWORD_ONLY and before not in (one.KEYWORD_ONLY, one.VAR_POSITIONAL):
            parts.append("*")
        parts.append(parameter(one))
    if kinds and kinds[-1] is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    returns = "" if made.return_annotation is made.empty else f" -> {annotation(made.return_annotation)}"
    return f"({', '.join(parts)}){returns}"


def factory_name(factory: Any) -> str:
    return f"{factory.__name__}()"


def defaults(kind: type) -> dict[str, str]:
    """Field to its default, as text; fields that must be given are not there."""
    if issubclass(kind, BaseModel):
        return {
            name: factory_name(field.default_factory) if field.default_factory else repr(field.default)
            for name, field in kind.model_fields.items()
            if field.default_factory or field.default is not PydanticUndefined
        }
    if is_dataclass(kind):
        return {
            field.name: repr(field.default) if field.default is not MISSING else factory_name(field.default_factory)
            for field in fields(kind)
            if field.default is not MISSING or field.default_factory is not MISSING
        }
    return {}


def field_names(kind: type) -> list[str]:
    if issubclass(kind, BaseModel):
        return list(kind.model_fields)
    return [field.name for field in fields(kind)] if is_dataclass(kind) else []


def members(kind: type) -> Iterator[str]:
    ours = [base for base in kind.__mro__ if base.__module__.startswith("src.")]
    annotations = {name: said for base in reversed(ours) for name, said in inspect.get_annotations(base).items()}
    known = defaults(kind)
    for name in field_names(kind):
        yield f"{name}: {annotation(annotations[name])}" + (f" = {known[name]}" if name in known else "")
    for name in sorted({name for base in ours for name in vars(base)}):
        member = inspect.getattr_static(kind, name)
        getter = getattr(member, "fget", None) or getattr(member, "func", None)
        if name in known or (name.startswith("_") and name not in ("__call__", "__init__")):
            continue
        if getter:
            yield f"{name} -> {annotation(inspect.signature(getter).return_annotation)} (property)"
        elif inspect.isfunction(member) and not (name == "__init__" and _made_by_python(kind)):
            yield f"{'async ' if inspect.iscoroutinefunction(member) else ''}{name}{signature(member)}"


def _made_by_python(kind: type) -> bool:
    """Whether `__init__` follows from the fields, or is the one of every protocol."""
    return bool(field_names(kind)) or getattr(kind, "_is_protocol", False)


def described(found: Any) -> str:
    name = found.__name__
    if inspect.isclass(found):
        bases = ", ".join(base.__name__ for base in found.__bases__ if base is not object)
        head = f"class {name}({bases})" if bases else f"class {name}"
        return "\n".join([head, *(f"    {line}" for line in members(found))])
    return f"{'async ' if inspect.iscoroutinefunction(found) else ''}{name}{signature(found)}"


def public_api() -> str:
    lines = [
        "# Public names",
        *(described(getattr(me, name)) for name in me.__all__),
        "",
        "# What they return",
        *map(described, RETURNED),
    ]
    return "\n".join(lines) + "\n"


def test_public_signatures_are_those_of_the_snapshot() -> None:
    assert public_api() == SNAPSHOT.read_text(encoding="utf-8"), (
        f"The public API has changed. If that is meant, say so in CHANGELOG.md and run: {REGENERATE}"
    )


def test_every_public_name_is_listed_and_can_be_imported() -> None:
    assert sorted(me.__all__) == sorted(set(me.__all__) & set(dir(me)))
    assert dir(me) == sorted(dir(me))
    assert set(FUNCTIONS) | set(CLASSES) == set(me.__all__)
    namespace: dict[str, Any] = {}
    exec("from src import *", namespace)
    assert set(me.__all__) <= set(namespace)
    with pytest.raises(AttributeError, match="module 'src' has no attribute 'runn'"):
        getattr(me, "runn")  # noqa: B009 - it is meant to fail


def test_public_names_are_in_alphabetical_order_capitals_first() -> None:
    assert list(me.__all__) == sorted(me.__all__)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, src; dir(src); print(*sys.modules)"
    finished = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    modules = finished.stdout.split()
    assert [name for name in modules if name.startswith("src.")] == []
    assert not {"pydantic", "rich", "openai", "anthropic", "asyncio", "pandas"} & set(modules)


@each_case("name", [name for name in FUNCTIONS if name not in AWAITED])
def test_a_public_function_says_what_it_takes_returns_and_raises_with_an_example(name: str) -> None:
    function = getattr(me, name)
    text = inspect.getdoc(function) or ""
    places = [text.find(f"\n{section}\n") for section in SECTIONS]
    assert -1 not in places, f"{name} lacks one of {SECTIONS}"
    assert places == sorted(places)
    arguments = text[places[0] : places[1]]
    for parameter_name in inspect.signature(function).parameters:
        assert f"\n    {parameter_name}: " in arguments, f"{name} does not say what {parameter_name} is"
    assert ">>> " in text[places[3] :]


@each_case("name", AWAITED)
def test_what_is_awaited_is_like_what_waits(name: str) -> None:
    waits = getattr(me, name.removesuffix("_async"))
    assert inspect.iscoroutinefunction(getattr(me, name))
    assert (inspect.getdoc(getattr(me, name)) or "").startswith(f"Like `{waits.__name__}`, to be awaited.")
    awaited = dict(inspect.signature(getattr(me, name)).parameters)
    assert str(awaited.pop("stop")) == "stop: 'Stop | None' = None"
    assert awaited == dict(inspect.signature(waits).parameters)


@each_case("name", CLASSES)
def test_a_public_class_says_what_it_is(name: str) -> None:
    kind = getattr(me, name)
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{name}("), "a dataclass without a docstring gets its signature as one"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(f"usage: {REGENERATE}")
    SNAPSHOT.write_text(public_api(), encoding="utf-8")
