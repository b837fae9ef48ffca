"""The frame of every page, its style and its one script. All text of others goes through `safe` or `safe_lines`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from string import Template
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..reports.evidence_shell import PAGE_STYLE, safe
from ..reports.html import STYLE

STYLE_PATH, SCRIPT_PATH = "/static/style.css", "/static/keys.js"


def style() -> str:
    return STYLE + PAGE_STYLE + (_STATIC / "pages.css").read_text(encoding="utf-8")


def page(title: str, body: Iterable[str], *, bar: Iterable[str] = ()) -> str:
    """A whole page. `title` is plain text; `bar` and `body` are HTML already."""
    return _page().substitute(title=safe(title), bar=" ".join(bar), body="\n".join(body))


@cache
def _page() -> Template:
    return Template((_STATIC / "page.html").read_text(encoding="utf-8"))


# The style and the script of the pages: two files, nothing from elsewhere.

_STATIC = Path(__file__).parent / "static"


def static_routes() -> list[Route]:
    return [Route(STYLE_PATH, _style), Route(SCRIPT_PATH, _script)]


async def _style(request: Request) -> Response:
    return Response(style(), media_type="text/css")


async def _script(request: Request) -> Response:
    return Response((_STATIC / "keys.js").read_text(encoding="utf-8"), media_type="text/javascript")


# Where pages are, and the way to them at the top of each. Names are quoted.


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
