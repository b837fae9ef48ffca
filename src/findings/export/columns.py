"""What a column of an exported table is, and why a cell can be empty.

A cell that can be empty for more than one reason has a column `<name>_missing` beside it that says which; if there is
only one possible reason, the codebook names it. Statistics packages get a separate missing-value code for each reason
(`MISSING`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "category", "reason", "integer", "number", "flag"]
Cell = str | int | float | bool | None
Row = dict[str, Cell]
JOINED = "; "
"""Separates the entries of a cell that lists several."""


@dataclass(frozen=True)
class Missing:
    """A reason why a cell is empty, and its code in packages that have codes for missing values."""

    name: str
    stata: str
    """The letter of an extended missing value: a is .a."""
    spss: int
    meaning: str


_REASONS = {
    "refused": "the target declined every question",
    "blocked": "the provider's content filter stopped a reply",
    "truncated": "a reply was cut off at the token limit",
    "empty": "a reply contained no text",
    "failed": "a call to the target still failed after all retries",
    "judge_failure": "a judge gave no usable answer",
    "questioner_failure": "the questions could not be reworded, so none was asked",
    "tampered": "a reply addressed or instructed the judge, so it was not scored",
    "nothing_to_check": "the trial was scored, but contained nothing to compute this score from",
    "not_verifiable": "the claim cannot be checked, so no judge was asked",
    "unresolved": "the judges disagreed and the tie was not resolved",
    "closed_question": "a closed question, which gets no study code",
    "open_question": "not a closed question, so there is no yes or no",
    "incomplete_data": "the closed question was not answered, or the answer was not judged",
    "not_stated": "the provider's replies did not name a model",
    "not_set": "left to the model's default",
    "not_read": "there was no reply to read, or the extractor failed on it",
    "not_of_the_study": "a question group of this project, which has no number in the published study",
    "open_tie": "the verifiers are tied, and no model of a third family was there to settle it: open for a person",
    "not_marked": "no reply of the trial is marked, so there is nothing to leave out",
    "unread_without": "a judge failed on a reply without its marked passages",
    "one_set_of_points": "the study code already goes by our own points",
    "unpriced": "no amount can be defended for the error, so it is only counted",
    "no_single_amount": "the claim states no single amount of its own to compute with",
    "none_needed": "the formula needs no amount from the claim",
    "not_asked": "the question was not asked, because the conversation had ended",
}
MISSING: dict[str, Missing] = {
    name: Missing(name, chr(ord("a") + place), -1 - place, meaning)
    for place, (name, meaning) in enumerate(_REASONS.items())
}
"""The order decides the codes. Stata has no letters left: a new reason has to be one of these, in other words."""


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind
    meaning: str
    values: tuple[str, ...] = ()
    """All values of a category."""
    absent: str | None = None
    """Why the cell may be empty: in words for text, a name of `MISSING` for every other kind."""
    reasons: tuple[str, ...] = ()
    """Names of `MISSING`, if there are several possible reasons; the column beside it says which."""

    @property
    def missing(self) -> tuple[Missing, ...]:
        """The reasons that have a missing-value code in this column."""
        if self.kind in ("text", "reason"):
            return ()
        return tuple(MISSING[name] for name in (*self.reasons, *filter(None, [self.absent])))

    def why_empty(self, row: Mapping[str, Cell]) -> Missing:
        """Why a cell of this column is empty; not for text."""
        name = row[f"{self.name}_missing"] if self.reasons else self.absent
        return MISSING[str(name)]


@dataclass(frozen=True)
class Table:
    name: str
    meaning: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...]


def text(name: str, meaning: str, absent: str | None = None) -> Column:
    return Column(name, "text", meaning, absent=absent)


def category(name: str, meaning: str, values: Sequence[str], absent: str | None = None) -> Column:
    return Column(name, "category", meaning, tuple(values), absent)


def integer(name: str, meaning: str, absent: str | None = None) -> Column:
    return Column(name, "integer", meaning, absent=absent)


def flag(name: str, meaning: str, absent: str | None = None) -> Column:
    return Column(name, "flag", meaning, absent=absent)


def with_reason(column: Column) -> tuple[Column, Column]:
    """A column that may be empty for several reasons, and the one that says which."""
    meaning = f"Why {column.name} is empty."
    return column, Column(f"{column.name}_missing", "reason", meaning, column.reasons, f"{column.name} has a value")
