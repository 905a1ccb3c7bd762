"""HTTP for model calls that cannot be flooded: an answer without end is cut off at a number of bytes."""

import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx

# some hundred times the longest answer that is read; reasoning that providers send along is longer than the answer
MOST_REPLY_BYTES = 8_000_000


class ReplyTooLong(httpx.ReadError):
    """The endpoint sends more than any answer needs, or sends it packed, so that its size is not known."""


class BoundedStream(httpx.AsyncByteStream):
    """A response body that ends with an error past the limit."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Chunks as they come."""
        received = 0
        async for chunk in self._stream:
            received += len(chunk)
            if received > MOST_REPLY_BYTES:
                raise ReplyTooLong(f"more than {MOST_REPLY_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        """Give the connection back."""
        await self._stream.aclose()


class BoundedTransport(httpx.AsyncHTTPTransport):
    """Plain transport whose responses are bounded and never compressed: a few packed bytes may be gigabytes."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request."""
        request.headers["accept-encoding"] = "identity"
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.stream.aclose()
            raise ReplyTooLong("a compressed answer")
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=BoundedStream(response.stream),
            extensions=response.extensions,
        )


def bounded_transport(
    ssl_context: ssl.SSLContext | None = None, ssl_verify: bool | None = None, **_: Any
) -> BoundedTransport:
    """In place of litellm's own factory of transports, with the same certificates."""
    verify = ssl_context if ssl_context is not None else True if ssl_verify is None else ssl_verify
    return BoundedTransport(verify=verify)
