"""Who may ask for a page: this machine, through the address that was printed, with the token of this start.

Exact Host and port keep out names that an attacker points here (DNS rebinding); Origin, Sec-Fetch-Site and a token in
every form keep out forms of other sites; a strict policy keeps model text from doing anything.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..store.strict_json import clean_text
from .frame import SCRIPT_PATH, STYLE_PATH, shown

COOKIE = "medicare_eval_"
"""Followed by the port: programs on the same host share their cookies."""
TOKEN_FIELD = "token"  # noqa: S105 - the name of a field
OPEN = "/open"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
NOT_OURS = "This form was not sent from a page of this program."
OPEN_TO_ALL = (STYLE_PATH, SCRIPT_PATH)
"""What the form for the password needs. Nothing of a run is in it."""
WRONG_S = 1.0
"""A wrong password takes so long, one at a time."""
LONGEST_LOGIN, SLOWEST_LOGIN_S = 4_000, 10.0
CLOSED = "This page is open only with the link that the program printed when it started."


@dataclass(frozen=True)
class Access:
    """Who may open the pages of this start."""

    links: Mapping[str, str]
    """Token in a link to the person whose it is; empty for a reader."""
    password: str | None = None
    """Asked for when a link is opened. Needed if other machines reach the pages."""
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    @cached_property
    def sessions(self) -> dict[str, str]:
        """The value of a cookie to its person. Nobody can tell it from a link."""
        return {self.session(token): person for token, person in self.links.items()}

    def session(self, token: str) -> str:
        return hmac.new(self._secret, token.encode(), "sha256").hexdigest()

    def link_token(self, given: str) -> str | None:
        return _same(self.links, given)

    def known(self, given: str) -> str | None:
        return _same(self.sessions, given)


def _same(known: Iterable[str], given: str) -> str | None:
    found = [one for one in known if hmac.compare_digest(one.encode(), given.encode("utf-8", "replace"))]
    return found[0] if found else None


class AccessCheck:
    """Refuses what does not come from our own pages, and adds the headers that keep text inert."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], access: Access) -> None:
        """`hosts`: exact values of the Host header."""
        self._app = app
        self._hosts = hosts
        self._access = access
        self._cookie = COOKIE + min(hosts).rpartition(":")[2]
        self._tries = {token: asyncio.Lock() for token in access.links}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        send = _with_headers(send)
        refused = self._refused(scope)
        if refused is None and scope["path"] == OPEN:
            refused = await self._opened(Request(scope, receive))
        elif refused is None and scope["path"] not in OPEN_TO_ALL:
            refused = self._closed(scope)
        await (refused or self._app)(scope, receive, send)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host") not in self._hosts:
            return PlainTextResponse("This address is not one of this program.", 421)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Only GET and POST are understood.", 405)
        if scope["method"] == "POST" and self._foreign(headers):
            return PlainTextResponse(NOT_OURS, 403)
        return None

    def _foreign(self, headers: Headers) -> bool:
        """Whether a form was sent from a page that is not ours. Browsers of the last years send both headers."""
        origins = {f"http://{host}" for host in self._hosts}
        return headers.get("origin") not in origins or headers.get("sec-fetch-site", "same-origin") != "same-origin"

    def _closed(self, scope: Scope) -> Response | None:
        session = self._access.known(Request(scope).cookies.get(self._cookie, ""))
        if session is None:
            return PlainTextResponse(CLOSED, 403)
        scope["session"], scope["person"] = session, self._access.sessions[session]
        return None

    async def _opened(self, request: Request) -> Response:
        """Turn a link, and the password if there is one, into a session."""
        token = self._access.link_token(request.query_params.get(TOKEN_FIELD, ""))
        if token is None:
            return PlainTextResponse(CLOSED, 403)
        password = self._access.password
        if password is not None:
            if request.method != "POST":
                return shown("password", wrong=False)
            try:
                async with asyncio.timeout(SLOWEST_LOGIN_S):
                    fields = await posted(request, LONGEST_LOGIN) or {}
            except TimeoutError:
                return PlainTextResponse("This took too long.", 408)
            async with self._tries[token]:
                given = fields.get("password", [""])[0]
                if not hmac.compare_digest(given.encode("utf-8", "replace"), password.encode()):
                    await asyncio.sleep(WRONG_S)
                    return shown("password", 403, wrong=True)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self._cookie, self._access.session(token), httponly=True, samesite="lax", path="/")
        return answer


async def posted(request: Request, longest: int) -> dict[str, list[str]] | None:
    """The fields of a form; None if it is none, or longer than so many bytes."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        return None
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > longest:
            return None
    try:
        return parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        return None


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return sending


# Forms that are sent to the pages: their token and their fields.

LARGEST_FORM = 200_000
Fields = dict[str, list[str]]


def one(fields: Fields, name: str) -> str:
    return (fields.get(name) or [""])[0]


def note_in(fields: Fields, name: str) -> str:
    """What a person wrote, with the line breaks of this program."""
    return clean_text(one(fields, name)).replace("\r\n", "\n").strip()


def token_of(request: Request) -> str:
    """What every form of this session must contain."""
    return hashlib.sha256(f"form|{request.scope['session']}".encode()).hexdigest()[:32]


async def read_form(request: Request, longest: int = LARGEST_FORM) -> Fields:
    """The fields of a form of this session. It is refused if it is longer than so many bytes, or from elsewhere."""
    fields = await posted(request, longest) or {}
    if not hmac.compare_digest(one(fields, TOKEN_FIELD).encode("utf-8", "replace"), token_of(request).encode()):
        raise HTTPException(403, NOT_OURS)
    return fields
