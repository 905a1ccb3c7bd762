"""The OpenAPI document says what the service does: forms, units, problems."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.openapi import number_fields
from app.units_doc import unit_of


@pytest.fixture
async def document(client) -> dict[str, Any]:
    return (await client.get("/openapi.json")).json()


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


async def test_every_reference_leads_somewhere_and_every_record_is_used(document) -> None:
    records = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) == records


async def test_every_number_says_its_unit(document) -> None:
    fields = list(number_fields(document["components"]["schemas"]))
    assert len(fields) > 100
    assert [f"{owner}.{name}" for owner, name, field in fields if "x-unit" not in field] == []


@pytest.mark.parametrize(
    ("field", "unit"),
    [
        ("step_time_s", "s"),
        ("tokens_per_s_per_chip", "tokens/s/chip"),
        ("total_bytes", "bytes"),
        ("window_ns", "ns"),
        ("wait", "s"),
        ("mfu_frac", "fraction"),
        ("colour", None),
    ],
)
def test_a_unit_is_read_off_the_name(field, unit) -> None:
    assert unit_of(field) == unit


async def test_the_three_forms_of_a_request_are_documented(document) -> None:
    forms = document["paths"]["/v1/plans"]["post"]["requestBody"]["content"]
    assert set(forms) == {
        "multipart/form-data",
        "application/octet-stream",
        "application/gzip",
        "application/x-gzip",
        "application/json",
    }
    assert forms["application/json"]["schema"] == {"$ref": "#/components/schemas/PlanRequest"}


async def test_every_error_is_documented_as_a_problem(document) -> None:
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    errors = [
        (operation["operationId"], status, response)
        for operation in operations
        for status, response in operation["responses"].items()
        if status >= "400" and not (status == "503" and "readyz" in operation["operationId"])
        if "report" not in operation["operationId"]
    ]
    assert {status for _, status, _ in errors} == {"400", "404", "409", "413", "415", "422", "500", "503", "504"}
    for _, _, response in errors:
        assert response["content"] == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


async def test_a_report_is_documented_as_a_page_whatever_comes(document) -> None:
    responses = document["paths"]["/v1/plans/{plan_id}/report"]["get"]["responses"]
    assert set(responses) == {"200", "202", "400", "404", "413", "415", "422", "500", "503", "504"}
    for status, response in responses.items():
        expected = {"text/html"} | ({"application/problem+json"} if status == "500" else set())
        assert set(response["content"]) == expected


async def test_health_documents_its_faults(document) -> None:
    assert "500" in document["paths"]["/healthz"]["get"]["responses"]
    assert {"500", "503"} <= set(document["paths"]["/readyz"]["get"]["responses"])


async def test_an_answer_has_the_documented_keys(client, document) -> None:
    body = (await client.post("/v1/plans", json={})).json()
    assert_keys(body, {"$ref": "#/components/schemas/PlanAnswer"}, document["components"]["schemas"])


def assert_keys(value: Any, schema: dict[str, Any], records: dict[str, Any]) -> None:
    """Every object of `value` has exactly the keys that its record declares."""
    alternatives = schema.get("anyOf", [schema])
    schema = next((s for s in alternatives if s.get("type") != "null"), schema) if value is not None else {}
    if "$ref" in schema:
        record = records[schema["$ref"].rsplit("/", 1)[1]]
        if isinstance(value, dict) and "properties" in record:
            assert set(value) == set(record["properties"])
            for key, inner in value.items():
                assert_keys(inner, record["properties"][key], records)
    elif isinstance(value, list):
        for item in value:
            assert_keys(item, schema.get("items", {}), records)
