"""What each compared process does alike: read questions, tell answers as JSON lines, say what it took.

Imports only the standard library, as a peer's environment holds no more of ours.
"""

import json
import resource
from pathlib import Path
from typing import Any


def questions_of(file: str) -> list[dict[str, Any]]:
    """The questions of a file, one JSON object a line."""
    return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]


def tell(**values: Any) -> None:
    """One line."""
    print(json.dumps(values))


def tell_memory() -> None:
    """The peak memory, as the last line of a process."""
    tell(peak_bytes=_peak_bytes())


def refusal(error: Exception) -> str:
    """The reason an error gives; assertions often give none."""
    return str(error) or f"an assertion of its own ({type(error).__name__})"


def _peak_bytes() -> int:
    """Largest resident size. Where the kernel tells it, that of this program and not of the one that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
