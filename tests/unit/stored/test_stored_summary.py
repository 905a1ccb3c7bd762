"""Summaries as documents: what a redacted one keeps, and what a forged one is refused for."""

import json
import re
from typing import Any

import pytest

from projector.errors import CorruptTrace, UnsupportedTrace
from tests.unit.traces.trace_examples import annotation, kernel, launch, memcpy, op, trace_of
from tests.validation.write_vocabulary import WORDS, words
from traces.content import Content
from traces.stored.document import document_of, is_summary, read_summary_document
from traces.stored.redact import redact, vocabulary
from traces.summary import summarise
from traces.summary_types import TraceSummary

SECRETS = ("zephyr", "acme", "hostname42", "quokka", "10.1.2.3")


def secretive() -> TraceSummary:
    """A trace with somebody's name in every place a trace can hold one."""
    trace = trace_of(
        annotation("ProfilerStep#3", 0, 100),
        annotation("zephyr.forward", 0, 50),
        op("acme::zephyr_attention", 1, 4),
        launch(1, 2),
        kernel("void acme::quokka_gemm<Zephyr42>(int)", 10, 20, correlation=1, External_id=1),
        kernel(
            "ncclDevKernel_AllReduce_Sum_bf16",
            30,
            5,
            **{
                "Collective name": "allreduce",
                "Process Group Name": "acme_tp",
                "Process Group Description": "quokka tensor_parallel",
                "Group size": 8,
                "dtype": "BFloat16",
                "In msg nelems": 1024,
            },
        ),
        memcpy(40, 2),
        {"ph": "X", "cat": "acme_category", "name": "quokka", "ts": 1, "dur": 2, "pid": 0, "tid": 0},
        distributedInfo={
            "rank": 3,
            "world_size": 8,
            "pg_config": [{"pg_name": "acme_tp", "pg_desc": "quokka", "pg_size": 8, "ranks": [0, 1]}],
        },
        deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_000_000_000}],
        traceName="/home/acme/zephyr.json",
        host_name="hostname42",
    )
    summary = summarise([trace])
    named = "10.1.2.3_zephyr.pt.trace.json"
    return TraceSummary.model_validate_json(summary.model_dump_json().replace("example.json", named))


def test_no_foreign_word_survives() -> None:
    text = redact(secretive()).model_dump_json().lower()
    assert not [secret for secret in SECRETS if secret in text]


def test_every_identifier_left_is_ours_or_a_pseudonym() -> None:
    redacted = redact(secretive()).model_dump(mode="json")
    redacted["implied"].pop("chip_name")
    for identifier in re.findall(r"\w+", json.dumps(redacted)):
        runs = re.findall(r"[a-z]+", identifier.lower())
        assert re.fullmatch(r"x\d+|file\d+", identifier) or set(runs) <= vocabulary(), identifier


def test_numbers_and_structure_stay() -> None:
    before, after = secretive(), redact(secretive())
    for field in ("window_ns", "compute_ns", "communication_ns", "idle_ns", "kernel_classes", "classification"):
        assert getattr(before, field) == getattr(after, field)
    assert [(one.axis, one.total_ns, one.group_size) for one in before.collectives] == [
        (one.axis, one.total_ns, one.group_size) for one in after.collectives
    ]
    assert after.implied.chip_name == before.implied.chip_name


def test_equal_names_stay_equal() -> None:
    redacted = redact(secretive())
    (group,) = redacted.implied.groups
    assert group.name == redacted.collectives[0].group


def test_redacting_twice_changes_nothing() -> None:
    once = redact(secretive())
    assert redact(once) == once


def test_a_document_comes_back_as_it_was_written() -> None:
    for redacted in (False, True):
        written = document_of(secretive(), redacted=redacted)
        content = Content("summary.json", written.model_dump_json().encode())
        assert is_summary(content)
        assert read_summary_document(content) == written


def forged(change: Any) -> Content:
    document = json.loads(document_of(secretive(), redacted=False).model_dump_json())
    change(document)
    return Content("forged.json", json.dumps(document).encode())


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["summary"].update(compute_ns=1),
        lambda document: document["summary"]["ranks"][0].update(idle_ns=-1),
        lambda document: document["summary"]["ranks"][0].update(exposed_copy_ns=10**9),
        lambda document: document["summary"].update(ranks=[]),
        lambda document: document["summary"].update(surprise=1),
        lambda document: document.pop("summary"),
        lambda document: document["summary"].update(unclassified_ns=float("nan")),
    ],
)
def test_a_forged_document_is_refused(change: Any) -> None:
    with pytest.raises(CorruptTrace):
        read_summary_document(forged(change))


def test_another_version_is_named() -> None:
    with pytest.raises(UnsupportedTrace, match="version 7"):
        read_summary_document(forged(lambda document: document.update(shardwise_summary=7)))


@pytest.mark.parametrize("text", ['{"shardwise_summary": 1', '{"shardwise_summary": [[', '{"shardwise_summary": {}}'])
def test_broken_documents(text: str) -> None:
    with pytest.raises((CorruptTrace, UnsupportedTrace)):
        read_summary_document(Content("broken.json", text.encode()))


def test_the_vocabulary_is_that_of_the_source() -> None:
    assert WORDS.read_text("ascii") == words(), "run: python -m tests.validation.write_vocabulary"
