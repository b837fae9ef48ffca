"""Forms that are sent to the pages: their token and their fields."""

from __future__ import annotations

import hmac

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from ..store.strict_json import clean_text
from .access import NOT_OURS, TOKEN_FIELD, form_token, posted
from .frame import page

LARGEST_FORM = 200_000
Fields = dict[str, list[str]]


def one(fields: Fields, name: str) -> str:
    return (fields.get(name) or [""])[0]


def note_in(fields: Fields, name: str) -> str:
    """What a person wrote, with the line breaks of this program."""
    return clean_text(one(fields, name)).replace("\r\n", "\n").strip()


def token_of(request: Request) -> str:
    """What the forms of this session contain."""
    return form_token(request.scope["session"])


def token_field(token: str) -> str:
    return f'<input type="hidden" name="{TOKEN_FIELD}" value="{token}">'


async def read_form(request: Request, longest: int = LARGEST_FORM) -> Fields | None:
    """The fields of a form of this session; None if it is none, longer than so many bytes, or from elsewhere."""
    fields = await posted(request, longest)
    if fields is None:
        return None
    same = hmac.compare_digest(one(fields, TOKEN_FIELD).encode("utf-8", "replace"), token_of(request).encode())
    return fields if same else None


def not_ours() -> Response:
    return PlainTextResponse(NOT_OURS, 403)


def missing() -> Response:
    body = ["<h1>Not here</h1>", '<p>There is no such page. <a href="/">Back to the start</a></p>']
    return HTMLResponse(page("Not here", body), 404)


async def missing_page(request: Request, error: Exception) -> Response:
    """For addresses that no route has."""
    return missing()
