"""The audit log: only appended, one chain over days and processes, bounded, without keys, honest about tampering."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr

from app import audit
from app.audit import AuditLog
from app.errors import NotFound

RUN = UUID(int=7)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 23, 59, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock) -> AuditLog:
    return AuditLog(tmp_path / "audit", clock)


def lines(folder: Path, day: str = "2026-01-01") -> list[str]:
    return (folder / "audit" / f"{day}.jsonl").read_text().splitlines()


def test_lines_come_back_in_order_with_their_hashes_chained(log):
    for number in range(3):
        log.run(RUN).record("step", {"number": number})
    log.run(uuid4()).record("step", {"number": 99})
    records = log.records(RUN)
    assert [record.data["number"] for record in records] == [0, 1, 2]
    assert [record.seq for record in records] == [1, 2, 3]
    assert [record.prev for record in records[1:]] == [record.hash for record in records[:-1]]
    assert log.check().unbroken
    assert log.check().lines == 4


def test_the_chain_goes_on_over_days_and_processes(tmp_path, clock, log):
    log.run(RUN).record("a", {})
    clock.now += timedelta(days=1)
    AuditLog(tmp_path / "audit", clock).run(RUN).record("b", {})
    log.run(RUN).record("c", {})
    assert [len(lines(tmp_path, day)) for day in ("2026-01-01", "2026-01-02")] == [1, 2]
    assert log.check() == audit.AuditCheck(lines=3, unbroken=True)
    assert [record.kind for record in log.records(RUN)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("tamper", "place", "why"),
    [
        (lambda text: [text[0], text[1].replace("0.25", "0.52"), text[2]], 2, "its content is not what was hashed"),
        (lambda text: [text[0], text[2]], 2, "it does not continue the line before it"),
        (lambda text: [text[0], text[0], *text[1:]], 2, "it does not continue the line before it"),
        (lambda text: [text[1], text[0], text[2]], 1, "it does not continue the line before it"),
        (lambda text: text[1:], 1, "it does not continue the line before it"),
        (lambda text: [*text, "not JSON"], 4, "it is no whole line of the log"),
    ],
)
def test_tampering_shows(tmp_path, log, tamper, place, why):
    for _ in range(3):
        log.run(RUN).record("result", {"gain_frac": 0.25})
    (tmp_path / "audit" / "2026-01-01.jsonl").write_text("\n".join(tamper(lines(tmp_path))) + "\n")
    check = log.check()
    assert (check.unbroken, check.broken_at, check.why) == (False, f"2026-01-01.jsonl:{place}", why)


def test_a_line_that_a_dying_process_cut_off_does_not_take_the_next_one_with_it(tmp_path, log):
    log.run(RUN).record("a", {})
    with (tmp_path / "audit" / "2026-01-01.jsonl").open("a") as file:
        file.write('{"seq":2,"at":"20')
    log.run(RUN).record("b", {})
    assert [record.kind for record in log.records(RUN)] == ["a", "b"]
    assert log.check().why == "it is no whole line of the log"


def test_a_full_file_is_followed_by_another(tmp_path, log, monkeypatch):
    monkeypatch.setattr(audit, "FILE_LIMIT_BYTES", 10)
    for number in range(12):
        log.run(RUN).record("step", {"number": number})
    assert (tmp_path / "audit" / "2026-01-01.12.jsonl").exists()
    assert [record.data["number"] for record in log.records(RUN)] == list(range(12))
    assert log.check().unbroken


def test_what_is_too_long_is_replaced_by_its_size(log, monkeypatch):
    monkeypatch.setattr(audit, "RECORD_LIMIT_BYTES", 100)
    log.run(RUN).record("model_call", {"user": "x" * 1000})
    assert log.records(RUN)[0].data["omitted_bytes"] > 1000


@pytest.mark.parametrize("key", ["sk-mine", 'sk-"quoted"\\'])
def test_a_key_is_never_written(tmp_path, clock, key):
    log = AuditLog(tmp_path / "audit", clock, secrets=[SecretStr(key)])
    log.run(RUN).record("model_call", {"user": f"my key is {key}", key: [key]})
    (line,) = lines(tmp_path)
    assert "sk-" not in line
    assert json.loads(line)["data"]["user"] == "my key is (key)"


def test_turns_of_a_conversation_belong_to_the_plan(log):
    log.turn(RUN, "user", "Which first?")
    log.turn(RUN, "assistant", "The first.", {"evidence": ["ev-idle"]})
    assert [record.data["role"] for record in log.records(RUN)] == ["user", "assistant"]
    assert log.records(RUN)[1].data["evidence"] == ["ev-idle"]


def test_a_log_that_cannot_be_written_does_not_stop_the_run(tmp_path, clock, caplog):
    (tmp_path / "audit").write_text("a file in the way")
    AuditLog(tmp_path / "audit", clock).run(RUN).record("a", {})
    assert "could not be written" in caplog.text


def test_a_summary_is_kept_once_under_its_hash(log, tmp_path):
    digest = log.keep_summary('{"a":1}')
    assert log.keep_summary('{"a":1}') == digest
    assert log.summary(digest) == '{"a":1}'
    assert len(list((tmp_path / "audit" / "summaries").iterdir())) == 1
    with pytest.raises(NotFound):
        log.summary("0" * 64)


def test_an_unknown_run_is_told_from_an_empty_one(log):
    with pytest.raises(NotFound, match="no audit record"):
        log.records(RUN)
