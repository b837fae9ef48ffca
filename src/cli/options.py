"""What the options of commands are made of: kinds of values, and the flags of a study's fields.

The flags of a study come from `records/study.py`, by way of its schema, which needs no Pydantic.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..errors import Origin
from ..store.package_data import data_folder

Adds = Callable[[argparse.ArgumentParser], object]
"""Adds an option, or several, to a command."""
CHECKLISTS = ("chart", "tripod-llm", "mi-clear-llm", "all")
TRANSCRIPT_FORMATS = ("text", "csv", "whisper", "aws", "vtt", "srt", "docx", "chat")
REGISTRATION = "registration."


@dataclass(frozen=True)
class StudyField:
    """A field of a study that a flag sets."""

    flag: str
    meaning: str
    default: str
    """In words; empty if there is nothing to say."""
    repeatable: bool
    how: Mapping[str, Any]
    """What argparse needs to know."""


@cache
def study_schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data_folder("schemas") / "Study.schema.json").read_bytes())
    return found


@cache
def study_fields() -> dict[str, StudyField]:
    """Every field that a flag sets, by name; those of the registration begin with `registration.`."""
    schema = study_schema()
    registration = schema["$defs"]["RegistrationText"]["properties"]
    fields = {**schema["properties"], **{f"{REGISTRATION}{name}": one for name, one in registration.items()}}
    return {name: _study_field(name, one) for name, one in fields.items() if "option" in one}


def _study_field(name: str, schema: Mapping[str, Any]) -> StudyField:
    said = schema["option"]
    flag = said.get("flag") or "--" + name.removeprefix(REGISTRATION).replace("_", "-")
    default = schema.get("default")
    known = default is not False and default not in (None, "", [])
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    kinds = {one["type"]: one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"}
    how: dict[str, Any] = {"metavar": said.get("metavar")}
    if "object" in kinds:
        how |= {"action": ByProvider, "type": in_flight if "integer" in kinds else rate}
    elif "array" in kinds:
        how |= {"action": "append"}
    elif "boolean" in kinds:
        how = {"action": "store_true"}
    elif "integer" in kinds or "number" in kinds:
        how |= {"type": whole if "integer" in kinds else number}
    elif choices := kinds["string"].get("enum"):
        how |= {"choices": choices}
    text = shown if known else said.get("unset", "")
    return StudyField(flag, schema["description"], text, "object" in kinds or "array" in kinds, how)


def study(*names: str, without: str = "", **how: Any) -> Adds:
    """The options of these fields of a study, or of a part of it (`judges`, `execution`), without some.

    Each is absent from the result unless the user typed it, so that a study file can set it. `how` changes this.
    """

    def add(parser: argparse.ArgumentParser) -> None:
        fields, parts = study_fields(), study_schema()["parts"]
        asked = [field for name in names for field in parts.get(name, [name])]
        for name in (one for one in asked if one not in without.split()):
            field = fields[name]
            text = _with_default(f"{field.meaning}; repeatable" if field.repeatable else field.meaning, field.default)
            usual = {"dest": name, "default": argparse.SUPPRESS, "help": text}
            parser.add_argument(field.flag, **{**usual, **field.how, **how})

    return add


def questions(parser: argparse.ArgumentParser) -> None:
    """The options of all fields that decide a run: what is asked, of whom, and who judges."""
    parts = study_schema()["parts"]
    elsewhere = {*parts["judges"], *parts["execution"], "out", "prices"}
    own = [name for name in study_fields() if name not in elsewhere and not name.startswith(REGISTRATION)]
    study(*own, "judges")(parser)


def given(arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields of a study that the user set by flags."""
    fields = study_fields()
    said = vars(arguments).items()
    return {name: value for name, value in said if name in fields and REGISTRATION not in name and value is not None}


def own(arguments: argparse.Namespace, without: str = "") -> dict[str, Any]:
    """The options of a command as keywords of its function, without some. What is not given keeps its default there."""
    left_out = {"command", "action", "handler", "flags", *without.split()}
    return {name: value for name, value in vars(arguments).items() if name not in left_out and value is not None}


def registration(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the user said by flags about a pre-registration."""
    said = vars(arguments).items()
    return {name.removeprefix(REGISTRATION): value for name, value in said if name.startswith(REGISTRATION)}


def origin(arguments: argparse.Namespace) -> Origin:
    """Where the fields of a study come from, so that an error names the file or the flag."""
    settings = vars(arguments)
    file = settings.get("study") or settings.get("registered")
    changed = given(arguments).keys() | ({"registration"} if registration(arguments) else set())
    flags = {name: field.flag for name, field in study_fields().items()}
    return Origin(file=str(file or ""), changed=changed, flags={**flags, **arguments.flags})


def value(
    flag: str, metavar: str | None, meaning: str, kind: Callable[[str], Any] = str, default: Any = None, **how: Any
) -> Adds:
    """An option with a value. Its default is shown."""
    text = _with_default(meaning, "" if default in (None, []) else str(default))
    if "action" not in how or how["action"] in ("append", "extend"):
        how["type"] = kind
    return lambda parser: parser.add_argument(flag, metavar=metavar, default=default, help=text, **how)


def switch(flag: str, meaning: str, **how: Any) -> Adds:
    return lambda parser: parser.add_argument(flag, **{"action": "store_true", **how}, help=meaning)


def argument(
    name: str, metavar: str, meaning: str | None = None, kind: Callable[[str], Any] = Path, **how: Any
) -> Adds:
    return lambda parser: parser.add_argument(name, type=kind, metavar=metavar, help=meaning, **how)


def _with_default(meaning: str, default: str) -> str:
    text = f"{meaning} (default: {default})" if default else meaning
    return text.replace("%", "%%")


def whole(text: str, least: int | None = None) -> int:
    try:
        found = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if least is not None and found < least:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least {least}")
    return found


positive = partial(whole, least=1)
natural = partial(whole, least=0)


def port(text: str) -> int:
    if positive(text) > 65_535:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def amount(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return found


def rate(text: str) -> tuple[str, int]:
    provider, _, count = text.partition("=")
    if not provider or not count.isdecimal() or int(count) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not PROVIDER=NUMBER, for example openai=500")
    return provider, int(count)


def in_flight(text: str) -> tuple[str, int]:
    try:
        return rate(text if "=" in text else f"*={text}")
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not N or PROVIDER=N, for example 64 or openai=64") from None


class ByProvider(argparse.Action):
    """Collects numbers by provider; `*` is every provider that is not named."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        provider, count = values
        setattr(namespace, self.dest, {**getattr(namespace, self.dest, {}), provider: count})


def identifier(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an id: use letters, digits, - and _")
    return text


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date; write it as 2026-01-31") from None


def numbers(text: str) -> list[int]:
    """`2,5` -> the two."""
    return [positive(one.strip()) for one in text.split(",")]


def names(text: str) -> list[str]:
    """`r1,r2` -> the two."""
    found = [one.strip() for one in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of names, for example r1,r2")
    return found


def checklists(text: str) -> list[str]:
    """Names of checklists, with commas between them."""
    found = [one.strip() for one in text.split(",")]
    for name in found:
        if name not in CHECKLISTS:
            raise argparse.ArgumentTypeError(f"{name!r} is not a checklist. Choose from {', '.join(CHECKLISTS)}")
    return found
