"""What a series writes for people and programs: a page, a Markdown summary, JUnit XML."""

from __future__ import annotations

from pathlib import Path

from ..findings.analysis.series import SeriesFindings
from ..findings.report.analysis_pages import require_page, write_page
from ..findings.report.report_folder import require_own, write_own
from ..findings.report.series_page import series_page
from ..findings.report.series_summary import JUNIT_MARK, SUMMARY_MARK, junit_xml, summary_markdown
from ..store.run_folder import PathLike, as_path


def check_outputs(
    *, summary: PathLike | None = None, junit: PathLike | None = None, html: PathLike | None = None
) -> None:
    """Refuse places that cannot be written to, before anything is called. Only our own files are replaced."""
    if summary is not None:
        require_own(as_path(summary), SUMMARY_MARK, "summary")
    if junit is not None:
        require_own(as_path(junit), JUNIT_MARK, "JUnit file")
    if html is not None:
        require_page(as_path(html))


def write_outputs(
    found: SeriesFindings,
    *,
    summary: PathLike | None = None,
    junit: PathLike | None = None,
    html: PathLike | None = None,
) -> list[Path]:
    """Write what is asked for; the files written."""
    check_outputs(summary=summary, junit=junit, html=html)
    written: list[Path] = []
    if summary is not None:
        written.append(write_own(as_path(summary), summary_markdown(found)))
    if junit is not None:
        written.append(write_own(as_path(junit), junit_xml(found)))
    if html is not None:
        written.append(write_page(series_page(found), as_path(html)))
    return written
