"""What `shardwise project` says of the work besides its sizes: adapters, and documents in its rows."""

import argparse

import pytest

from app.commands.described import workload_of
from app.commands.project import add_arguments
from app.validation import InvalidRequest
from projector.errors import InvalidDescription
from projector.specs.workload import WorkloadSpec

SIZES = "--model llama-3.1-8b --chip h100-sxm --chips 1 --plan dp=1 --seq-len 4096 --global-batch 8"


def workload(options: str) -> WorkloadSpec:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return workload_of(parser.parse_args([*SIZES.split(), *options.split()]))


def test_all_weights_and_whole_rows_unless_told_otherwise() -> None:
    found = workload("")
    assert (found.adapter, found.lengths) == (None, None)


def test_adapters_by_rank_projections_and_dtype() -> None:
    adapter = workload("--lora-rank 8 --lora-targets query,value --frozen-dtype fp4").adapter
    assert adapter is not None
    assert (adapter.rank, adapter.targets, adapter.frozen_dtype) == (8, ("query", "value"), "fp4")


def test_documents_by_their_mean_and_percentile() -> None:
    packed, padded = workload("--packed 600,1500").lengths, workload("--padded 600").lengths
    assert packed is not None
    assert padded is not None
    assert (packed.rows, packed.mean_tokens, packed.p95_tokens) == ("packed", 600, 1500)
    assert (padded.rows, padded.mean_tokens, padded.p95_tokens) == ("padded", 600, None)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ("--lora-targets query", InvalidDescription, "without --lora-rank"),
        ("--lora-rank 0", InvalidRequest, "rank"),
        ("--packed many", InvalidRequest, "mean_tokens"),
        ("--packed 9000", InvalidRequest, "do not fit rows of seq_len 4096"),
    ],
)
def test_what_is_wrong_is_named(options: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        workload(options)
