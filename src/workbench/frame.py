"""The frame of every application: its pages from templates, their style and script, and where pages are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from ..reports import template
from ..reports.evidence_shell import PAGE_STYLE
from ..reports.html import STYLE

STYLE_PATH, SCRIPT_PATH = "/static/style.css", "/static/keys.js"
_STATIC = Path(__file__).parent / "static"


def page(name: str, **values: object) -> str:
    """A page from a template of the workbench."""
    return template.html(f"workbench/{name}", **values)


def shown(name: str, status: int = 200, **values: object) -> Response:
    return HTMLResponse(page(name, **values), status)


def application(routes: Sequence[Route], **more: Any) -> Starlette:
    """Pages with their style and script, and one for addresses that no route has."""
    found = Starlette(routes=[*routes, Route(STYLE_PATH, _style), Route(SCRIPT_PATH, _script)], **more)
    found.add_exception_handler(404, _missing)
    return found


async def _missing(request: Request, error: Exception) -> Response:
    return shown("message", 404, about="missing")


async def _style(request: Request) -> Response:
    return Response(STYLE + PAGE_STYLE + (_STATIC / "pages.css").read_text(encoding="utf-8"), media_type="text/css")


async def _script(request: Request) -> Response:
    return Response((_STATIC / "keys.js").read_text(encoding="utf-8"), media_type="text/javascript")


def in_address(part: str) -> str:
    """A name as a part of an address."""
    return quote(part, safe="", errors="surrogateescape")


def run_href(run: str, *parts: str) -> str:
    """A page of a run."""
    return "/runs/" + "/".join(map(in_address, (run, *parts)))


def series_href(name: str) -> str:
    return f"/series/{in_address(name)}"


template.environment("html").filters.update(
    in_address=in_address, indented=lambda record: json.dumps(record, indent=2, ensure_ascii=False)
)
template.environment("html").globals.update(run_href=run_href, series_href=series_href)
