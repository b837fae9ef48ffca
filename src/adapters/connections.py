"""The HTTP transport under the SDKs, and the stream by which half a body is not lost. Imported only with an SDK.

`ConnectionStack` replaces httpx2's pool, which looks at all its connections for every request. With 64 of them that
is more work than everything else together. A stack of one-connection transports has nothing to look through
(docs/bench.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx2

ONE = httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=30.0)


class Tee(httpx2.AsyncByteStream):
    """A response stream that keeps what passes through it."""

    def __init__(self, stream: httpx2.AsyncByteStream, chunks: list[bytes]) -> None:
        self._stream = stream
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._chunks.append(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Returning(httpx2.AsyncByteStream):
    """A response stream that gives its connection back, once, when it is closed."""

    def __init__(self, stream: httpx2.AsyncByteStream, give_back: Callable[[], None]) -> None:
        self._stream = stream
        self._give_back: Callable[[], None] | None = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            if self._give_back:
                self._give_back()
                self._give_back = None


class ConnectionStack(httpx2.AsyncBaseTransport):
    """As many connections as there are calls at once, each used by one call at a time, the last used first."""

    def __init__(self) -> None:
        self._context = httpx2.create_ssl_context()
        self._idle: list[httpx2.AsyncHTTPTransport] = []
        self._all: list[httpx2.AsyncHTTPTransport] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        connection = self._idle.pop() if self._idle else self._new()
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            self._idle.append(connection)
            raise
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        response.stream = _Returning(stream, lambda: self._idle.append(connection))
        return response

    def _new(self) -> httpx2.AsyncHTTPTransport:
        connection = httpx2.AsyncHTTPTransport(verify=self._context, limits=ONE)
        self._all.append(connection)
        return connection

    async def aclose(self) -> None:
        for connection in self._all:
            await connection.aclose()
