"""One line for each file of a sample folder: who reads it, what came out, or the typed refusal.

    python -m tests.validation.traces_table [folder]

The folder defaults to $SHARDWISE_SHARED/traces, or ../shared/traces beside the project. Times are milliseconds.
"""

import os
import sys
from collections import Counter
from pathlib import Path

from projector.errors import ShardwiseError
from traces.content import open_content
from traces.read import DEFAULT_LIMITS, find_reader
from traces.summary import summarise
from traces.summary_types import TraceSummary

DEFAULT = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[3] / "shared")) / "traces"
COLUMNS = ("window", "compute", "comm", "exposed", "copy", "exp.copy", "idle", "unclass.")
FIGURES = (
    "window_ns",
    "compute_ns",
    "communication_ns",
    "exposed_communication_ns",
    "copy_ns",
    "exposed_copy_ns",
    "idle_ns",
    "unclassified_ns",
)


def line(path: Path, root: Path) -> tuple[str, str]:
    """(outcome, the line)."""
    name, reader = str(path.relative_to(root)), "-"
    try:
        content = open_content(path, DEFAULT_LIMITS)
        found = find_reader(content)
        reader = found.name
        summary = summarise(found.read(content, DEFAULT_LIMITS))
    except ShardwiseError as refusal:
        outcome = type(refusal).__name__
        return outcome, f"{name}\n    {reader:<11} {outcome}: {refusal}"
    return "read", f"{name}\n    {reader:<11} {_figures(summary)}\n    {'':<11} {_job(summary)}"


def _figures(summary: TraceSummary) -> str:
    where = "device" if summary.window.device else "host"
    told = "  ".join(
        f"{title} {getattr(summary, figure) / 1e6:.6f}" for title, figure in zip(COLUMNS, FIGURES, strict=True)
    )
    return f"{where}  {told}"


def _job(summary: TraceSummary) -> str:
    implied = summary.implied
    parts = []
    for name in ("chip_name", "world_size", "tp", "dp", "pp", "ep", "phase", "is_transformer_lm", "dtype", "framework"):
        value = getattr(implied, name)
        if value is not None:
            parts.append(f"{name}={value.value} ({value.confidence:g})")
    shapes = implied.shapes.model_dump(exclude_none=True)
    parts.extend(f"{name}={value}" for name, value in shapes.items())
    parts.append(f"steps={sum(len(rank.steps) for rank in summary.ranks)}")
    parts.extend(f"WARNING: {warning}" for warning in summary.warnings)
    return "  ".join(parts)


def main(root: Path) -> None:
    """Print the table."""
    outcomes: Counter[str] = Counter()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        outcome, text = line(path, root)
        outcomes[outcome] += 1
        print(text)
    print(
        f"\n{outcomes.total()} files: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)
