"""Which proxy a request goes through, by the usual variables: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY.

A loopback address (localhost, 127.x.x.x, ::1) never goes through a proxy: on another machine it would be that
machine's own. Messages name the variables and never quote them, because a proxy's address may have a password in it.
"""

from __future__ import annotations

from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from ..errors import ConfigError

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
    return _checked(proxy if "://" in proxy else f"http://{proxy}", variable)


def _checked(proxy: str, variable: str) -> str:
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
