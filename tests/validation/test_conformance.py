"""Every sample is read with an exact identity, or refused with a type; differences to other tools have reasons."""

import os
from pathlib import Path

import pytest

from tests.validation.peers import FILES
from tests.validation.traces_table import entry
from tests.validation.verdicts import verdicts
from traces.read import read_traces
from traces.summary import summarise

SHARED = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[3] / "shared"))
ROOT, REFERENCE = SHARED / "traces", SHARED / "reference" / "hta"
SAMPLES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file() and path.suffix != ".md")
# what no reader can make a time line of, and why
REFUSED = {
    "chakra/feeder_tests_trace.tar.gz": "TraceWithoutTimes",  # a graph with durations and without start times
    "chakra/json_trace.tar.gz": "TraceWithoutTimes",
    "param/1.1.0-chakra.0.0.4/resnet_2gpu_et.json.gz": "TraceWithoutTimes",  # its profile is not among the samples
    "param/resnet_et.json.gz": "TraceWithoutTimes",  # the profile beside it is of another process
    "xprof/tpu_inference_2.xplane.pb": "CorruptTrace",  # its bytes were replaced by a conversion to text
}

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no samples at {SHARED}; set SHARDWISE_SHARED"),
]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_read_exactly_or_refused_with_a_type(name: str) -> None:
    outcome, lines = entry(ROOT / name, ROOT)
    assert outcome == REFUSED.get(name, "read")
    assert "identity BROKEN" not in "".join(lines)


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_difference_to_another_tool_is_explained(name: str) -> None:
    for rank, file in enumerate(FILES[name]):
        (trace,) = read_traces([ROOT / file])
        assert list(verdicts(REFERENCE, name, rank, trace, summarise([trace])))
