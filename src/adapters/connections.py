"""The HTTP transport under the SDKs, and a stream that keeps a partial body. Imported only with an SDK.

`ConnectionStack` replaces httpx2's connection pool, which checks all its connections on every request. With 64 of them,
that takes longer than everything else together. A stack of transports with one connection each has nothing to search
(docs/bench.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx2

ONE = httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=30.0)


class Tee(httpx2.AsyncByteStream):
    """A response stream that keeps a copy of its chunks."""

    def __init__(self, stream: httpx2.AsyncByteStream, chunks: list[bytes]) -> None:
        self._stream = stream
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._chunks.append(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Releasing(httpx2.AsyncByteStream):
    """A response stream that releases its connection once, when it is closed."""

    def __init__(self, stream: httpx2.AsyncByteStream, release: Callable[[], None]) -> None:
        self._stream = stream
        self._release: Callable[[], None] | None = release

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            if self._release:
                self._release()
                self._release = None


class ConnectionStack(httpx2.AsyncBaseTransport):
    """As many connections as there are concurrent calls; each serves one call at a time, the last used first."""

    def __init__(self, proxy: str | None = None) -> None:
        self._context = httpx2.create_ssl_context()
        self._proxy = proxy
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
        response.stream = _Releasing(stream, lambda: self._idle.append(connection))
        return response

    def _new(self) -> httpx2.AsyncHTTPTransport:
        connection = httpx2.AsyncHTTPTransport(verify=self._context, limits=ONE, proxy=self._proxy)
        self._all.append(connection)
        return connection

    async def aclose(self) -> None:
        for connection in self._all:
            await connection.aclose()
