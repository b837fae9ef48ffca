"""Checks what a run needs: Python, SDKs, keys, addresses, clock, disk and, on request, the network.

Findings are data; `table` and `as_json` show them. A key is reported as set or not set; neither it nor its length is
shown. Of an address, only scheme, host and port are shown. Only `reach` imports SDKs and sends anything (see
`reach.py`).
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from importlib import metadata
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from ..adapters.addresses import OWN_ADDRESSES
from ..adapters.registry import PROVIDERS, Provider, missing_sdk
from . import tables

State = Literal["ok", "missing", "warning", "error"]
OLDEST_PYTHON = (3, 11)
EARLIEST_YEAR, LATEST_YEAR = 2026, 2100
CLOCK_MAY_DIFFER = timedelta(seconds=60)
FEW_BYTES = 1 << 30
SYNCED_BYTES = 20_000
"""About one journal record."""
SHORTEST_KEY = 8
"""A shorter value is not a key, and would match any text."""


@dataclass(frozen=True)
class Finding:
    area: str
    name: str
    state: State
    detail: str


def examine(*, reach: bool, out: Path, providers: Mapping[str, Provider] = PROVIDERS) -> list[Finding]:
    """Everything that can be known without spending anything."""
    real = [provider for provider in providers.values() if provider.sdk or provider.key_variable]
    found = [_python(sys.version_info[:2])]
    for provider in real:
        found += [*_sdk(provider), *_key(provider), *_address(provider)]
    found += _clock(datetime.now().astimezone())
    found += _disk(out)
    if reach:
        found += _network(real)
    return _without_keys(found, real)


def _python(version: tuple[int, int]) -> Finding:
    if version < OLDEST_PYTHON:
        return Finding("python", "version", "error", f"{platform.python_version()}; 3.11 or newer is needed")
    return Finding("python", "version", "ok", platform.python_version())


def _sdk(provider: Provider) -> Iterable[Finding]:
    if provider.sdk is None:
        return
    package = provider.sdk.replace(".", "-")
    try:
        yield Finding("sdk", provider.name, "ok", f"{package} {metadata.version(package)}")
    except metadata.PackageNotFoundError:
        yield Finding("sdk", provider.name, "missing", missing_sdk(provider.extra or provider.name))


def _key(provider: Provider) -> Iterable[Finding]:
    if provider.key_variable is None:
        return
    if provider.key_is_set():
        yield Finding("key", provider.name, "ok", f"{provider.key_variable} is set")
    elif provider.needs_key:
        yield Finding("key", provider.name, "missing", f"{provider.key_variable} is not set")
    else:
        yield Finding("key", provider.name, "ok", f"{provider.key_variable} is not set (optional)")


def _address(provider: Provider) -> Iterable[Finding]:
    """The address that a variable gives; nothing if the provider's own is used."""
    variable = provider.base_url_variable
    if variable is None:
        return
    given = os.environ.get(variable)
    if given:
        shown = origin(given)
        if shown is None:
            yield Finding("address", provider.name, "error", f"{variable} is not an http:// or https:// address")
        else:
            yield Finding("address", provider.name, "ok", f"{variable} points to {shown}")
    elif provider.name not in OWN_ADDRESSES:
        detail = f"{variable} is not set; set it to use this provider, for example http://127.0.0.1:8000/v1"
        yield Finding("address", provider.name, "missing", detail)


def origin(address: str) -> str | None:
    """Scheme, host and port of an address and nothing else; None if it is not an address."""
    try:
        parts = urlsplit(address.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host or not re.fullmatch(r"[\w.:-]+", host):
        return None
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else "")


def _clock(now: datetime) -> Iterable[Finding]:
    if EARLIEST_YEAR <= now.year <= LATEST_YEAR:
        yield Finding("clock", "date", "ok", now.isoformat(timespec="seconds"))
    else:
        yield Finding("clock", "date", "error", f"the clock says {now.year}; set it before a run")
    if now.utcoffset() is None:
        yield Finding("clock", "UTC offset", "warning", "unknown; times in the journal may be wrong")


def _disk(out: Path) -> Iterable[Finding]:
    """The folder of runs, or the nearest existing folder above it. Leaves no file behind."""
    place = out.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        yield Finding("disk", "runs folder", "error", f"{place} is a file; name another folder with --out")
        return
    try:
        took = _time_of_sync(place)
        free = shutil.disk_usage(place).free
    except OSError as error:
        yield Finding("disk", "runs folder", "error", f"{place} is not writable: {error.strerror or 'no reason given'}")
        return
    yield Finding("disk", "runs folder", "ok", f"{place} is writable")
    yield _space(free)
    yield Finding("disk", "one sync", "ok", f"{took * 1_000:.1f} ms")


def _space(free: int) -> Finding:
    state: State = "warning" if free < FEW_BYTES else "ok"
    advice = "; a large run may fill it" if state == "warning" else ""
    return Finding("disk", "free space", state, f"{free / (1 << 30):.1f} GiB{advice}")


def _time_of_sync(folder: Path) -> float:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(SYNCED_BYTES))
        file.flush()
        began = time.perf_counter()
        os.fsync(file.fileno())
        return time.perf_counter() - began


def _network(providers: Sequence[Provider]) -> Iterable[Finding]:
    from .reach import reach  # with the event loop, which nothing else here needs

    clocks: dict[str, timedelta] = {}
    for reached in reach(providers):
        yield Finding("network", reached.name, reached.state, reached.detail)
        ahead = _ahead(reached.date)
        if ahead is not None:
            clocks[reached.name] = ahead
    yield from _against_servers(clocks)


def _against_servers(clocks: Mapping[str, timedelta]) -> Iterable[Finding]:
    """How far this machine's clock is from the server clock that it differs from most. `clocks`: how far ahead."""
    if not clocks:
        return
    provider, ahead = max(clocks.items(), key=lambda one: abs(one[1]))
    seconds = round(abs(ahead).total_seconds())
    if abs(ahead) > CLOCK_MAY_DIFFER:
        side = "ahead of" if ahead > timedelta() else "behind"
        yield Finding("clock", "against servers", "warning", f"{seconds} s {side} {provider}'s clock; correct it")
    else:
        yield Finding("clock", "against servers", "ok", f"within {max(1, seconds)} s of {provider}'s clock")


def _ahead(header: str | None) -> timedelta | None:
    try:
        server = parsedate_to_datetime(header or "")
    except ValueError:
        return None
    return datetime.now(UTC) - (server if server.tzinfo else server.replace(tzinfo=UTC))


def _without_keys(findings: Iterable[Finding], providers: Iterable[Provider]) -> list[Finding]:
    """A last check: a key that was set where an address belongs is not shown either."""
    keys = [os.environ.get(provider.key_variable or "", "") for provider in providers]
    known = [re.escape(key) for key in keys if len(key) >= SHORTEST_KEY]
    if not known:
        return list(findings)
    pattern = re.compile("|".join(known), re.IGNORECASE)
    return [Finding(f.area, f.name, f.state, pattern.sub("[key]", f.detail)) for f in findings]


def as_json(findings: Iterable[Finding]) -> list[dict[str, str]]:
    return [asdict(finding) for finding in findings]


def table(findings: Iterable[Finding], width: int | None = None) -> str:
    """The findings for a terminal of the given width."""
    rows = [[f.area, f.name, f.state, f.detail] for f in findings]
    return tables.plain_table(("area", "name", "state", "detail"), rows, "llll", width=width)
