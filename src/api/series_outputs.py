"""What a series writes for people and programs: a page, a Markdown summary, JUnit XML."""

from __future__ import annotations

import secrets
from pathlib import Path

from .. import storage
from ..errors import InputError
from ..findings.analysis.series import SeriesFindings
from ..findings.report.analysis_pages import require_page, write_page
from ..findings.report.series_page import series_page
from ..findings.report.series_summary import JUNIT_MARK, SUMMARY_MARK, junit_xml, summary_markdown
from ..reading import PathLike, as_path

_HEAD = 4_096


def check_outputs(
    *, summary: PathLike | None = None, junit: PathLike | None = None, html: PathLike | None = None
) -> None:
    """Refuse places that cannot be written to, before anything is called. Only our own files are replaced."""
    for given, mark in ((summary, SUMMARY_MARK), (junit, JUNIT_MARK)):
        if given is not None:
            _require_ours(as_path(given), mark)
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
        written.append(_write(as_path(summary), summary_markdown(found)))
    if junit is not None:
        written.append(_write(as_path(junit), junit_xml(found)))
    if html is not None:
        written.append(write_page(series_page(found), as_path(html)))
    return written


def _require_ours(path: Path, mark: str) -> None:
    storage.require_folder(path.parent)
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give the name of a file.")
    try:
        if path.exists():
            with path.open("rb") as file:
                if mark.encode() not in file.read(_HEAD):
                    raise InputError(f"{path} exists and was not written by this program. Give another name.")
    except OSError as error:
        raise storage.storage_error(path, error) from None


def _write(path: Path, text: str) -> Path:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    except OSError as error:
        raise storage.storage_error(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)
    return path
