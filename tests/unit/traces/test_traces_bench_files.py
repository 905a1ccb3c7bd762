"""The large files of the benchmark are what they claim: the same step again and again, each copy on its own."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from tests.bench.traces_speed_files import replicate
from traces.read import read_trace
from traces.summary import summarise
from traces.trace import ABSENT

SHIPPED = Path(__file__).parents[2] / "data" / "traces"


@pytest.mark.parametrize("name", ["a100_ddp_resnet.json.gz", "b200_vllm_eager.json.gz"])
def test_a_copy_has_the_times_of_the_first_and_ids_of_its_own(name: str, tmp_path: Path) -> None:
    source, target = SHIPPED / name, tmp_path / "twice.json"
    size_bytes = len(gzip.decompress(source.read_bytes()))
    assert replicate(source, target, size_bytes + 1) == 2
    (once,), (twice,) = read_trace(source), read_trace(target)
    assert len(twice) == 2 * len(once)
    assert twice.names == once.names
    assert np.array_equal(np.sort(twice.duration_ns), np.sort(np.tile(once.duration_ns, 2)))
    for column in ("correlation", "external_id"):
        ids, ids_twice = (np.unique(getattr(trace, column)) for trace in (once, twice))
        assert len(ids_twice) - (ABSENT in ids_twice) == 2 * (len(ids) - (ABSENT in ids))
    shares, shares_twice = summarise([once]), summarise([twice])
    for term in ("compute_ns", "communication_ns", "copy_ns", "exposed_communication_ns"):
        assert getattr(shares_twice, term) == 2 * getattr(shares, term)
