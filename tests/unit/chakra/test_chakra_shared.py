"""Chakra files of the sample folder: both forms hold durations and dependencies, and no start time."""

import os
import tarfile
from pathlib import Path

import pytest

from projector.errors import TraceWithoutTimes
from tests.unit.chakra.chakra_examples import LIMITS
from traces.content import Content
from traces.read import find_reader

SHARED = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[4] / "shared")) / "traces" / "chakra"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.is_dir(), reason="needs the sample folder (SHARDWISE_SHARED)"),
]


@pytest.mark.parametrize(
    ("archive", "member", "told"),
    [
        ("feeder_tests_trace.tar.gz", "chakra.0.et", r"nodes: 3,664\) of dependencies and durations, 381,795 us"),
        ("json_trace.tar.gz", "chakra.0.json", r"nodes: 3,664\) of dependencies and durations, 381,795 us"),
        ("json_trace.tar.gz", "small_chakra.0.json", r"nodes: 7\) of dependencies and durations, 695 us"),
    ],
)
def test_samples_are_graphs_without_times(archive: str, member: str, told: str) -> None:
    with tarfile.open(SHARED / archive) as files:
        name = next(one for one in files.getnames() if Path(one).name == member)
        extracted = files.extractfile(name)
        assert extracted is not None
        content = Content(member, extracted.read())
    reader = find_reader(content)
    assert reader.name == "chakra"
    with pytest.raises(TraceWithoutTimes, match=told):
        reader.read(content, LIMITS)
