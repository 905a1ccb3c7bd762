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


def with_files(summary: TraceSummary, *files: str) -> TraceSummary:
    """The summary as one of several ranks, in files of these names."""
    ranks = tuple(summary.ranks[0].model_copy(update={"file": file}) for file in files)
    return summary.model_copy(update={"files": files, "ranks": ranks})


def with_warning(text: str) -> TraceSummary:
    return secretive().model_copy(update={"warnings": (text,)})


def with_kernels(*names: str) -> TraceSummary:
    summary = secretive()
    top = summary.top_kernels[0]
    return summary.model_copy(update={"top_kernels": tuple(top.model_copy(update={"name": name}) for name in names)})


@pytest.mark.parametrize(
    ("told", "left"),
    [
        (
            "10.77.88.99_acme.json has the same content as 555-1234.txt: counted once",
            "X has the same content as X: counted once",
        ),
        (
            "192.168.3.4.json breaks off before its first whole event; it was left out",
            "X breaks off before its first whole event; it was left out",
        ),
        ("rank 0 comes twice: 2023-04-05/18:51:38.json is counted", "rank 0 comes twice: X is counted"),
        ("rank 0 is on 10.1.2.3:29500, from 18:51:38", "rank 0 is on X, from X"),
        ("gaps of 0.25 to 1,024 ns are 12.5% of it.", "gaps of 0.25 to 1,024 ns are 12.5% of it."),
    ],
)
def test_addresses_and_dates_in_sentences_are_replaced(told: str, left: str) -> None:
    assert re.sub(r"\bx\d+", "X", redact(with_warning(told)).warnings[1]) == left


def test_an_address_that_names_a_group_is_replaced() -> None:
    summary = secretive()
    groups = (summary.implied.groups[0].model_copy(update={"name": "10.1.2.3:29500"}),)
    implied = summary.implied.model_copy(update={"groups": groups})
    assert "29500" not in redact(summary.model_copy(update={"implied": implied})).model_dump_json()


def test_names_in_decomposed_letters_and_pictures_are_replaced() -> None:
    named = redact(with_kernels("t\u0301it\u0301an", "\U0001f999_kernel", "n\u093f")).top_kernels
    assert all(re.fullmatch(r"x\d+", kernel.name) for kernel in named)


def test_names_that_look_like_pseudonyms_stay_apart_from_them() -> None:
    summary = with_files(with_kernels("acme", "x1", "x2", "file1"), "a.json", "file1")
    redacted = redact(summary)
    assert redacted.files == ("file1", "file2")
    assert len({kernel.name for kernel in redacted.top_kernels}) == 4
    assert redacted.top_kernels[3].name == redacted.files[1]


def test_a_file_name_of_one_letter_leaves_other_words_alone() -> None:
    redacted = redact(with_files(with_kernels("gemm kernel", "e"), "e"))
    assert [kernel.name for kernel in redacted.top_kernels] == ["gemm kernel", "file1"]
    assert redacted.implied.framework == secretive().implied.framework


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


def test_a_redacted_summary_written_again_says_that_it_is_redacted() -> None:
    assert document_of(redact(secretive()), redacted=False).redacted


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
        lambda document: document["summary"]["kernel_classes"][0].update(total_ns=10**400),
        lambda document: document["summary"]["kernel_classes"][0].update(total_ns=10**15),
        lambda document: document["summary"]["kernel_classes"][0].update(count=10**30),
        lambda document: document["summary"]["collectives"][0].update(bus_bytes_per_s=1e300),
        lambda document: document["summary"]["collectives"][0].update(group_size=10**40),
        lambda document: document["summary"]["collectives"][0].update(exposed_ns=10**9),
        lambda document: document["summary"]["idle"].update(host_bound_ns=10**6),
        lambda document: document["summary"]["ranks"][0]["idle"].update(input_ns=10**6),
        lambda document: document["summary"]["ranks"][0].update(rank=-3),
        lambda document: document["summary"]["ranks"][0].update(rank=10**30),
        lambda document: document["summary"]["implied"]["world_size"].update(value=-3),
        lambda document: document["summary"]["implied"]["world_size"].update(value=0),
        lambda document: document["summary"]["implied"]["world_size"].update(value=10**30),
        lambda document: document["summary"]["implied"]["shapes"].update(hidden_size=-5),
        lambda document: document["summary"]["implied"]["shapes"].update(hidden_size=10**30),
        lambda document: document["summary"]["event_counts"].update(kernel=-1),
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
