"""What a column of a table is: where its value comes from, what it means, and why a cell can be empty.

The columns themselves are declared in `tables.py`.

A cell that can be empty for more than one reason has a column `<name>_missing` beside it that says which; if there is
only one possible reason, the codebook names it. Statistics packages get a separate missing-value code for each reason
(`MISSING`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from ..store.projection import Fields

Kind = Literal["text", "category", "reason", "integer", "number", "flag"]
Cell = str | int | float | bool | None
Cells = dict[str, Cell]
JOINED = "; "
"""Separates the entries of a cell that lists several."""
P = TypeVar("P")
"""What a row is about: a trial, or a part of it."""
Source = str | Callable[[P], Cell]
"""Where a value comes from: a path of attributes, such as `trial.target.name`, or a function.

A path ends in None where one of its values is None. It may lead through lists: text lists what is found, and an integer
counts it, or adds it up if it is numbers.
"""


@dataclass(frozen=True)
class Missing:
    """A reason why a cell is empty, and its code in packages that have codes for missing values."""

    name: str
    stata: str
    """The letter of an extended missing value: a is .a."""
    spss: int
    meaning: str


_REASONS = tomllib.loads(Path(__file__).with_name("missing.toml").read_text(encoding="utf-8"))
MISSING: dict[str, Missing] = {
    name: Missing(name, chr(ord("a") + place), -1 - place, meaning)
    for place, (name, meaning) in enumerate(_REASONS.items())
}
"""The order decides the codes."""


@dataclass(frozen=True)
class DataColumn(Generic[P]):
    name: str
    kind: Kind
    meaning: str
    source: Source[P]
    values: tuple[str, ...] = ()
    """All values of a category."""
    absent: str | None = None
    """Why the cell may be empty: in words for text, a name of `MISSING` for every other kind."""
    reasons: tuple[str, ...] = ()
    """Names of `MISSING`, if there are several possible reasons; the column beside it says which."""
    why: Callable[[P], str] | None = None
    """Which of the reasons it is, if the cell is empty."""
    in_report: str = ""
    """The heading of its sum over a run, in the report's table of how replies were read; empty if it is in none."""
    reads: Fields = field(default_factory=dict)
    """Of a counted column whose source is a function: the fields of a trial that it reads, as in `projection`."""

    @cached_property
    def cell(self) -> Callable[[P], Cell]:
        """The value in the row of such a part."""
        if callable(self.source):
            return self.source
        get, path = attrgetter(self.source), self.source.split(".")
        of_list = _counted if self.kind == "integer" else listed

        def cell(part: P) -> Cell:
            try:
                found: Any = get(part)
            except AttributeError:  # there is a None or a list on the path
                found = _at(part, path)
            return of_list(found) if type(found) is tuple else found

        return cell

    @property
    def missing(self) -> tuple[Missing, ...]:
        """The reasons that have a missing-value code in this column."""
        if self.kind in ("text", "reason"):
            return ()
        return tuple(MISSING[name] for name in (*self.reasons, *filter(None, [self.absent])))

    def with_reason(self) -> Iterator[DataColumn[P]]:
        """This column, and the one beside it."""
        yield self
        cell, why = self.cell, self.why
        if why is not None:
            yield DataColumn(
                f"{self.name}_missing",
                "reason",
                f"Why {self.name} is empty.",
                lambda part: why(part) if cell(part) is None else None,
                self.reasons,
                f"{self.name} has a value",
            )

    def why_empty(self, row: Mapping[str, Cell]) -> Missing:
        """Why a cell of this column is empty; not for text."""
        name = row[f"{self.name}_missing"] if self.reasons else self.absent
        return MISSING[str(name)]


def _at(value: Any, path: Sequence[str]) -> Any:
    for place, name in enumerate(path):
        if value is None:
            return None
        if type(value) is tuple:
            return tuple(found for one in value if (found := _at(one, path[place:])) is not None)
        value = getattr(value, name)
    return value


def _counted(entries: Iterable[object]) -> int:
    return sum(one if isinstance(one, int) else 1 for one in entries)


def listed(entries: Iterable[str]) -> str | None:
    return JOINED.join(entries) or None


@dataclass(frozen=True)
class DataTable(Generic[P]):
    name: str
    meaning: str
    declared: tuple[DataColumn[P], ...]
    keys: tuple[str, ...]
    parts: Callable[..., Iterable[P]]
    """What the rows are about, given a trial and its run, or what else the table is made of."""

    @cached_property
    def columns(self) -> tuple[DataColumn[P], ...]:
        """Those declared, and those that say why a cell is empty."""
        return tuple(one for column in self.declared for one in column.with_reason())

    def rows(self, *about: object) -> Iterator[Cells]:
        made = [(column.name, column.cell) for column in self.columns if callable(column.source)]
        at: dict[str, list[tuple[str, Callable[[P], Cell]]]] = {}
        for column in self.columns:
            if isinstance(column.source, str):
                at.setdefault(column.source.partition(".")[0], []).append((column.name, column.cell))
        known: dict[str, tuple[object, Cells]] = {}
        for part in self.parts(*about):
            row: Cells = {}
            for owner, cells in at.items():
                value = getattr(part, owner)
                if owner not in known or known[owner][0] is not value:  # the rows of a trial have much in common
                    known[owner] = value, {name: None if value is None else cell(part) for name, cell in cells}
                row |= known[owner][1]
            for name, cell in made:
                row[name] = cell(part)
            yield row


Why = Callable[[P], str] | None


def text(name: str, meaning: str, source: Source[P], absent: str | None = None) -> DataColumn[P]:
    return DataColumn(name, "text", meaning, source, absent=absent)


def category(
    name: str,
    meaning: str,
    values: Sequence[str],
    source: Source[P],
    absent: str | None = None,
    *,
    reasons: Sequence[str] = (),
    why: Why[P] = None,
) -> DataColumn[P]:
    return DataColumn(name, "category", meaning, source, tuple(values), absent, tuple(reasons), why)


def integer(
    name: str,
    meaning: str,
    source: Source[P],
    absent: str | None = None,
    *,
    in_report: str = "",
    reads: Fields | None = None,
) -> DataColumn[P]:
    return DataColumn(name, "integer", meaning, source, absent=absent, in_report=in_report, reads=reads or {})


def number(
    name: str,
    meaning: str,
    source: Source[P],
    absent: str | None = None,
    *,
    reasons: Sequence[str] = (),
    why: Why[P] = None,
) -> DataColumn[P]:
    return DataColumn(name, "number", meaning, source, (), absent, tuple(reasons), why)


def flag(name: str, meaning: str, source: Source[P], absent: str | None = None) -> DataColumn[P]:
    return DataColumn(name, "flag", meaning, source, absent=absent)
