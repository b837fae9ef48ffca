"""Where pages are, and the way to them at the top of each. Names are quoted."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from ..findings.report.evidence_shell import safe


def _quoted(part: str) -> str:
    return quote(part, safe="", errors="surrogateescape")


def href_of(run: str, *parts: str) -> str:
    """A page of a run."""
    return "/runs/" + "/".join(map(_quoted, (run, *parts)))


def series_href(name: str) -> str:
    return f"/series/{_quoted(name)}"


def way(*steps: tuple[str, str]) -> Iterator[str]:
    """From the list of runs to a page: the text and the address of each step."""
    yield '<strong><a href="/">Runs</a></strong>'
    for text, href in steps:
        yield f'<span>/ <a href="{href}">{safe(text)}</a></span>'
