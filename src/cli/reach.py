"""`doctor --reach`: one free, authenticated request per provider whose key is set, and what its answer means.

Each provider's own adapter asks for the list of models: through the same SDK, address, headers and proxy as a run. All
are asked at once and within one time limit. Neither a key nor the path of an address nor a provider's own words are
shown: they may repeat a part of the key.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Literal
from urllib.parse import urlsplit

from ..adapters.addresses import proxy_for
from ..adapters.classify import Listing
from ..adapters.http import HttpAdapter
from ..adapters.registry import Provider, check_settings, make_adapter
from ..errors import ConfigError

REACH_S = 5.0
PARTS_OF_ADDRESSES = {"anthropic": "/v1/messages", "google": "/v1beta/models"}
"""What each SDK adds to the base URL; all others add the one in `CHAT`."""
CHAT = "/chat/completions"


@dataclass(frozen=True)
class Reached:
    """What came of asking one provider."""

    name: str
    state: Literal["ok", "missing", "warning", "error"]
    detail: str
    date: str | None = None
    """The server's clock, as its header has it."""


@dataclass(frozen=True)
class _Question:
    provider: Provider
    adapter: HttpAdapter
    origin: str
    host: str
    """The host to connect to: the server's or the proxy's."""


def reach(providers: Sequence[Provider]) -> Iterator[Reached]:
    """Ask every provider whose key is set, or that needs none and has an address."""
    questions: list[_Question] = []
    for provider in providers:
        if not (provider.key_is_set() or (not provider.needs_key and provider.settings().get("base_url"))):
            continue
        try:
            questions.append(_question(provider))
        except ConfigError as error:
            yield Reached(provider.name, "error", f"not asked: {error}")
    listings = _ask_all(questions)
    for question in questions:
        name = question.provider.name
        listing = listings.get(name) or Listing(outcome="timeout", problem=f"no answer within {REACH_S:g} s")
        yield _meaning(question, listing)


def _question(provider: Provider) -> _Question:
    """The SDK is imported here, in the main thread: that takes seconds, and is not the server's time."""
    check_settings(provider.name)
    base_url = provider.endpoint().base_url
    adapter = make_adapter(provider.name)
    assert isinstance(adapter, HttpAdapter), "a provider with a key or an address has an adapter over HTTP"
    parts = urlsplit(base_url)
    host = urlsplit(proxy_for(base_url) or base_url).hostname or ""
    return _Question(provider, adapter, f"{parts.scheme}://{parts.netloc}", host)


def _ask_all(questions: Sequence[_Question]) -> Mapping[str, Listing]:
    """Ask all at once. A request that hangs, even in name resolution, is abandoned at the time limit."""
    answers: SimpleQueue[tuple[str, Listing]] = SimpleQueue()
    for question in questions:
        Thread(target=lambda one=question: answers.put((one.provider.name, ask(one))), daemon=True).start()
    found: dict[str, Listing] = {}
    deadline = time.monotonic() + REACH_S + 0.5
    while len(found) < len(questions):
        try:
            name, listing = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        found[name] = listing
    return found


def ask(question: _Question) -> Listing:
    """One answer, in a thread of its own."""
    try:
        # First here, where it can be abandoned: the event loop's own resolver would keep the program from ending.
        socket.getaddrinfo(question.host, None)
    except (OSError, UnicodeError) as error:
        return Listing(outcome="transient", problem=getattr(error, "strerror", None) or "the host name is unusable")
    return asyncio.run(_listed(question.adapter))


async def _listed(adapter: HttpAdapter) -> Listing:
    try:
        return await adapter.list_models(timeout_s=REACH_S)
    finally:
        await adapter.aclose()


def _meaning(question: _Question, listing: Listing) -> Reached:
    provider, origin = question.provider, question.origin
    name, status = provider.name, f"HTTP {listing.status}"
    key = f"the key in {provider.key_variable}" if provider.key_is_set() else "calls without a key"
    if listing.status is None:
        found = re.search(r"\(([^()]*)\)$", listing.problem)
        return Reached(name, "error", f"{origin} cannot be reached: {found[1] if found else listing.problem}")
    if listing.chat is not None:
        return _without_list(question, listing, listing.chat, key)
    if listing.models is not None:
        counted = f"{listing.models} model{'' if listing.models == 1 else 's'}"
        return Reached(name, "ok", f"{origin} accepts {key} ({counted})", listing.date)
    if listing.outcome == "denied":
        return Reached(name, "error", _refusal(origin, key, listing.status), listing.date)
    if 300 <= listing.status < 400:
        advice = f"set {provider.base_url_variable} to the address it redirects to"
        return Reached(name, "error", f"{origin} redirects ({status}); {advice}", listing.date)
    said = "but not with a list of models" if listing.outcome is None else f"so {key} could not be checked"
    return Reached(name, "warning", f"{origin} answers ({status}), {said}", listing.date)


def _without_list(question: _Question, listing: Listing, chat: Listing, key: str) -> Reached:
    """There is no list for us, so the answer to an empty chat request decides."""
    provider, origin = question.provider, question.origin
    name, status = provider.name, f"HTTP {listing.status}"
    if chat.status in (404, 405):
        part = PARTS_OF_ADDRESSES.get(name, CHAT)
        versions = f" or {provider.version_variable}" if provider.version_variable else ""
        advice = f"correct {provider.base_url_variable}{versions}: it must be the part of the address before {part}"
        return Reached(
            name, "error", f"{origin} has no such API at this address (HTTP {chat.status}); {advice}", chat.date
        )
    if chat.outcome == "denied" and chat.status is not None:
        return Reached(name, "error", _refusal(origin, key, chat.status), chat.date)
    if chat.status is None or chat.outcome not in (None, "permanent"):
        return Reached(name, "warning", f"{origin} answers ({status}), so {key} could not be checked", listing.date)
    detail = f"{origin} has no list of models ({status}) but answers chat requests; {key} could not be checked"
    return Reached(name, "ok", detail, listing.date)


def _refusal(origin: str, key: str, status: int) -> str:
    if status in (402, 429):
        return f"{origin} refuses the account of {key}: no credit or quota is left (HTTP {status})"
    if status == 403:
        return f"{origin} does not let {key}, its account or its region use the API (HTTP 403)"
    return f"{origin} refuses {key} (HTTP {status})"
