"""Two small real proxies on 127.0.0.1 for tests: HTTP (forwarding and CONNECT) and SOCKS5.

Both connect every request to one given address, whatever host was asked for: so a test can use a host that does not
exist, and nothing but the proxy could have reached the server.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
from collections.abc import Coroutine
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit


class Proxy:
    """A server in a thread of its own; `asked` lists what it was asked to reach."""

    scheme: ClassVar[str]

    def __init__(self, to: str, *, password: str | None = None) -> None:
        target = urlsplit(to)
        self.to = (target.hostname or "", target.port or 0)
        self.password = password
        self.asked: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._wait(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self.serve(reader, writer)
        except (OSError, EOFError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes = b"") -> None:
        """Pass bytes on in both directions until one side ends."""
        there_reader, there_writer = await asyncio.open_connection(*self.to)
        there_writer.write(first)
        both = [asyncio.create_task(_copy(reader, there_writer)), asyncio.create_task(_copy(there_reader, writer))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            there_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


class HttpProxy(Proxy):
    scheme = "http"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, address, _ = head.split(b"\r\n")[0].split(b" ")
        self.asked.append(f"{method.decode()} {address.decode()}")
        if self.password is not None:
            wanted = b"Basic " + base64.b64encode(f"user:{self.password}".encode())
            if wanted not in head:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
                return
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await self.tunnel(reader, writer)
        else:
            path = urlsplit(address.decode()).path.encode()
            await self.tunnel(reader, writer, head.replace(address, path, 1))


class Socks5Proxy(Proxy):
    scheme = "socks5"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        chosen = 2 if self.password is not None else 0
        writer.write(bytes([5, chosen if chosen in methods else 255]))
        if chosen not in methods:
            await writer.drain()
            return
        if self.password is not None and not await self._known(reader, writer, self.password):
            return
        _, _, _, kind = await reader.readexactly(4)
        host = await self._host(reader, kind)
        port = int.from_bytes(await reader.readexactly(2))
        self.asked.append(f"{host}:{port}")
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        await self.tunnel(reader, writer)

    async def _known(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, password: str) -> bool:
        _, length = await reader.readexactly(2)
        await reader.readexactly(length)
        given = await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(bytes([1, 0 if given == password.encode() else 1]))
        await writer.drain()
        return given == password.encode()

    async def _host(self, reader: asyncio.StreamReader, kind: int) -> str:
        if kind == 3:
            return (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
        return socket.inet_ntop(family, await reader.readexactly(size))
