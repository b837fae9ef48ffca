"""Where a provider is called: its own address or a gateway's, in the form that its SDK wants.

People write a base URL with or without `/v1`, `/v1beta` or a slash at the end. Each SDK adds a path of its own, so an
address that is right for one gives 404 with another. A version at the end is therefore replaced by what the SDK wants.
Any other path, such as `/openai` or `/proxy/anthropic`, is a gateway's own and is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit

from ..errors import ConfigError

OWN_ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "xai": "https://api.x.ai/v1",
}
"""The addresses that are used unless a variable names another."""
GOOGLE_VERSION = "v1"
"""What the SDK asks of Google itself."""
GATEWAY_VERSION = "v1beta"
"""Google's API version at any address but Google's own, where gateways have no other."""
_VERSION = re.compile(r"v\d+[a-z0-9]*")
_SUFFIX = re.compile(r"/(v1|v1beta|v1alpha)$")
_ENDPOINT = re.compile(r"(/chat/completions|(?<=/v1)/messages)$")


@dataclass(frozen=True)
class Endpoint:
    base_url: str
    api_version: str | None = None
    """The version in the path of every request, which Google's SDK wants apart from the address; else None."""


def endpoint(
    provider: str, given: str | None, *, api_version: str | None = None, variable: str | None = None
) -> Endpoint:
    """The address of a provider, from what a user gave or did not give; `ConfigError` for what is no address.

    `api_version` is for Google, whose SDK writes it into the path. `variable` is where the address comes from.
    """
    parts = _checked(given or OWN_ADDRESSES.get(provider, ""), variable or f"The base URL for {provider}")
    path = _ENDPOINT.sub("", parts.path.rstrip("/"))
    found = _SUFFIX.search(path)
    bare = path[: found.start()] if found else path
    if provider == "google":
        return Endpoint(_joined(parts, bare), _google_version(parts, found[1] if found else None, api_version))
    if provider == "anthropic":
        return Endpoint(_joined(parts, bare))
    return Endpoint(_joined(parts, f"{bare}/v1" if found or not path else path))


def _google_version(parts: SplitResult, in_path: str | None, api_version: str | None) -> str:
    """The version in the path counts, except `/v1` at a gateway: that is how other SDKs want the same address."""
    if api_version:
        version = {"beta": GATEWAY_VERSION}.get(api_version, api_version)  # the SDK takes this short form too
        if not _VERSION.fullmatch(version):
            raise ConfigError("GOOGLE_GENAI_API_VERSION must be a version such as v1 or v1beta.")
        return version
    if (parts.hostname or "").endswith(".googleapis.com"):
        return in_path or GOOGLE_VERSION
    return in_path if in_path and in_path != "v1" else GATEWAY_VERSION


def _checked(given: str, subject: str) -> SplitResult:
    try:
        parts = urlsplit(given.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"{subject} must be an address that starts with http:// or https://.")
    if "@" in parts.netloc:
        raise ConfigError(f"{subject} must be an address without a name or password in it: that would replace the key.")
    if parts.query or parts.fragment:
        raise ConfigError(f"{subject} must be an address without ? or #: what follows is never sent.")
    return parts


def _joined(parts: SplitResult, path: str) -> str:
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))
