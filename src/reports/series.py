"""The runs of a report and their targets: each target of each run has a row of its own in every table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count

from ..findings.code_error import JudgedShare, judge_error
from ..findings.cost import CallTotals
from ..findings.estimates import estimate
from ..findings.human_comparison import HumanComparison, compare_with_counselors, load_baseline
from ..findings.judge_agreement import Judging
from ..findings.read_run import Findings
from ..planning.trials import trials_of
from ..scoring.definitions import SHARES, ShareName
from ..trials.row import Row
from .document import Cell, Column, linked, text_cell
from .links import of_everything, of_target


@dataclass(frozen=True, eq=False)
class ReportedRun:
    found: Findings
    judging: Judging | None
    name: str
    """Its id; with a number if two runs have the same id."""

    @property
    def calls(self) -> CallTotals:
        return self.found.calls


@dataclass(frozen=True, eq=False)
class ReportedTarget:
    """The trials of one target in one run."""

    run: ReportedRun
    target: str
    label: str
    place: int
    rows: tuple[Row, ...]

    @property
    def chart_label(self) -> str:
        """Its label on two lines: the target, and the run if there are several."""
        return self.target if self.label == self.target else f"{self.target}\n{self.run.name}"

    @cached_property
    def beside_counselors(self) -> HumanComparison:
        """Its answers to the questions of the published study, beside those of counselors."""
        return compare_with_counselors(self.rows, self.run.found.rules, load_baseline())

    @cached_property
    def judge_errors(self) -> dict[ShareName, JudgedShare]:
        """By study code: the judges' part in its share of all questions."""
        verifiers = self.run.found.manifest.plan.judges_of(self.target).verifiers
        check = self.run.judging.check_of(self.target) if self.run.judging else None
        return {
            code: judge_error(self.rows, code, partial(estimate, measure=code), verifiers=verifiers, check=check)
            for code in SHARES
        }

    @property
    def planned(self) -> int:
        manifest = self.run.found.manifest
        plan = manifest.plan
        if manifest.transcripts and manifest.transcripts.selected:
            return sum(trial.target == self.target for trial in trials_of(manifest))
        return plan.trials_of(self.target) if self.target in plan.targets else 0


@dataclass(frozen=True)
class Runs:
    runs: tuple[ReportedRun, ...]
    series: tuple[ReportedTarget, ...] = field(default=())

    @property
    def several(self) -> bool:
        return len(self.runs) > 1

    @property
    def have_costs(self) -> bool:
        """Whether a fact of a key says what an error costs."""
        return any(run.found.dollars.costs for run in self.runs)

    @property
    def trials(self) -> int:
        return sum(len(series.rows) for series in self.series)

    def lead_columns(self, *, target: bool = True) -> tuple[Column, ...]:
        """The columns that name the run and target; the run only if there are several, and always in CSV files."""
        run = Column("run", "text", "run", csv_only=not self.several)
        return (run, Column("target", "text", "target")) if target else (run,)

    def lead(self, of: ReportedTarget | ReportedRun) -> tuple[Cell, ...]:
        """The cells of `lead_columns`; they lead to the evidence behind the row."""
        if isinstance(of, ReportedRun):
            return (linked(text_cell(of.name), of_everything(), pages_only=True),)
        return text_cell(of.run.name), linked(text_cell(of.target), of_target(of), pages_only=True)


def _with_numbers(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name} no. {number}" for number in count(2))


def runs_of(findings: Sequence[Findings], judgings: Sequence[Judging | None]) -> Runs:
    names: list[str] = []
    for found in findings:
        name = " + ".join(found.run_ids)
        names.append(next(one for one in _with_numbers(name) if one not in names))
    runs = tuple(ReportedRun(*one) for one in zip(findings, judgings, names, strict=True))
    series: list[ReportedTarget] = []
    for run in runs:
        by_target: dict[str, list[Row]] = {target: [] for target in run.found.plan_targets}
        for row in run.found.rows:
            by_target.setdefault(row.target, []).append(row)
        for target, rows in by_target.items():
            label = f"{target} ({run.name})" if len(runs) > 1 else target
            series.append(ReportedTarget(run, target, label, len(series) + 1, tuple(rows)))
    return Runs(runs, tuple(series))
