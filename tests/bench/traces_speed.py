"""What reading a trace costs, ours and other tools': `python -m tests.bench.traces_speed [SIZE_MB ...]`.

Two shipped traces, one of them with Python stacks, are replicated to files of each size. Each tool reads each of them
in a process of its own; its CPU seconds (user and system, so that a busy machine matters less) and its peak memory are
those of the whole process, and those before the work (interpreter, imports) are told apart. Of three runs the one
with the least CPU counts. Other tools are installed, at fixed versions, into environments below `.bench/`; one that
cannot be is listed with the reason.
"""

import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.environments import Absent
from tests.bench.traces_speed_tools import (
    GUNZIP,
    HTA,
    OURS_BREAKDOWN,
    OURS_TRACE,
    ROOT,
    SIMDJSON,
    TOOLS,
    Cost,
    Tool,
    environments,
    measure,
)

SOURCES = {"no stacks": "a100_ddp_resnet.json.gz", "62 % stacks": "b200_vllm_eager.json.gz"}
SIZES_MB = (30, 100, 300)
FILES = "tests.bench.traces_speed_files"
RUNS = 3
LONG_CPU_S = 8.0
MB = 1_000_000
LEAST_FASTER_THAN_HTA = 20.0
MOST_OF_GUNZIP_AND_PARSE = 2.0
MOST_MEMORY_OF_SIZE = 0.75
MOST_GROWTH = 1.1

Costs = dict[Tool, Cost | Absent]


def run(source: Path, size_mb: int, folder: Path, pythons: Mapping[str, Path | Absent]) -> tuple[Path, Costs]:
    """The file of one size, and what each tool took for it."""
    plain = folder / f"{source.name.removesuffix('.json.gz')}_{size_mb}.json"
    packed = plain.with_suffix(".json.gz")
    # In a process of its own: a child is born with the peak memory of its parent, so this one stays small.
    subprocess.run([sys.executable, "-m", FILES, source, plain, str(size_mb * MB)], check=True, cwd=ROOT)
    return plain, {tool: least(tool, pythons[tool.title], packed if tool.packed else plain) for tool in TOOLS}


def least(tool: Tool, python: Path | Absent, file: Path) -> Cost | Absent:
    """The cheapest of a few runs, which other load on the machine disturbed least; long ones are run once."""
    best = measure(tool, python, file)
    for _ in range(RUNS - 1):
        if isinstance(best, Absent) or best.cpu_s > LONG_CPU_S:
            break
        again = measure(tool, python, file)
        best = again if isinstance(again, Absent) else min(best, again, key=lambda cost: cost.cpu_s)
    return best


def cpu_s(costs: Costs, *tools: Tool, whole: bool = True) -> float:
    """CPU seconds of the tools together, of the whole process or of the work; not a number where one has none."""
    found = [costs[tool] for tool in tools]
    return sum((cost.cpu_s if whole else cost.work_cpu_s) if isinstance(cost, Cost) else math.nan for cost in found)


def table(costs: Costs, size_bytes: int) -> list[str]:
    """A line for each tool."""
    lines = [f"{'':30}{'CPU s':>8}{'start s':>9}{'peak MB':>9}{'/ size':>8}{'/ gunzip+parse':>16}{'HTA /':>8}"]
    for tool, cost in costs.items():
        if isinstance(cost, Absent):
            lines.append(f"{tool.title:30}absent, {cost}")
            continue
        lines.append(
            f"{tool.title:30}{cost.cpu_s:8.2f}{cost.start_cpu_s:9.2f}{cost.peak_bytes / MB:9.0f}"
            f"{cost.peak_bytes / size_bytes:8.2f}{cost.cpu_s / cpu_s(costs, GUNZIP, SIMDJSON):16.2f}"
            f"{cpu_s(costs, HTA) / cost.cpu_s:8.1f}"
        )
    return lines


def growth(tool: Tool, by_size: Mapping[int, Costs]) -> float:
    """Exponent of the cost of the work against the size of the file, between the smallest and the largest."""
    smallest, largest = min(by_size), max(by_size)
    first, last = by_size[smallest][tool], by_size[largest][tool]
    if smallest == largest or isinstance(first, Absent) or isinstance(last, Absent):
        return math.nan
    return math.log(last.work_cpu_s / first.work_cpu_s) / math.log(largest / smallest)


def verdicts(by_size: Mapping[int, Costs]) -> list[str]:
    """Each target with what was measured on the largest file; for CPU also without the start of each process."""
    size, costs = max(by_size.items())
    ours = costs[OURS_TRACE]
    assert isinstance(ours, Cost), ours

    def against_hta(whole: bool) -> float:
        return cpu_s(costs, HTA, whole=whole) / cpu_s(costs, OURS_BREAKDOWN, whole=whole)

    def against_parsing(whole: bool) -> float:
        return cpu_s(costs, OURS_TRACE, whole=whole) / cpu_s(costs, GUNZIP, SIMDJSON, whole=whole)

    lines = (
        ("HTA / ours, file to breakdown", against_hta(True), f">= {LEAST_FASTER_THAN_HTA}"),
        ("  without start", against_hta(False), ""),
        ("table / (gunzip + parse)", against_parsing(True), f"<= {MOST_OF_GUNZIP_AND_PARSE}"),
        ("  without start", against_parsing(False), ""),
        ("peak memory / size", ours.peak_bytes / size, f"<= {MOST_MEMORY_OF_SIZE}"),
        ("growth exponent", growth(OURS_TRACE, by_size), f"<= {MOST_GROWTH}"),
    )
    return [f"{what:32}{value:7.2f}   {target}" for what, value, target in lines]


def main(sizes_mb: Sequence[int] = SIZES_MB) -> None:
    """Build the files, measure, print."""
    pythons = environments(ROOT / ".bench" / "traces_speed")
    for what, name in SOURCES.items():
        by_size: dict[int, Costs] = {}
        with tempfile.TemporaryDirectory() as folder:
            for size_mb in sizes_mb:
                file, costs = run(ROOT / "tests" / "data" / "traces" / name, size_mb, Path(folder), pythons)
                size_bytes = file.stat().st_size
                by_size[size_bytes] = costs
                print(f"\n{name}, {what}, {size_bytes / MB:.0f} MB", *table(costs, size_bytes), sep="\n", flush=True)
                for made in Path(folder).iterdir():
                    made.unlink()
        exponents = ", ".join(f"{tool.title} {growth(tool, by_size):.2f}" for tool in TOOLS)
        print(f"\ngrowth of the work's cost with size: {exponents}")
        print(f"measured and target on {what}, {max(by_size) / MB:.0f} MB", *verdicts(by_size), sep="\n", flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or SIZES_MB)
