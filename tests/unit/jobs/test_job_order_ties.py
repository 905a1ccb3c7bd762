"""Files that say the same of one device: which one counts does not depend on the order they were given in."""

from itertools import permutations

from tests.unit.jobs.job_examples import parts_of
from tests.unit.traces.trace_examples import annotation, kernel
from traces.merge import merge_parts


def test_files_alike_on_one_device_are_told_apart_by_all_their_devices() -> None:
    step, first = annotation("ProfilerStep#1", 0, 50), kernel("nvjet", 0, 5)
    files = [
        parts_of("a.json", step, first, kernel("nvjet", 0, 5 + number), rank=0, source=number) for number in range(2)
    ]
    files.append(parts_of("a.json", step, first, kernel("odd", 0, 9, device=1), rank=0, source=2))
    found = [merge_parts([part for file in order for part in file]) for order in permutations(files)]
    assert all(summary == found[0] for summary in found)


def test_what_only_the_world_size_tells_apart_is_told_apart() -> None:
    files = [parts_of("a.json", kernel("nvjet", 0, 5), rank=1, world=world, source=world or 0) for world in (None, 4)]
    assert merge_parts(files[0] + files[1]) == merge_parts(files[1] + files[0])
