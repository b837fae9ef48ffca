"""Where a provider is called: its own address or a gateway's, in the form that its SDK wants.

People write a base URL with or without `/v1`, `/v1beta` or a slash at the end. Each SDK adds a path of its own, so an
address that is right for one gives 404 with another. A version at the end is therefore replaced by what the SDK wants.
Any other path, such as `/openai` or `/proxy/anthropic`, is a gateway's own and is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

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


# Which proxy a request goes through, by the usual variables: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY.
#
# A loopback address (localhost, 127.x.x.x, ::1) never goes through a proxy: on another machine it would be that
# machine's own. Messages name the variables and never quote them, because a proxy's address may have a password in it.

_HTTP = ("http", "https")
_SOCKS = ("socks5", "socks5h")
SOCKS_PACKAGE = "aiohttp-socks>=0.11,<1"
"""What the HTTP library under the SDKs needs for SOCKS; the extra `socks` has it too."""


SOCKS_PORT = 1080


def proxy_for(address: str) -> str | None:
    """The proxy for an address, or None; `ConfigError` if the proxy cannot be used from here."""
    from urllib.request import getproxies  # not needed to list models, and slow to import

    target = urlsplit(address)
    host, proxies = target.hostname or "", getproxies()
    proxy = proxies.get(target.scheme) or proxies.get("all")
    if not proxy or is_loopback(host) or _is_exempt(host, target.port, proxies.get("no", "")):
        return None
    variable = f"{target.scheme.upper()}_PROXY" if proxies.get(target.scheme) else "ALL_PROXY"
    return _checked_proxy(proxy if "://" in proxy else f"http://{proxy}", variable)


def _checked_proxy(proxy: str, variable: str) -> str:
    """The proxy with its scheme in lower case, and with a port if it is for SOCKS."""
    scheme, _, rest = proxy.partition("://")
    scheme = scheme.lower()
    if scheme not in (*_HTTP, *_SOCKS):
        raise ConfigError(f"{variable} names a proxy of a kind that is not supported. Use http, https or socks5.")
    if scheme in _SOCKS and find_spec("aiohttp_socks") is None:
        raise ConfigError(
            f"{variable} names a SOCKS proxy, which needs one more package. Run: python -m pip install "
            f"'{SOCKS_PACKAGE}'. Or list the host of the provider in NO_PROXY."
        )
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not unquote(rest).isascii():
        raise ConfigError(
            f"{variable} is not the address of a proxy. Write it like http://name:password@host:3128, in plain ASCII."
        )
    port = f":{SOCKS_PORT}" if scheme in _SOCKS and parts.port is None else ""
    return f"{scheme}://{parts.netloc.rstrip(':')}{port}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself, by its name or number; no name is looked up."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_exempt(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether NO_PROXY lists a host, by name, domain, number or range of numbers."""
    from urllib.request import proxy_bypass

    if proxy_bypass(host if port is None else f"{host}:{port}"):
        return True
    try:
        number = ip_address(host)
    except ValueError:
        return False
    for entry in no_proxy.split(","):
        try:
            if number in ip_network(entry.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False
