"""Receiving traces and descriptions, every byte counted as it arrives. A plan request has three forms:

application/json                                the request description alone
application/octet-stream, application/gzip      one trace alone
multipart/form-data                             parts `trace` (any number) and `request` (one JSON text)

Trace bytes go straight to disk with their sha256; nothing is kept of an upload that fails.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from agents.request import PlanRequest
from app.errors import MalformedBody, RequestTooLarge, UnsupportedMedia
from app.storage.traces import IncomingTrace, StoredTrace, TraceStore
from app.validation import InvalidRequest, parse
from projector.errors import EmptyTrace, InvalidDescription, TraceTooLarge, UnknownName

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_REQUEST_BYTES = 1_000_000
MAX_TRACE_FILES = 1024
MAX_PART_OVERHEAD_BYTES = 1_000  # boundary and headers of one part, beside its content
RAW_TYPES = ("application/octet-stream", "application/gzip", "application/x-gzip")
FORMS_HINT = (
    "send multipart/form-data with parts `trace` and `request`, "
    f"or a trace as {RAW_TYPES[0]} or {RAW_TYPES[1]}, or a request as application/json"
)


@dataclass(frozen=True)
class Upload:
    """What a client sent, validated and stored."""

    request: PlanRequest
    traces: tuple[StoredTrace, ...]


@dataclass(frozen=True)
class Pair:
    """Traces of two runs on disk, and the description that came with them."""

    request: bytes
    before: tuple[IncomingTrace, ...]
    after: tuple[IncomingTrace, ...]


async def receive(request: Request, store: TraceStore, max_trace_bytes: int) -> Upload:
    """Read the body of a plan request.

    Raises UnsupportedMedia, MalformedBody, RequestTooLarge, TraceTooLarge, EmptyTrace, UnknownName, InvalidRequest,
    InvalidDescription.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise UnsupportedMedia(f"content encoding {encoding!r}", hint="send a compressed trace as application/gzip")
    media_type, options = parse_options_header(request.headers.get("content-type"))
    match media_type.decode("latin-1"):
        case "application/json":
            return await _receive_json(request)
        case "multipart/form-data":
            return await _receive_form(request, options.get(b"boundary", b""), store, max_trace_bytes)
        case raw if raw in RAW_TYPES:
            return await _receive_raw(request, store, max_trace_bytes)
        case other:
            raise UnsupportedMedia(f"content type {other!r}" if other else "no content type", hint=FORMS_HINT)


async def received_json(request: Request) -> bytes:
    """The body of a request that is one JSON text. UnsupportedMedia, RequestTooLarge."""
    media_type, _ = parse_options_header(request.headers.get("content-type"))
    if media_type != b"application/json" or request.headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedMedia(
            f"content type {media_type.decode('latin-1')!r}", hint="send the request as application/json, uncompressed"
        )
    return await _json_text(request)


async def _json_text(request: Request) -> bytes:
    body = bytearray()
    async for chunk in _limited(request, MAX_REQUEST_BYTES, RequestTooLarge):
        body += chunk
    return bytes(body)


async def _receive_json(request: Request) -> Upload:
    return Upload(parse_request(await _json_text(request)), ())


async def _receive_raw(request: Request, store: TraceStore, max_trace_bytes: int) -> Upload:
    incoming = store.receive("")
    try:
        async for chunk in _limited(request, max_trace_bytes, TraceTooLarge):
            incoming.write(chunk)
        if incoming.size_bytes == 0:
            raise EmptyTrace("the body holds no bytes", hint="curl needs --data-binary @FILE or -T FILE")
        return Upload(PlanRequest(), (incoming.commit(),))
    finally:
        incoming.discard()


async def _receive_form(request: Request, boundary: bytes, store: TraceStore, max_trace_bytes: int) -> Upload:
    async with _filled_form(request, boundary, store, max_trace_bytes, ("trace",)) as form:
        description = parse_request(bytes(form.request)) if form.request.strip() else PlanRequest()
        return Upload(description, form.commit())


@asynccontextmanager
async def received_pair(request: Request, store: TraceStore, max_trace_bytes: int) -> AsyncIterator[Pair]:
    """Read a form with parts `before`, `after` and `request`; the files are gone when the block ends.

    Raises as `receive`.
    """
    media_type, options = parse_options_header(request.headers.get("content-type"))
    if media_type != b"multipart/form-data":
        raise UnsupportedMedia(
            f"content type {media_type.decode('latin-1')!r}",
            hint="send multipart/form-data with parts `before` and `after`, and `request` where a gain was promised",
        )
    parts = ("before", "after")
    async with _filled_form(request, options.get(b"boundary", b""), store, max_trace_bytes, parts) as form:
        before, after = form.files("before"), form.files("after")
        for name, files in (("before", before), ("after", after)):
            if not files:
                raise InvalidDescription(f"no trace in a part `{name}`", hint="send at least one file a side")
        yield Pair(bytes(form.request), tuple(before), tuple(after))


@asynccontextmanager
async def _filled_form(
    request: Request, boundary: bytes, store: TraceStore, max_trace_bytes: int, file_parts: tuple[str, ...]
) -> AsyncIterator["_Form"]:
    """The whole form; what was not committed within the block is removed."""
    if not boundary:
        raise MalformedBody("multipart body without a boundary", hint="let the HTTP client set the content type")
    form = _Form(store, max_trace_bytes, file_parts)
    limit = max_trace_bytes + MAX_REQUEST_BYTES + MAX_TRACE_FILES * MAX_PART_OVERHEAD_BYTES
    try:
        try:
            parser = MultipartParser(boundary, form.callbacks())
            async for chunk in _limited(request, limit, TraceTooLarge):
                parser.write(chunk)
        except FormParserError as error:
            raise MalformedBody(f"not a multipart body: {error}", hint=FORMS_HINT) from error
        if not form.ended:
            raise MalformedBody("the multipart body ends before its last boundary", hint="the upload was cut off")
        yield form
    finally:
        form.discard()


async def _limited(
    request: Request, limit_bytes: int, error: type[RequestTooLarge] | type[TraceTooLarge]
) -> AsyncIterator[bytes]:
    """The body in chunks; raises `error` as soon as the declared or the running length passes the limit."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit_bytes:
        raise _too_large(error, int(declared), limit_bytes)
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > limit_bytes:
            raise _too_large(error, received, limit_bytes)
        yield chunk


def _too_large(
    error: type[RequestTooLarge] | type[TraceTooLarge], size_bytes: int, limit_bytes: int
) -> RequestTooLarge | TraceTooLarge:
    if error is TraceTooLarge:
        hint = "compress the trace, record fewer steps, or raise SHARDWISE_MAX_UPLOAD_BYTES"
    else:
        hint = "a request description is a few kilobytes; send a trace as application/octet-stream or in a form"
    return error(f"body of at least {size_bytes} bytes > limit of {limit_bytes} bytes", hint=hint)


def parse_request(body: bytes) -> PlanRequest:
    """The request description; InvalidRequest, or a better hint where somebody sent a trace as JSON."""
    try:
        return parse(PlanRequest, body)
    except InvalidRequest:
        if b'"traceEvents"' in body[:100_000]:
            raise InvalidDescription("this JSON is a trace, not a request", hint=FORMS_HINT) from None
        raise


class _Form:
    """Callbacks of the multipart parser: one part after the other into a file or into the request text.

    file_parts: names of the parts that hold traces; each may come more than once.
    """

    def __init__(self, store: TraceStore, max_trace_bytes: int, file_parts: tuple[str, ...]) -> None:
        self.request = bytearray()
        self.ended = False
        self._store = store
        self._limit_bytes = max_trace_bytes
        self._file_parts = file_parts
        self._trace_bytes = 0
        self._files: list[tuple[str, IncomingTrace]] = []
        self._part = ""
        self._has_request = False
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._disposition = b""

    def callbacks(self) -> "MultipartCallbacks":
        """By the parser's names."""
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": lambda data, start, end: self._header_name.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._header_value.extend(data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._data,
            "on_part_end": self._end_part,
            "on_end": self._end,
        }

    def commit(self) -> tuple[StoredTrace, ...]:
        """Store the files of the first kind of part."""
        return tuple(file.commit() for file in self.files(self._file_parts[0]))

    def files(self, part: str) -> list[IncomingTrace]:
        """Files of one kind of part. A file input that a browser left empty (no name, no bytes) is no trace."""
        given = [file for name, file in self._files if name == part and (file.name or file.size_bytes)]
        empty = next((file for file in given if file.size_bytes == 0), None)
        if empty is not None:
            raise EmptyTrace(f"the {part} part {empty.name!r} holds no bytes")
        return given

    def discard(self) -> None:
        """Remove every file that was not committed."""
        for _, file in self._files:
            file.discard()

    def _begin_part(self) -> None:
        self._disposition = b""

    def _end_header(self) -> None:
        if bytes(self._header_name).lower() == b"content-disposition":
            self._disposition = bytes(self._header_value)
        self._header_name.clear()
        self._header_value.clear()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if name in self._file_parts:
            if len(self._files) == MAX_TRACE_FILES:
                raise TraceTooLarge(
                    f"more than {MAX_TRACE_FILES} trace files in one request", hint="send them as one zip or tar"
                )
            incoming = self._store.receive(options.get(b"filename", b"").decode("utf-8", "replace"))
            self._files.append((name, incoming))
            self._part = name
        elif name == "request":
            if self._has_request:
                raise InvalidDescription("two parts named `request`", hint="send one JSON text")
            self._has_request = True
            self._part = "request"
        else:
            raise UnknownName("form field", name, (*self._file_parts, "request"))

    def _data(self, data: bytes, start: int, end: int) -> None:
        size = end - start
        if self._part in self._file_parts:
            self._trace_bytes += size
            if self._trace_bytes > self._limit_bytes:
                raise _too_large(TraceTooLarge, self._trace_bytes, self._limit_bytes)
            self._files[-1][1].write(data[start:end])
        else:
            self.request += data[start:end]
            if len(self.request) > MAX_REQUEST_BYTES:
                raise _too_large(RequestTooLarge, len(self.request), MAX_REQUEST_BYTES)

    def _end_part(self) -> None:
        if self._part in self._file_parts:
            self._files[-1][1].close()

    def _end(self) -> None:
        self.ended = True
