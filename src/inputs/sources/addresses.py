"""One address: is it well formed, whose is it, where does a redirect lead, and which page is it?"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv6Address
from typing import Literal
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes, urlencode

from ...records.citation import MAX_ADDRESS, OFFICIAL, HostClass
from .hosts import classify_host

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?=[/\\]{2})|https?:", re.IGNORECASE)
_SCHEME_WITHOUT_COLON = re.compile(r"ht{1,2}ps?[/\\]{2}", re.IGNORECASE)
_PARTS = re.compile(r"(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?", re.DOTALL)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%(?:[01][0-9A-Fa-f]|7[Ff])")
"""A percent sign that escapes nothing, or a control character."""
_NEVER = frozenset('<>"{}|^`\\')
"""Characters that an address cannot have."""
_UNRESERVED = "!$&'()*+,;=:@/~-._"
_TRACKING = re.compile(
    r"utm_.*|mtm_.*|pk_.*|gclid|gbraid|wbraid|dclid|fbclid|msclkid|yclid|srsltid|igshid|mc_[ce]id|_ga|_gl"
)
_MAX_HOPS = 3

Redirect = Literal["resolved", "unresolved"]


@dataclass(frozen=True)
class Address:
    """One address and what it is."""

    host_class: HostClass
    why: str
    """One sentence about the class."""
    redirect: Redirect | None = None
    resolved_url: str | None = None
    """Where a redirect leads; the class and the sentence are then those of the target."""

    @property
    def is_official(self) -> bool:
        return self.host_class in OFFICIAL


@dataclass(frozen=True)
class _Split:
    """A well-formed address in its parts."""

    host: str
    port: str
    path: str
    query: str


@dataclass(frozen=True)
class _Refused:
    """Why an address cannot be split."""

    host_class: Literal["disguised", "malformed"]
    why: str
    host: str = ""
    """Where only the rest of the address is wrong: a disguise of the host is then the graver finding."""


@dataclass(frozen=True)
class _Redirector:
    """A service that sends its reader on to another address."""

    host: str
    path: str = ""
    """How the path begins."""
    carries: tuple[str, ...] = ()
    """Names of the query's fields that can be the target."""


_REDIRECTORS = (
    _Redirector("google", "/url", ("q", "url")),
    _Redirector("bing.com", "/ck/a", ("u",)),
    _Redirector("duckduckgo.com", "/l/", ("uddg",)),
    _Redirector("youtube.com", "/redirect", ("q",)),
    _Redirector("l.facebook.com", "/l.php", ("u",)),
    _Redirector("linkedin.com", "/redir", ("url",)),
    _Redirector("safelinks.protection.outlook.com", "/", ("url",)),
    _Redirector("vertexaisearch.cloud.google.com", "/grounding-api-redirect"),
    *map(_Redirector, ("bit.ly", "t.co", "tinyurl.com", "goo.gl", "ow.ly", "is.gd", "buff.ly", "lnkd.in", "rb.gy")),
)
"""Only known services are followed: any site could carry the address of an official page in its query."""


def classify(url: str) -> Address:
    """Whose address it is. A redirect that carries its target is followed, offline.

    Example:
        >>> classify("Medicare.gov/plan-compare").host_class
        'medicare'
        >>> classify("https://medicare.gov@example.com/").host_class
        'disguised'
        >>> classify("https://www.google.com/url?q=https://www.cms.gov/x").resolved_url
        'https://www.cms.gov/x'
    """
    address, target = _classify_one(url), url
    for _ in range(_MAX_HOPS):
        hop = _next_hop(target)
        if hop is None:
            break
        if hop == "":
            why = "The address is a redirect, and where it leads cannot be known offline."
            return replace(address, host_class="other", why=why, redirect="unresolved", resolved_url=None)
        target = hop
        address = replace(_classify_one(target), redirect="resolved", resolved_url=target)
    return address


def page_key(url: str) -> str | None:
    """One text for all spellings of a page's address; None if the address is malformed or disguised.

    Scheme, `www.`, default port, trailing slash, fragment, tracking fields and the order of the query do not matter.

    Example:
        >>> page_key("http://WWW.Medicare.gov:80/basics/?utm_source=openai#costs")
        'medicare.gov/basics'
    """
    parts = _split(url)
    if isinstance(parts, _Refused):
        return None
    host = parts.host.removesuffix(".").removeprefix("www.")
    fields = parse_qsl(parts.query, keep_blank_values=True, errors="replace")
    kept = sorted((name, value) for name, value in fields if not _TRACKING.fullmatch(name.lower()))
    path = quote(unquote_to_bytes(_without_dots(parts.path)), safe=_UNRESERVED).rstrip("/")
    return "".join([host, f":{parts.port}" if parts.port else "", path, f"?{urlencode(kept)}" if kept else ""])


def _classify_one(url: str) -> Address:
    parts = _split(url)
    if isinstance(parts, _Refused):
        shown = classify_host(parts.host)
        known = shown if parts.host and shown.host_class == "disguised" else parts
        return Address(known.host_class, known.why)
    if parts.host.startswith("["):
        return Address("other", "The host is an IP address, which names no agency.")
    host = classify_host(parts.host)
    if host.host_class == "malformed":
        return Address("malformed", host.why)
    if host.host_class == "other" and (front := _official_in_front(parts.path)):
        return Address("disguised", f"Its path begins with {front}, but it belongs to {parts.host}.")
    return Address(host.host_class, host.why)


def _official_in_front(path: str) -> str:
    """The official host name with which the path begins, as if it were the host; empty if it does not."""
    first = path.lstrip("/").split("/", 1)[0]
    return first if "." in first and classify_host(first).host_class in OFFICIAL else ""


def _split(url: str) -> _Split | _Refused:
    """The parts of an address, by rules that leave no doubt about which part is the host."""
    text = url.strip(" ")
    wrong = _unreadable(text)
    if wrong:
        return _Refused("malformed", wrong)
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else f"//{text}"
    if "\\" in rest:
        return _backslash(rest)
    found = _PARTS.fullmatch(rest[2:])
    if not rest.startswith("//") or rest.startswith("///") or found is None:
        return _Refused("malformed", "The address does not begin with https:// and a host name.")
    return _checked(found)


def _unreadable(text: str) -> str:
    """Why a text cannot be an address at all; empty if it can."""
    if not text or len(text) > MAX_ADDRESS:
        return f"An address has between 1 and {MAX_ADDRESS:,} characters."
    if any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp", "Zs") for one in text):
        return "The address contains a space or a control character."
    scheme = _SCHEME.match(text)
    if scheme is None:
        return "The address begins with a misspelled https://." if _SCHEME_WITHOUT_COLON.match(text) else ""
    known = scheme.group().lower() in ("http:", "https:")
    return "" if known else f"{scheme.group()[:20]} is not the beginning of a web address."


def _backslash(rest: str) -> _Refused:
    """Programs disagree about which host follows a backslash; one that hides a second host is a disguise."""
    authority = re.split(r"[/?#]", rest.lstrip("/\\"), maxsplit=1)[0]
    hides = "@" in authority or re.search(r"\\+\.", authority)
    if hides:
        return _Refused("disguised", "A backslash hides which host the address leads to.")
    return _Refused("malformed", "The address contains a backslash.")


def _checked(found: re.Match[str]) -> _Split | _Refused:
    authority, path, query = found["authority"], found["path"], found["query"] or ""
    if "@" in authority:
        shown, _, host = authority.rpartition("@")
        return _Refused("disguised", f"What is before the @ ({shown[:60]}) is a user name; the host is {host[:60]}.")
    if "%" in authority:
        decoded = unquote(authority)
        hidden = not _BAD_ESCAPE.search(authority) and decoded.isprintable()
        return _Refused("disguised" if hidden else "malformed", "The host name is hidden in percent signs.")
    rest = f"{path}?{query}"
    host = authority.partition(":")[0]
    if _BAD_ESCAPE.search(rest):
        return _Refused("malformed", "The address has a percent sign that stands for no character.", host)
    if _NEVER.intersection(rest) or any(unicodedata.category(one) == "Cf" for one in rest):
        return _Refused("malformed", "The address has characters that no address can have.", host)
    return _with_port(authority, path, query)


def _with_port(authority: str, path: str, query: str) -> _Split | _Refused:
    if authority.startswith("["):
        host, _, port = authority.partition("]")
        try:
            IPv6Address(host[1:])
        except AddressValueError:
            return _Refused("malformed", "The host is neither a name nor a valid IP address.")
        host, port = f"{host}]", port.removeprefix(":") if port.startswith(":") else port
    else:
        host, _, port = authority.partition(":")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536 and len(port) < 6):
        return _Refused("malformed", "The address has a port that does not exist.")
    if not host:
        return _Refused("malformed", "The address has no host name.")
    return _Split(host.lower(), "" if port in ("80", "443") else port, path, query)


def _without_dots(path: str) -> str:
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            kept = kept[:-1]
        elif segment not in ("", "."):
            kept.append(segment)
    return "".join(f"/{segment}" for segment in kept)


def _next_hop(url: str) -> str | None:
    """Where a redirect leads; empty if it does not say; None if the address is no redirect that we know."""
    parts = _split(url)
    if not isinstance(parts, _Split):
        return None
    for one in _REDIRECTORS:
        if _is_at(parts.host, one.host) and parts.path.startswith(one.path):
            fields = dict(reversed(parse_qsl(parts.query, errors="replace")))
            targets = (_target(fields.get(name, "")) for name in one.carries)
            return next(filter(None, targets), "")
    return None


def _is_at(host: str, name: str) -> bool:
    """Whether a host is a name or below it; `google` stands for google.com, google.de and google.co.uk."""
    if name != "google":
        return host == name or host.endswith(f".{name}")
    return bool(re.fullmatch(r"(?:www\.)?google\.(?:com|[a-z]{2}|com?\.[a-z]{2})", host))


def _target(value: str) -> str:
    """The address in a field of a query, also in the form that Bing gives it; empty if there is none."""
    if value.startswith("a1"):
        try:
            value = base64.urlsafe_b64decode(value[2:] + "=" * (-len(value[2:]) % 4)).decode("utf-8")
        except (binascii.Error, ValueError):
            return ""
    return value if re.match(r"https?://[^/]", value, re.IGNORECASE) else ""
