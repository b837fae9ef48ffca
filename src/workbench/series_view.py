"""Series in the workbench: what the list shows of each, and the page of one, with links to its runs and trials."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import HarnessError
from ..findings.analysis.series import read_findings
from ..findings.report.analysis_pages import Page
from ..findings.report.document import words
from ..findings.report.html import blocks_html, line_html, sections_html
from ..findings.report.series_page import series_page
from ..records.series import RunReference
from ..store.run_folder import SERIES
from ..store.series_folder import POINTS
from .frame import href_of, page, series_href, way
from .run_folders import RunFolders


@dataclass(frozen=True)
class SeriesHead:
    """What the list of series shows."""

    name: str
    """Of its folder."""
    title: str
    period: str
    """Of the last point."""
    verdict: str
    points: int


@dataclass(frozen=True)
class _Made:
    """A page, and what it was made from."""

    key: tuple[object, ...]
    html: str


class SeriesViews:
    """Pages of series, made again only if a point was added or a run appeared."""

    def __init__(self, folders: RunFolders) -> None:
        self._folders = folders
        self._made: dict[str, _Made] = {}

    def heads(self) -> list[SeriesHead]:
        return [_head(name, folder) for name, folder in self._folders.series().items()]

    def page(self, name: str) -> str | None:
        """The page of a series; None if there is none of this name."""
        folder = self._folders.series().get(name)
        if folder is None:
            return None
        names = {run.resolve(): run_name for run_name, run in self._folders.folders().items()}
        key = (*_stamp(folder), *sorted(names.values()))
        known = self._made.get(name)
        if known is None or known.key != key:

            def address(run: RunReference) -> str | None:
                found = names.get((folder / run.folder).resolve())
                return href_of(found) if found else None

            made = series_page(read_findings(folder), address)
            known = self._made[name] = _Made(key, _framed(name, made))
        return known.html


def _framed(name: str, made: Page) -> str:
    body = [
        f"<h1>{line_html(words(made.title))}</h1>",
        f'<p class="about">{line_html(made.about)}</p>',
        *blocks_html(made.first),
        *sections_html(made.sections),
    ]
    return page(made.title, body, bar=way((name, series_href(name))))


def _stamp(folder: Path) -> tuple[int, ...]:
    """Changes whenever a point is added."""
    found = [path.stat() for path in (folder / SERIES, folder / POINTS) if path.exists()]
    return tuple(part for one in found for part in (one.st_size, one.st_mtime_ns))


def _head(name: str, folder: Path) -> SeriesHead:
    try:
        found = read_findings(folder)
    except (HarnessError, OSError, ValueError):
        return SeriesHead(name, name, "", "damaged: verify says what is wrong", 0)
    points = sum(len(one.points) for one in found.segments)
    verdict = found.verdict if points else "no point yet"
    return SeriesHead(name, found.series.title, found.last_period or "", verdict, points)
