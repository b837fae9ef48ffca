"""What went wrong with a call: the outcome of an HTTP status, of an error body and of an exception.

`denied` means that the provider refuses the key, the account or the model, whatever is asked. Most providers say so by
the status; the words and codes of `errors.toml` are for those that say it under another one. All adapters share them,
because a gateway passes on the words of the provider behind it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from ..store.strict_json import loads_foreign
from .base import FailureOutcome

LARGEST_COUNT = 2**53
_DENIED_STATUSES = frozenset({401, 402, 403, 404, 407})
"""No words of a request cause 404: the model or the address is wrong. 407 is a proxy that wants a password."""
_SAID = tomllib.loads(Path(__file__).with_name("errors.toml").read_text(encoding="utf-8"))
_DENIED_CODES, _FILTER_CODES = frozenset(_SAID["denied"]["codes"]), frozenset(_SAID["filtered"]["codes"])
_NOTHING_LEFT = re.compile(r"PerDay|limit: 0(?![.\d])")
"""A quota of Google that does not refill within minutes: of a day, or of nothing at all."""


@dataclass(frozen=True)
class ErrorBody:
    """An error as a provider reported it, in whichever of the usual places."""

    status: int
    codes: frozenset[str]
    """Every code, type and reason in the body."""
    message: str
    details: tuple[dict[str, Any], ...] = ()

    @property
    def filtered(self) -> str | None:
        """The reason, if a content filter answered and not the account; else None."""
        if self.status not in (400, 403, 422):
            return None
        code = min(self.codes & _FILTER_CODES, default=None)
        words = self.message.lower()
        return code or ("content_filter" if any(known in words for known in _SAID["filtered"]["words"]) else None)

    @property
    def outcome(self) -> FailureOutcome:
        if 400 <= self.status < 500 and (self.codes & _DENIED_CODES or self._says_denied()):
            return "denied"
        return classify_status(self.status)

    def _says_denied(self) -> bool:
        words = self.message.lower()
        if any(known in words for known in _SAID["denied"]["words"]):
            return True
        return self.status == 429 and any(_NOTHING_LEFT.search(quota) for quota in self._quotas())

    def _quotas(self) -> Iterator[str]:
        """Google's exhausted quotas, by id and size; its message repeats the size."""
        yield self.message
        for detail in self.details:
            violations = detail.get("violations")
            for one in violations if isinstance(violations, list) else ():
                if isinstance(one, dict):
                    yield f"{one.get('quotaId')} limit: {one.get('quotaValue')}"


def error_body(status: int, payload: dict[str, Any]) -> ErrorBody:
    """Read an error: `{"error": {"message", "code", "type", "details"}}`, `{"code", "error": text}` or `{"detail"}`."""
    inner = payload.get("error")
    error: dict[str, Any] = inner if isinstance(inner, dict) else {}
    listed = error.get("details")
    details = tuple(one for one in listed if isinstance(one, dict)) if isinstance(listed, list) else ()
    named = [error.get("code"), error.get("type"), payload.get("code"), *(one.get("reason") for one in details)]
    said = (error.get("message"), inner, payload.get("message"), payload.get("detail"))
    return ErrorBody(
        status=status,
        codes=frozenset(code for code in named if isinstance(code, str)),
        message=next((text for text in said if isinstance(text, str) and text), ""),
        details=details,
    )


def classify_status(status: int) -> FailureOutcome:
    """The outcome of an HTTP status other than success."""
    if status == 429:
        return "rate_limited"
    if status in _DENIED_STATUSES:
        return "denied"
    return "transient" if status in (408, 409, 425) or status >= 500 else "permanent"


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait, from `retry-after-ms`, or from `Retry-After` in seconds or as an HTTP date."""
    millis, value = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    seconds = _number(value) if millis is None else millis / 1000
    if seconds is not None or value is None:
        return seconds
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return max(0.0, number) if abs(number) < LARGEST_COUNT else None


def classify_exception(error: BaseException, outer: BaseException | None = None) -> FailureOutcome:
    """The outcome of an exception without a complete response, by the names of its classes.

    The classes are the HTTP library's, which is not imported here; `outer` is what the caller was handling before.
    """
    status = _proxy_status(error, outer)
    if status is not None:
        return classify_status(status)
    names = {cls.__name__ for link in _chain(error, outer) for cls in type(link).__mro__}
    if names & {"TimeoutException", "TimeoutError", "APITimeoutError"}:
        return "timeout"
    if names & {"LocalProtocolError", "UnsupportedProtocol"}:
        return "permanent"  # one of our headers or URLs cannot be sent
    return "transient" if names & {"TransportError", "DecodingError", "OSError"} else "permanent"


def _proxy_status(error: BaseException, outer: BaseException | None) -> int | None:
    """The status with which a proxy refused a tunnel; `connections` gives one to a SOCKS proxy's refusal too."""
    for link in _chain(error, outer):
        if type(link).__name__ == "ProxyError":
            found = re.match(r"([1-5]\d\d)\b", str(link))
            return int(found[1]) if found else None
    return None


def _chain(error: BaseException | None, outer: BaseException | None) -> Iterator[BaseException]:
    while error is not None and error is not outer:
        yield error
        error = error.__cause__ or error.__context__


def describe_exception(error: BaseException, outer: BaseException | None) -> str:
    """Class names and the operating system's reason, but not the message, which may quote a header."""
    links = list(_chain(error, outer))
    names = " < ".join(dict.fromkeys(type(link).__name__ for link in links))
    status = _proxy_status(error, outer)
    if status is not None:
        return f"the proxy refused (HTTP {status}): {names}"
    reasons = [reason for link in links if isinstance(link, OSError) and (reason := _reason(link))]
    return f"{names} ({reasons[-1]})" if reasons else names


def _reason(error: OSError) -> str | None:
    """What the system says; of TLS and of name resolution, whose numbers are not the system's, what they say."""
    said = getattr(error, "reason", None)
    if isinstance(said, str):
        return said.replace("_", " ").lower()
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror if type(error).__name__ == "gaierror" else None


# What a server answers when asked for its list of models: a free request that shows whether address and key work.

WITHOUT_LIST = (403, 404, 405, 501)
"""Statuses that may mean only that there is no list: at some gateways, and for keys with few rights."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The answer to one request for the list of models; after a refusal of the list, also to an empty chat request."""

    status: int | None = None
    """None where there was no answer; `problem` says why."""
    outcome: FailureOutcome | None = None
    """None where the server answered with success."""
    problem: str = ""
    models: int | None = None
    """How many there are; None where the answer is no such list."""
    date: str | None = None
    """The server's clock, as its header has it."""
    chat: Listing | None = None


def read_listing(status: int, headers: Mapping[str, str], body: bytes) -> Listing:
    """The meaning of an answer to either request."""
    try:
        payload: Any = loads_foreign(body)
    except ValueError:
        payload = None
    fields: dict[str, Any] = payload if isinstance(payload, dict) else {}
    if not 200 <= status < 300:
        outcome = error_body(status, fields).outcome
        return Listing(status=status, outcome=outcome, date=headers.get("date"))
    models = fields.get("data", fields.get("models"))
    count = len(models) if isinstance(models, list) else None
    return Listing(status=status, models=count, date=headers.get("date"))
