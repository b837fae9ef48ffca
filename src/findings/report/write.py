"""A report as files. Everything in it is derived, so existing files are replaced; the same run gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from ... import storage
from ..analysis.judge_agreement import Judging, judging, read_check
from ..analysis.read_run import Findings, gather
from .charts import renderer, svg
from .checklist import checklists, chosen_checklists, file_name
from .csv import table_csv, write_codes
from .dollar_section import DOLLARS_CSV, write_dollars
from .evidence import remove_evidence, require_own_folder, write_evidence
from .evidence_links import without_evidence_links
from .html import html
from .markdown import markdown
from .methods import METHODS_MD, methods_markdown
from .sections import contents
from .series import runs_of
from .table_one import TABLE_ONE_CSV, table_one_csv

CHARTS, CODES_CSV = "charts", "codes.csv"


def write_report(
    runs: Sequence[Path],
    out: Path,
    *,
    judge_check: Path | None = None,
    checklist: str | Sequence[str] | None = None,
    evidence: bool = True,
) -> list[Path]:
    """Write one report of one or more runs: CSV, Markdown, HTML, charts, and a page for every trial.

    Args:
        runs: Run folders, complete or not.
        out: The folder to write to. Files of an earlier report are replaced.
        judge_check: The folder or file of a judge check of the same judges; corrects accuracy for their error.
        checklist: Names of reporting checklists, or `all`; each is also written, filled in from the first run.
        evidence: Whether pages with the trials behind the numbers are written too.

    Returns:
        The files written; of the evidence pages only the first.

    Raises:
        InputError: Not a run folder, a check of other judges, an unknown checklist, or `out` is a file.
        IntegrityError: A file of a run was changed after it was written, or is missing from a complete run.
        StorageError: A file cannot be written.
    """
    lists = chosen_checklists(checklist) if checklist else ()
    findings = [gather(run) for run in runs]
    storage.require_folder(out)
    if evidence:
        require_own_folder(out)
    check = read_check(judge_check) if judge_check else None
    judgings = [judging(found, check) for found in findings]
    written = write_files(findings, judgings, out, evidence=evidence)
    for name, text in checklists(lists, findings[0], measured=judgings[0]).items() if lists else ():
        path = out / file_name(name)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise storage.storage_error(path, error) from None
        written.append(path)
    return written


def write_files(
    findings: Sequence[Findings], judgings: Sequence[Judging | None], out: Path, *, evidence: bool = True
) -> list[Path]:
    """Write the report of runs that were read already; `judgings` has one entry per run."""
    made = contents(findings, judgings)
    if not evidence:
        made = without_evidence_links(made)
    written: list[Path] = []

    def put(name: str, data: bytes) -> None:
        (out / name).write_bytes(data)
        written.append(out / name)

    def stream(name: str, write: Callable[[TextIO], None]) -> None:
        with (out / name).open("w", encoding="utf-8", newline="") as file:
            write(file)
        written.append(out / name)

    def codes() -> None:
        with (out / CODES_CSV).open("w", encoding="utf-8", newline="") as file:
            write_codes(runs, file)

    try:
        (out / CHARTS).mkdir(parents=True, exist_ok=True)
        put("per_scenario.csv", table_csv(made.per_scenario).encode())
        put("per_question.csv", table_csv(made.per_question).encode())
        runs = runs_of(findings, judgings)
        written.append(out / CODES_CSV)
        if runs.have_costs:
            stream(DOLLARS_CSV, lambda file: write_dollars(runs, file))
        put("report.md", markdown(made).encode())
        put("report.html", html(made).encode())
        put(METHODS_MD, methods_markdown(runs).encode())
        put(TABLE_ONE_CSV, table_one_csv(runs).encode())
        drawings = made.charts()
        to_png = renderer() if drawings else None
        for chart in drawings:
            drawn = svg(chart, alone=True)
            put(f"{CHARTS}/{chart.name}.svg", drawn.encode())
            if to_png:
                put(f"{CHARTS}/{chart.name}.png", to_png(drawn))
        if evidence:
            written.append(write_evidence(runs, out, beside=[codes]))
        else:
            remove_evidence(out)
            codes()
    except OSError as error:
        raise storage.storage_error(out, error) from None
    return written
