"""GET and POST /v1/knowledge, GET /v1/knowledge/{note_id}, and the page of a note."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from python_multipart.multipart import parse_options_header
from starlette.responses import Response

from app import knowledge
from app.errors import MalformedBody, RequestTooLarge, UnsupportedMedia
from app.problems import problem_of
from app.routes.documented import problems, refuse_query
from app.schemas_knowledge import KnowledgeAnswer, NoteAdded, NoteAnswer, NoteLinks
from app.service import service_of
from app.web.notes import note_page
from app.web.pages import failed_page, page_response
from knowledge_base.note import MAX_NOTE_BYTES
from knowledge_base.retrieve import MAX_RESULTS
from projector.errors import ShardwiseError

NOTE_TYPE = "text/markdown"
EITHER = "only notes on any of these causes or levers; may be repeated"
UNAVAILABLE = {"status_503": "The knowledge store is busy or not there, or a stored note is broken"}
CREATED: dict[str, Any] = {"model": NoteAdded, "description": "The note is new"}
REPLACED: dict[str, Any] = {"model": NoteAdded, "description": "The note replaced a user note of the same id"}
REFUSED = {
    "status_400": "The body is not UTF-8",
    "status_413": "The note is too large, or there are too many",
    "status_415": f"The content type is not {NOTE_TYPE}",
    "status_422": "Not a note, numbers that do not recompute, unknown names, or the id of a bundled note",
}
BODY = {
    "required": True,
    "description": "one note: typed front matter and five sections",
    "content": {NOTE_TYPE: {"schema": {"type": "string"}}},
}

router = APIRouter(tags=["knowledge"], dependencies=[Depends(refuse_query)])
pages = APIRouter(include_in_schema=False)


@router.get(
    "/v1/knowledge",
    responses=problems(status_422="A parameter that is out of range, or names what nobody knows", **UNAVAILABLE),
)
def get_knowledge(
    request: Request,
    query: Annotated[str, Query(description="what is slow, in words")],
    phase: Annotated[str | None, Query(description="training or serving; left out: both")] = None,
    causes: Annotated[tuple[str, ...], Query(description=EITHER)] = (),
    levers: Annotated[tuple[str, ...], Query(description=EITHER)] = (),
    hardware_kind: Annotated[str | None, Query(description="gpu or tpu; left out: both")] = None,
    k: Annotated[int, Query(ge=1, le=MAX_RESULTS, description="notes at most")] = knowledge.DEFAULT_K,
) -> KnowledgeAnswer:
    """The notes nearest to a query, each with its nearest passage and its public sources."""
    base = service_of(request).knowledge.get()
    return knowledge.search(base, query, phase=phase, causes=causes, levers=levers, hardware_kind=hardware_kind, k=k)


@router.post(
    "/v1/knowledge",
    status_code=201,
    responses={201: CREATED, 200: REPLACED, **problems(**REFUSED, **UNAVAILABLE)},
    openapi_extra={"requestBody": BODY},
)
async def post_note(request: Request, response: Response) -> NoteAdded:
    """Add a note, or replace one that was added before; it is checked, stored and can be retrieved at once."""
    text = await _note_text(request)
    added = await asyncio.to_thread(knowledge.add_note, service_of(request).knowledge, text)
    response.status_code = 201 if added.created else 200
    response.headers["Location"] = added.links.self
    return added


@router.get(
    "/v1/knowledge/{note_id}",
    responses=problems(
        status_404="No such note; the nearest ids are in `nearest`",
        status_422="A query parameter that nobody knows",
        status_503="The stored note is broken",
    ),
)
def get_note(request: Request, note_id: str) -> NoteAnswer:
    """One note: front matter, sections and worked number."""
    stored = service_of(request).knowledge.shelf.get(note_id)
    return NoteAnswer(note=stored.note, origin=stored.origin, links=NoteLinks.of(stored.note.id))


@pages.get("/knowledge/{note_id}")
def get_note_page(request: Request, note_id: str) -> Response:
    """One note as a page to read."""
    try:
        stored = service_of(request).knowledge.shelf.get(note_id)
    except ShardwiseError as error:
        return page_response(failed_page(problem_of(error, request.url.path)), error.http_status)
    return page_response(note_page(stored))


async def _note_text(request: Request) -> str:
    """The body as text. UnsupportedMedia, RequestTooLarge, MalformedBody."""
    media_type, _ = parse_options_header(request.headers.get("content-type"))
    # a type that a page of another site cannot send without asking first
    if media_type.decode("latin-1") != NOTE_TYPE or request.headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedMedia("a note is plain markdown", hint=f"send it with Content-Type: {NOTE_TYPE}")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_NOTE_BYTES:
            raise RequestTooLarge(f"note of at least {len(body)} bytes > {MAX_NOTE_BYTES}", hint="split it into notes")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedBody(f"the note is not UTF-8 at byte {error.start}") from error
