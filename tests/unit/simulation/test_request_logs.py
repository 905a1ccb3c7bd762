"""Recorded logs: three forms, and every way in which one can be wrong."""

from pathlib import Path

import pytest

from agents import request_logs
from agents.request_logs import read_log
from projector.errors import InvalidDescription

LOGS = Path(__file__).parents[2] / "data/request_logs"


def test_a_mooncake_log_has_times_in_milliseconds_and_blocks() -> None:
    read = read_log((LOGS / "sessions.jsonl").read_bytes())
    log = read.log
    assert (len(log), read.notes) == (60, ())
    assert all(len(blocks) == -(-tokens // 512) for blocks, tokens in zip(log.blocks, log.input_tokens, strict=True))
    first = read_log(b'{"timestamp": 1500, "input_length": 600, "output_length": 3, "hash_ids": [7, 8]}\n').log
    assert (first.arrival_s[0], first.input_tokens[0], first.output_tokens[0]) == (1.5, 600, 3)
    assert first.blocks == ((7, 8),)


def test_csv_logs_go_by_their_header() -> None:
    azure = read_log((LOGS / "azure_style.csv").read_bytes()).log
    plain = read_log((LOGS / "plain.csv").read_bytes()).log
    assert (len(azure), len(plain), azure.blocks) == (40, 40, ())
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50,396,109\n"
    found = read_log(text.encode()).log
    assert found.arrival_s[1] - found.arrival_s[0] == pytest.approx(50 - 46.68059)


def test_columns_nobody_reads_and_an_order_that_is_made_are_told() -> None:
    text = "user,arrival_s,input_tokens,output_tokens\r\nb,2,20,2\r\na,1,10,1\r\n\r\n"
    read = read_log(text.encode())
    assert read.notes == (
        "of the log is not read: 'user'",
        "the log is not in order of arrival: it was put in order",
    )
    assert read.log.input_tokens.tolist() == [10, 20]
    other = read_log(b'{"timestamp": 0, "input_length": 5, "output_length": 1, "chat_id": 3}')
    assert other.notes == ("of the log is not read: 'chat_id'",)


GOOD = '{"timestamp": 0, "input_length": 5, "output_length": 1}\n'
HEADER = "arrival_s,input_tokens,output_tokens\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no request"),
        (HEADER, "no request"),
        ("\xff\xfe", "header of the log has no"),
        ("a,b\n1,2\n", "header of the log has no arrival_s, input_tokens, output_tokens"),
        ("TIMESTAMP,ContextTokens\n", "header of the log has no GeneratedTokens"),
        ("arrival_s,arrival_s,input_tokens,output_tokens\n1,1,1,1\n", "arrival_s more than once"),
        (HEADER + "1,2\n", "line 2 of the log has 2 cells, its header 3"),
        (HEADER + "1,2,3\nx,2,3\n", "line 3 of the log: arrival_s 'x' is no number"),
        (HEADER + "-1,2,3\n", "line 2 of the log: arrival_s -1 is below 0"),
        (HEADER + "inf,2,3\n", "arrival_s 'inf' is no number"),
        (HEADER + "1,0,3\n", "input_tokens 0 is no number of tokens"),
        (HEADER + "1,2.5,3\n", "input_tokens 2.5 is no number of tokens"),
        (HEADER + "1,2,1e300\n", "output_tokens 1e+300 is no number of tokens"),
        (HEADER + '1,"2,3\n', "line 2 of the log is no CSV"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,1,1\n", "line 2 of the log: TIMESTAMP 'noon' is no time"),
        (GOOD + "{]\n", "line 2 of the log is no JSON object"),
        (GOOD + "[1]\n", "line 2 of the log is no JSON object"),
        (GOOD + '{"timestamp": 0}\n', "line 2 of the log has no input_length, output_length"),
        (GOOD + '{"timestamp": true, "input_length": 5, "output_length": 1}', "timestamp 'True' is no number"),
        (GOOD + '{"timestamp": NaN, "input_length": 5, "output_length": 1}', "timestamp 'nan' is no number"),
        (
            GOOD + '{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}',
            "line 2 of the log has hash",
        ),
        (GOOD[:-2] + ', "hash_ids": [1, 2]}', "2 hash_ids for 5 tokens in blocks of 512, not 1"),
        (GOOD[:-2] + ', "hash_ids": ["a"]}', "no list of whole numbers"),
        ("{" + "[" * 100_000, "line 1 of the log is no JSON object"),
    ],
)
def test_a_line_that_is_wrong_is_named(text: str, told: str) -> None:
    with pytest.raises(InvalidDescription) as caught:
        read_log(text.encode())
    assert told in caught.value.message


def test_limits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidDescription, match="no UTF-8"):
        read_log(b"\xff\xfe\x00")
    monkeypatch.setattr(request_logs, "MOST_REQUESTS", 2)
    with pytest.raises(InvalidDescription, match="more than 2 requests"):
        read_log((GOOD * 3).encode())
    monkeypatch.setattr(request_logs, "MOST_LINE_CHARACTERS", 20)
    with pytest.raises(InvalidDescription, match="line 1 of the log has"):
        read_log(GOOD.encode())
    monkeypatch.setattr(request_logs, "MOST_LOG_BYTES", 10)
    with pytest.raises(InvalidDescription, match="passes the limit of 10"):
        read_log(GOOD.encode())
