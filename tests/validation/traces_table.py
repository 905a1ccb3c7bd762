"""The conformance table: one entry a file of a sample folder, with what other tools say of it where anybody ran them.

    python -m tests.validation.traces_table [folder]

The folder defaults to $SHARDWISE_SHARED, or ../shared beside the project; samples are in its `traces`, other tools'
results in its `reference/hta`. Times are milliseconds. A file is read alone, but for companions (execution traces),
which are read with the profile of the same run. Ends with exit code 1 where an identity does not hold or a difference
to another tool is unexplained.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from projector.errors import ShardwiseError
from tests.validation.peers import FILES
from tests.validation.verdicts import Unexplained, verdicts
from traces.content import open_content
from traces.read import DEFAULT_LIMITS, find_reader
from traces.summary import read_summary, summarise
from traces.summary_types import TimeShares, TraceSummary

DEFAULT = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[3] / "shared"))
COLUMNS = ("window", "compute", "comm", "exposed", "copy", "exp.copy", "idle")
FIGURES = (
    "window_ns",
    "compute_ns",
    "communication_ns",
    "exposed_communication_ns",
    "copy_ns",
    "exposed_copy_ns",
    "idle_ns",
)
# execution trace -> the profile of the same run
COMPANIONS = {
    "generated/ddp_et_rank0.json.gz": "generated/ddp_rank0.pt.trace.json.gz",
    "generated/ddp_et_rank1.json.gz": "generated/ddp_rank1.pt.trace.json.gz",
    "generated/fsdp2_et_rank0.json.gz": "generated/fsdp2_rank0.pt.trace.json.gz",
    "generated/fsdp2_et_rank1.json.gz": "generated/fsdp2_rank1.pt.trace.json.gz",
    "generated/tp_et_rank0.json.gz": "generated/tp_rank0.pt.trace.json.gz",
    "generated/tp_et_rank1.json.gz": "generated/tp_rank1.pt.trace.json.gz",
    "hta/execution_trace/benchmark_simple_add_et.json.gz": "hta/execution_trace/benchmark_simple_add_trace.json.gz",
}


def entry(path: Path, root: Path) -> tuple[str, list[str]]:
    """(outcome, the lines)."""
    name = str(path.relative_to(root))
    partner = COMPANIONS.get(name)
    try:
        reader = find_reader(open_content(path, DEFAULT_LIMITS)).name
        summary = read_summary([path] if partner is None else [root / partner, path])
    except ShardwiseError as refusal:
        outcome = type(refusal).__name__
        return outcome, [f"{name}: {outcome}: {refusal}"]
    title = f"{name}: {reader}" + (f" with {partner}" if partner else "")
    return "read", [title, *(f"    {line}" for line in _lines(summary))]


def _lines(summary: TraceSummary) -> Iterator[str]:
    where = "device" if summary.window.device else "host operators"
    steps = sum(len(rank.steps) for rank in summary.ranks)
    identity = "exact" if all(map(exact, (summary, *summary.ranks))) else "BROKEN"
    share = summary.unclassified_ns / summary.window_ns if summary.window_ns else 0.0
    yield (
        f"ranks {len(summary.ranks)}, window of {where} ({summary.window.name}), {steps} steps, identity {identity}, "
        f"unclassified {share:.2%}, {len(summary.warnings)} warnings"
    )
    yield "  ".join(
        f"{title} {getattr(summary, figure) / 1e6:.6f}" for title, figure in zip(COLUMNS, FIGURES, strict=True)
    )
    yield _implied(summary)
    yield from (f"warning: {warning}" for warning in summary.warnings)


def exact(shares: TimeShares) -> bool:
    """Whether the terms of the window identity sum to the window, to the nanosecond."""
    parts = shares.compute_ns + shares.exposed_communication_ns + shares.exposed_copy_ns + shares.idle_ns
    return parts == shares.window_ns


def _implied(summary: TraceSummary) -> str:
    implied, parts = summary.implied, []
    for name in type(implied).model_fields:
        value = getattr(implied, name)
        if hasattr(value, "confidence"):
            parts.append(f"{name}={value.value} ({value.confidence:g})")
    shapes = implied.shapes.model_dump(exclude_none=True, exclude={"basis"})
    parts.extend(f"{name}={value}" for name, value in shapes.items())
    return "implied: " + ("  ".join(parts) or "nothing")


def peers_of(root: Path, reference: Path) -> Iterator[tuple[str, str, str]]:
    """(file, tool, sentence) for every file another tool was run on; raises `Unexplained`."""
    from traces.read import read_traces

    for name, files in FILES.items():
        for rank, file in enumerate(files):
            (trace,) = read_traces([root / file])
            for tool, sentence in verdicts(reference, name, rank, trace, summarise([trace])):
                yield file, tool, sentence


def main(shared: Path) -> int:
    """Print the table."""
    root, reference = shared / "traces", shared / "reference" / "hta"
    outcomes: Counter[str] = Counter()
    broken = 0
    told: dict[str, list[str]] = {}
    try:
        for file, tool, sentence in peers_of(root, reference) if reference.is_dir() else ():
            told.setdefault(file, []).append(f"    {tool} {sentence}")
    except Unexplained as difference:
        print(f"UNEXPLAINED: {difference}")
        broken += 1
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".md"):
        outcome, lines = entry(path, root)
        outcomes[outcome] += 1
        broken += sum("identity BROKEN" in line for line in lines)
        print("\n".join((*lines, *told.get(str(path.relative_to(root)), ()))))
    counted = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    disagreements = sum(" agrees" not in line for lines in told.values() for line in lines)
    print(f"\n{outcomes.total()} files: {counted}; {disagreements} statements of other tools differ, each explained")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT))
