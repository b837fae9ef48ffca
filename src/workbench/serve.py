"""Serving pages on this machine until the user stops it."""

from __future__ import annotations

import errno
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from ..errors import InputError
from .access import OPEN, TOKEN_FIELD, Access, AccessCheck

OnEnd = Callable[[Callable[[], None]], None]
"""Takes what ends the server."""
LOOPBACK = "127.0.0.1"
PASSWORD = "MEDICARE_EVAL_PASSWORD"  # noqa: S105 - the name of a variable
SHORTEST_PASSWORD = 12


@dataclass(frozen=True)
class OpenSocket:
    """A socket that is open already, so that the address that is printed is the right one."""

    connection: socket.socket
    host: str
    port: int
    here_only: bool
    """Whether only this machine reaches it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @property
    def address(self) -> str:
        return f"http://{self._name(self.host)}:{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        names = [self._name(name) for name in (self.host, *(["localhost"] if self.host == LOOPBACK else []))]
        return frozenset([f"{name}:{self.port}" for name in names] + (names if self.port == 80 else []))

    @staticmethod
    def _name(host: str) -> str:
        return f"[{host}]" if ":" in host else host


def open_place(port: int | None, host: str = LOOPBACK) -> OpenSocket:
    """A socket on this address.

    Raises:
        InputError: the address is not one of this machine, stands for all of them, or the port is taken.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port or 0, type=socket.SOCK_STREAM)[0]
        number = ip_address(str(address[0]).partition("%")[0])
        number = getattr(number, "ipv4_mapped", None) or number
    except (OSError, UnicodeError):
        raise InputError(f"{host[:80]!r} is not an address of this machine.", field="host") from None
    if number.is_unspecified:
        text = f"{host} stands for every address of this machine. Give the one that others use to reach it."
        raise InputError(text, field="host")
    connection = socket.socket(family, socket.SOCK_STREAM)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        connection.bind(address)
    except OSError as error:
        connection.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"{host[:80]!r} is not an address of this machine.", field="host") from None
        raise InputError(f"{port} cannot be used ({error.strerror}). Choose another, or none.", field="port") from None
    connection.listen(64)
    name = host.lower() if re.search("[g-wyz]", host.lower()) else str(number)
    return OpenSocket(connection, name, connection.getsockname()[1], number.is_loopback)


def access_for(people: Iterable[str], place: OpenSocket, environment: Mapping[str, str] = os.environ) -> Access:
    """A link for each person, for this start only; and a password if other machines reach the pages.

    Raises:
        InputError: a password is needed and there is none, or it is short.
    """
    links = {secrets.token_urlsafe(24): person for person in people}
    return Access(links, check_password(place, environment))


def check_password(place: OpenSocket, environment: Mapping[str, str] = os.environ) -> str | None:
    """The password of pages that other machines reach; None if only this one does.

    Raises:
        InputError: a password is needed and there is none, or it is short.
    """
    password = environment.get(PASSWORD, "").strip()
    if place.here_only:
        return None
    if len(password) < SHORTEST_PASSWORD:
        text = f"other machines can reach {place.host}. Set a password of at least {SHORTEST_PASSWORD} characters in "
        raise InputError(f"{text}{PASSWORD}, and tell it to the people who take part.", field="host")
    return password


def link(place: OpenSocket, token: str) -> str:
    return f"{place.address}{OPEN}?{TOKEN_FIELD}={token}"


def serve(app: ASGIApp, place: OpenSocket, access: Access, stop_on: OnEnd | None = None) -> None:
    """Serve until the user presses Ctrl-C, or what `stop_on` is given is called."""
    guarded = AccessCheck(app, hosts=place.hosts, access=access)
    server = uvicorn.Server(
        uvicorn.Config(
            guarded,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="on",
            ws="none",
            http="h11",
            timeout_graceful_shutdown=3,
        )
    )
    if stop_on:
        stop_on(partial(setattr, server, "should_exit", True))
    with suppress(KeyboardInterrupt, SystemExit):  # the first is Ctrl-C, the second an application that cannot start
        server.run(sockets=[place.connection])
