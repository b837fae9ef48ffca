"""What finished runs say: reports, comparisons, drift, sensitivity and tables for other tools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from ..errors import InputError
from ..findings.compare import Compared, compare_runs
from ..findings.compare_judges import JudgesCompared
from ..findings.drift import Drifts, measure_drift
from ..findings.read_run import gather
from ..findings.sensitivity import Sensitivities
from ..findings.sensitivity import sensitivity as variance_components
from ..records.contracts import MeasureName
from ..store.run_folder import PathLike, as_path


def report(
    runs: PathLike | Sequence[PathLike],
    out: PathLike | None = None,
    *,
    judge_check: PathLike | None = None,
    checklist: str | Sequence[str] | None = None,
    evidence: bool = True,
) -> list[Path]:
    """Write a report: CSV files, Markdown, a self-contained HTML page, charts, and a page for every trial.

    Args:
        runs: one or more run folders.
        out: the folder to write to; files of an earlier report are replaced. None: `report` in the first run folder.
        judge_check: a judge check whose error rates correct the estimates.
        checklist: also write these reporting checklists, filled in as far as the run can: chart, tripod-llm,
            mi-clear-llm, or all.
        evidence: also write pages with the trials behind every number, in the folder `evidence`.

    Returns:
        The files written; of the evidence pages only the first.

    Raises:
        InputError: not a run folder, or `evidence` is a folder of yours.
        StorageError: a file cannot be written.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> any(path.name == "report.md" for path in me.report(run.path))
        True
    """
    from ..reports.write import write_report

    folders = _folders(runs)
    return write_report(
        folders,
        as_path(out) if out else folders[0] / "report",
        judge_check=as_path(judge_check) if judge_check else None,
        checklist=checklist,
        evidence=evidence,
    )


def compare(
    runs: PathLike | Sequence[PathLike],
    *,
    by: Literal["target", "judges"] = "target",
    measures: Sequence[str] | None = None,
    floor: float = 0.05,
    html: PathLike | None = None,
) -> Compared | JudgesCompared:
    """Compare targets on the same trials, or two judgings of the same transcripts claim by claim.

    Args:
        runs: run folders.
        by: what is compared. Two runs of which one re-judged the other are always compared by judges.
        measures: names as in `MeasureName`. None: all.
        floor: the smallest difference that matters.
        html: also write a page to this file. Only an earlier page of this program is replaced.

    Returns:
        Differences with intervals and tests, or the claims whose label changed.

    Raises:
        InputError: there is nothing to compare, or `html` is another file.
        StorageError: the page cannot be written.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful", "fake:wrong"])
        >>> me.compare(run.path, measures=["accuracy"]).measures
        ('accuracy',)
    """
    from ..reports.analysis_pages import compare_page, judges_page, require_page, write_page

    folders = _folders(runs)
    page = as_path(html) if html else None
    if page:
        require_page(page)
    found = compare_runs(folders, by=by, measures=measures, floor=floor)
    if page:
        made = (
            judges_page(found, first=folders[0].name, second=folders[1].name)
            if isinstance(found, JudgesCompared)
            else compare_page(found, floor=floor)
        )
        write_page(made, page)
    return found


def drift(
    old: PathLike, new: PathLike, *, frozen: PathLike | None = None, floor: float = 0.05, html: PathLike | None = None
) -> Drifts:
    """Compare two runs of the same study over time: what changed as fact, and in the answers.

    Args:
        old: the earlier run.
        new: the later run.
        frozen: the earlier run's transcripts, judged again by the later run's judges (`rejudge`).
        floor: the smallest difference that matters.
        html: also write a page to this file. Only an earlier page of this program is replaced.

    Returns:
        Its `verdict` is "drifted", "no evidence" (of a change as large as the floor), "no change" or "cannot tell".

    Raises:
        InputError: not a run folder, the runs have no target in common, or `html` is another file.
        StorageError: the page cannot be written.

    Example:
        >>> import medicare_eval as me
        >>> first = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> second = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> me.drift(first, second).verdict
        'no change'
    """
    from ..reports.analysis_pages import drift_page, require_page, write_page

    before, after = as_path(old), as_path(new)
    page = as_path(html) if html else None
    if page:
        require_page(page)
    found = measure_drift(before, after, frozen=as_path(frozen) if frozen else None, floor=floor)
    if page:
        write_page(drift_page(found, old=before.name, new=after.name), page)
    return found


def sensitivity(run: PathLike, measure: MeasureName = "accuracy", *, html: PathLike | None = None) -> Sensitivities:
    """How much scores vary with scenario, wording, voice, repeats and judges.

    Args:
        run: the run folder.
        measure: one of `MeasureName`.
        html: also write a page to this file. Only an earlier page of this program is replaced.

    Returns:
        Components of variance by target; their `method` says how they were estimated.

    Raises:
        InputError: not a run folder, or `html` is another file.
        StorageError: the page cannot be written.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"], repeats=2)
        >>> [one.target for one in me.sensitivity(run).targets]
        ['fake:careful']
    """
    from ..reports.analysis_pages import require_page, sensitivity_page, write_page

    page = as_path(html) if html else None
    if page:
        require_page(page)
    found = variance_components(gather(as_path(run)), measure)
    if page:
        write_page(sensitivity_page(found), page)
    return found


def export(run: PathLike, to: Sequence[str] = ("csv", "jsonl"), out: PathLike | None = None) -> list[Path]:
    """Write a run's tables for other tools, with a codebook.

    Args:
        run: the run folder.
        to: csv, jsonl, parquet, dta, sav, inspect, or the name of an installed exporter.
        out: the folder to write to; an existing file is never replaced. None: `export` in the run folder.

    Returns:
        The files written.

    Raises:
        InputError: not a run folder, an unknown format, or a file that exists already.
        ConfigError: a package that the only format needs is not installed.
        ExportError: a format could not be written; `written` has the files of the others.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> any(path.name == "claim.csv" for path in me.export(run, to=["csv"]))
        True
    """
    from ..exports.export import export as write_tables

    folder = as_path(run)
    return write_tables(folder, as_path(out) if out else folder / "export", tuple(to))


def _folders(runs: PathLike | Iterable[PathLike]) -> list[Path]:
    if not isinstance(runs, Iterable) and not isinstance(runs, os.PathLike):
        raise InputError(f"Expected a run folder or a list of them, not {runs!r}.")
    folders = [as_path(runs)] if isinstance(runs, str | os.PathLike) else [as_path(run) for run in runs]
    if not folders:
        raise InputError("No run folder was given.")
    for folder in folders:
        if folders.count(folder) > 1:
            raise InputError(f"{folder} was given twice.")
    return folders
