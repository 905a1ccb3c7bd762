"""GET / : what the service does, and a form to try it with."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.service import service_of
from app.web.pages import page_response, start_page

router = APIRouter(include_in_schema=False)


@router.get("/")
async def start(request: Request) -> Response:
    """The start page."""
    return page_response(start_page(service_of(request).settings.max_upload_bytes))
