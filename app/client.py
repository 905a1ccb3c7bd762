"""A small client of the service, for the commands that talk to one."""

import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from agents.request import PlanRequest
from app.errors import ServiceFailed
from app.schemas import PlanAnswer
from app.schemas_messages import MessageAnswer
from projector.breakdown import MemoryBreakdown

ASK_AGAIN_S = 1.0
TIMEOUT_S = 120.0


def post_trace(base_url: str, trace: Path, request: PlanRequest) -> PlanAnswer:
    """POST a trace and wait for its plan; ServiceFailed with the problem's text when there is none."""
    with httpx.Client(base_url=base_url, timeout=TIMEOUT_S) as client, trace.open("rb") as file:
        form = {"request": request.model_dump_json()}
        response = client.post("/v1/plans", data=form, files={"trace": (trace.name, file)})
        while response.status_code == httpx.codes.ACCEPTED:
            time.sleep(ASK_AGAIN_S)
            response = client.get(response.headers["Location"])
        if response.status_code != httpx.codes.OK:
            raise ServiceFailed(f"the service answered {response.status_code}: {response.text[:500]}")
        return PlanAnswer.model_validate(_without_derived(response.json()))


def post_message(base_url: str, plan_id: str, text: str) -> MessageAnswer:
    """Say something about a plan of the service and wait for the answer; ServiceFailed where there is none."""
    with httpx.Client(base_url=base_url, timeout=TIMEOUT_S) as client:
        try:
            response = client.post(f"/v1/plans/{quote(plan_id, safe='')}/messages", json={"text": text})
            while response.status_code == httpx.codes.ACCEPTED:
                time.sleep(ASK_AGAIN_S)
                response = client.get(response.headers["Location"])
        except httpx.HTTPError as error:
            raise ServiceFailed(
                f"no service answers at {base_url}: {error}", hint="start it: shardwise serve"
            ) from error
        if response.status_code != httpx.codes.OK:
            raise ServiceFailed(f"the service answered {response.status_code}: {response.text[:500]}")
        return MessageAnswer.model_validate(response.json())


def _without_derived(document: Any) -> Any:
    """The document without the sums that MemoryBreakdown derives: a record refuses keys that are not its own."""
    if isinstance(document, list):
        return [_without_derived(item) for item in document]
    if not isinstance(document, dict):
        return document
    derived = MemoryBreakdown.model_computed_fields if "capacity_bytes" in document else ()
    return {key: _without_derived(value) for key, value in document.items() if key not in derived}
