"""What a check of an adapter found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class CaseResult:
    name: str
    state: Literal["passed", "failed", "skipped"]
    note: str = ""
    """What went wrong, or why the case was skipped."""


@dataclass(frozen=True)
class Report:
    """One check of one adapter: every case with its result."""

    adapter: str
    cases: tuple[CaseResult, ...]

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        return tuple(case for case in self.cases if case.state == "failed")

    def table(self) -> str:
        """All cases, one per line."""
        return "\n".join(_line(case) for case in self.cases)

    def __str__(self) -> str:
        lines = [f"{self.adapter}: {len(self.failed)} of {len(self.cases)} cases failed"]
        return "\n".join([*lines, *(_line(case) for case in self.failed)])


def _line(case: CaseResult) -> str:
    return f"{case.state:7}  {case.name}{f': {case.note}' if case.note else ''}"


class AdapterCheckError(AssertionError):
    """Some cases failed; `report` holds all of them."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report
