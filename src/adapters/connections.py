"""The HTTP transport under the SDKs, and a stream that keeps a partial body. Imported only with an SDK.

The SDKs build their requests with httpx2. Its own transport takes nearly half of the CPU of a call, so aiohttp sends
them instead (docs/decisions/0030). Nothing is added to a request and nothing is taken from a response: what the SDK
sees, and what is journaled, are the same bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import httpx2
from yarl import URL

IDLE_S = 30.0
LARGEST_HEADER = 65_536
"""Of one line. aiohttp's own limit is 8,190, which some gateways pass."""
Response = httpx2.Response
OWN_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""What aiohttp would add."""


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


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Raise what httpx2 would have raised, for the SDKs and for `classify`; its cause stays in the chain."""
    try:
        yield
    except aiohttp.ClientHttpProxyError as error:
        raise httpx2.ProxyError(f"{error.status} {error.message}") from error
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
        raise httpx2.UnsupportedProtocol("this address cannot be used") from error
    except aiohttp.ClientConnectorError as error:
        raise httpx2.ConnectError(str(error)) from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientResponseError) as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
    except (aiohttp.ClientError, OSError) as error:
        raise httpx2.NetworkError(str(error)) from error
    except ValueError as error:  # a header that cannot be sent
        raise httpx2.LocalProtocolError("the request cannot be sent") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "aiohttp_socks":  # not imported unless a proxy needs it
            raise
        wants_password = "authentication" in str(error).lower()
        raise httpx2.ProxyError(f"407 {error}" if wants_password else str(error)) from error


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        """A connection whose response was read to its end has been released; any other is closed."""
        self._response.close()


class Connections(httpx2.AsyncBaseTransport):
    """As many connections as there are concurrent calls. The time limit is the caller's, for the whole attempt."""

    def __init__(self, proxy: str | None = None) -> None:
        self._proxy = proxy
        self._options: Any = {"limit": 0, "keepalive_timeout": IDLE_S, "ssl": httpx2.create_ssl_context()}
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        session = self._session = self._session or self._opened()
        with _httpx_errors():
            response = await session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=[
                    (name.decode(), value.decode("utf-8", "replace"))
                    for name, value in request.headers.raw
                    if name.lower() != b"transfer-encoding"  # a body is read first, and so has a length
                ],
                data=await request.aread() or None,
                allow_redirects=False,
            )
        # A cookie of one response would be sent with all later calls.
        headers = [(name, value) for name, value in response.raw_headers if name.lower() != b"set-cookie"]
        return httpx2.Response(response.status, headers=headers, stream=_Body(response), request=request)

    def _opened(self) -> aiohttp.ClientSession:
        socks = self._proxy is not None and self._proxy.startswith("socks")
        return aiohttp.ClientSession(
            connector=self._socks_connector() if socks else aiohttp.TCPConnector(**self._options),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=OWN_HEADERS,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            auto_decompress=False,
            proxy=None if socks else self._proxy,
            max_line_size=LARGEST_HEADER,
            max_field_size=LARGEST_HEADER,
        )

    def _socks_connector(self) -> aiohttp.TCPConnector:
        from aiohttp_socks import ProxyConnector

        # The proxy looks up the name of the host, as with any proxy.
        address = (self._proxy or "").replace("socks5h://", "socks5://", 1)
        return ProxyConnector.from_url(address, rdns=True, **self._options)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
