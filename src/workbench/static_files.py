"""The style and the script of the pages: two files, nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .frame import SCRIPT_PATH, STYLE_PATH, style

_SCRIPT = Path(__file__).parent / "static" / "keys.js"


def static_routes() -> list[Route]:
    return [Route(STYLE_PATH, _style), Route(SCRIPT_PATH, _script)]


async def _style(request: Request) -> Response:
    return Response(style(), media_type="text/css")


async def _script(request: Request) -> Response:
    return Response(_SCRIPT.read_text(encoding="utf-8"), media_type="text/javascript")
