"""A report as files. Everything in it is derived from runs, and the same run gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO, TypeVar

from .. import storage
from ..findings.judge_agreement import Judging, judging, read_check
from ..findings.processes import Piece, collector_paused, in_processes, process_count
from ..findings.read_run import Findings, gather_all
from . import links
from .charts import renderer, svg
from .checklist import ChecklistName, checklists, chosen_checklists, file_name
from .csv import table_csv, write_codes
from .document import Cell, Contents
from .dollar_section import DOLLARS_CSV, write_dollars
from .evidence import evidence_pages
from .failure_section import ERRORS_CSV, error_table
from .html import html
from .links import FOLDER
from .markdown import markdown
from .methods import METHODS_MD, methods_markdown
from .report_folder import report_folder, require_report_folder
from .score_section import scenario_table
from .sections import contents
from .series import Runs, runs_of
from .study_section import count_codes, question_table
from .table_one import TABLE_ONE_CSV, table_one_csv

T = TypeVar("T")


def without_evidence_links(part: T) -> T:
    """A report, or any part of one, in which cells that lead to an evidence page lead nowhere."""
    changed: T = _unlinked(part)
    return changed


def _unlinked(part: Any) -> Any:
    if isinstance(part, Cell) and part.href.startswith(f"{FOLDER}/"):
        part = replace(part, href="")
    if isinstance(part, tuple):
        inner = [_unlinked(one) for one in part]
        return type(part)(*inner) if hasattr(part, "_fields") else tuple(inner)
    if is_dataclass(part) and not isinstance(part, type):
        values = {field.name: getattr(part, field.name) for field in fields(part)}
        changed = {name: new for name, value in values.items() if (new := _unlinked(value)) is not value}
        return replace(part, **changed)
    return part


CHARTS, CODES_CSV = "charts", "codes.csv"
WORTH_IT = 1_000
"""Trials from which on processes are started."""


def write_report(
    runs: Sequence[Path],
    out: Path,
    *,
    judge_check: Path | None = None,
    checklist: str | Sequence[str] | None = None,
    evidence: bool = True,
) -> list[Path]:
    """What `api.findings.report` writes. Files of an earlier report are replaced, but none that was changed since."""
    lists = chosen_checklists(checklist) if checklist else ()
    findings = gather_all(runs)
    require_report_folder(out, evidence=evidence)
    check = read_check(judge_check) if judge_check else None
    judgings = [judging(found, check) for found in findings]
    return write_files(findings, judgings, out, lists=lists, evidence=evidence)


@collector_paused()
def write_files(
    findings: Sequence[Findings],
    judgings: Sequence[Judging | None],
    out: Path,
    *,
    lists: Sequence[ChecklistName] = (),
    evidence: bool = True,
) -> list[Path]:
    """Write the report of runs that were read already; `judgings` has one entry per run."""
    made = contents(findings, judgings)
    if not evidence:
        made = without_evidence_links(made)
    try:
        with report_folder(out) as folder:
            written = _write_into(folder, runs_of(findings, judgings), made, lists, evidence=evidence)
    except OSError as error:
        raise storage.storage_error(out, error) from None
    return [out / path.relative_to(folder) for path in written]


def _write_into(
    folder: Path, runs: Runs, made: Contents, lists: Sequence[ChecklistName], *, evidence: bool
) -> list[Path]:
    written: list[Path] = []

    def put(name: str, data: bytes) -> None:
        (folder / name).write_bytes(data)
        written.append(folder / name)

    def lines(name: str, write: Callable[[Runs, TextIO], None]) -> None:
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            write(runs, file)

    (folder / CHARTS).mkdir()
    put("per_scenario.csv", table_csv(scenario_table(runs)).encode())
    put("per_question.csv", table_csv(question_table(runs, count_codes(runs))).encode())
    written.append(folder / CODES_CSV)
    if runs.have_costs:
        written.append(folder / DOLLARS_CSV)
    put("report.md", markdown(made).encode())
    put("report.html", html(made).encode())
    put(METHODS_MD, methods_markdown(runs).encode())
    put(TABLE_ONE_CSV, table_one_csv(runs).encode())
    if any(run.found.errors for run in runs.runs):
        put(ERRORS_CSV, table_csv(error_table(runs)).encode())
    drawings = made.charts()
    to_png = renderer() if drawings else None
    for chart in drawings:
        drawn = svg(chart, alone=True)
        put(f"{CHARTS}/{chart.name}.svg", drawn.encode())
        if to_png:
            put(f"{CHARTS}/{chart.name}.png", to_png(drawn))
    pieces: list[Piece] = [partial(lines, CODES_CSV, write_codes)]
    if runs.have_costs:
        pieces.append(partial(lines, DOLLARS_CSV, write_dollars))
    if evidence:
        pieces += evidence_pages(runs, folder)
        written.append(folder / links.FOLDER / links.INDEX)
    in_processes(pieces, process_count() if runs.trials >= WORTH_IT else 1)
    if lists:
        first = runs.runs[0]
        for name, text in checklists(lists, first.found, measured=first.judging).items():
            put(file_name(name), text.encode())
    return written
