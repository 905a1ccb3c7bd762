"""GET /v1/plans/{id}/audit, and `shardwise audit` on the same log."""

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from app.audit import AuditLog
from app.cli import main

PLAN = UUID(int=5)


def written(folder: Path) -> AuditLog:
    log = AuditLog(folder / "audit", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    log.run(PLAN).record("request", {"request": {"advisor": "rules"}, "summary_sha256": None})
    log.turn(PLAN, "user", "Which <b>first</b>?")
    return log


async def test_the_records_of_a_plan_are_answered_line_by_line(serve, tmp_path):
    written(tmp_path / "data")
    async with serve() as client:
        answer = (await client.get(f"/v1/plans/{PLAN}/audit")).json()
    assert answer["id"] == str(PLAN)
    assert [record["kind"] for record in answer["records"]] == ["request", "turn"]
    assert answer["records"][1]["prev"] == answer["records"][0]["hash"]


async def test_a_plan_without_a_record_is_not_found(serve):
    async with serve() as client:
        response = await client.get(f"/v1/plans/{PLAN}/audit")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


async def test_a_service_that_keeps_no_log_says_so(serve):
    async with serve(audit=False) as client:
        response = await client.get(f"/v1/plans/{PLAN}/audit")
    assert response.status_code == 404
    assert "keeps no audit log" in response.json()["detail"]


async def test_a_job_is_recorded_under_the_id_of_its_plan(serve, planner):
    async with serve() as client:
        answer = (await client.post("/v1/plans", json={})).json()
    assert [str(plan_id) for plan_id in planner.plan_ids] == [answer["id"]]


def test_the_command_lists_shows_and_checks(tmp_path, capsys):
    written(tmp_path)
    data_dir = ["--data-dir", str(tmp_path)]
    assert main(["audit", "list", *data_dir]) == 0
    assert str(PLAN) in capsys.readouterr().out
    assert main(["audit", "show", str(PLAN), "--json", *data_dir]) == 0
    assert len(json.loads(capsys.readouterr().out)["records"]) == 2
    assert main(["audit", "check", *data_dir]) == 0
    assert "unbroken" in capsys.readouterr().out
    (file,) = (tmp_path / "audit").glob("*.jsonl")
    file.write_text(file.read_text().replace("rules", "llm"))
    assert main(["audit", "check", *data_dir]) == 1
    assert "broken at 2026-01-01.jsonl:1" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "code"), [("no-uuid", 2), (str(UUID(int=9)), 2)])
def test_an_id_that_is_none_is_told(tmp_path, capsys, name, code):
    assert main(["audit", "show", name, "--data-dir", str(tmp_path)]) == code
    assert "audit list" in capsys.readouterr().err


def test_a_run_that_never_answered_cannot_be_replayed(tmp_path, capsys):
    written(tmp_path)
    assert main(["audit", "replay", str(PLAN), "--data-dir", str(tmp_path)]) == 2
    assert "without an answer" in capsys.readouterr().err
