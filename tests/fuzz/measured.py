"""Reading in a process of its own whose memory is watched: how much it rises above what it was before the file.

The process is asked on its standard input, a line a file, and answers with a line; so that one start serves many files.
Peaks are those of the resident set, which native code cannot hide from (Linux: VmHWM, set back before each file).
"""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from traces.content import Limits

ROOT: Final = Path(__file__).parents[2]
STATUS: Final = Path("/proc/self/status")
_RESET: Final = Path("/proc/self/clear_refs")
_RESET_PEAK: Final = "5"


@dataclass(frozen=True)
class Reading:
    """What became of a file: "read" or the name of the error, what it says, how much memory and CPU time it took."""

    outcome: str
    message: str
    rise_bytes: int
    cpu_s: float
    facts: dict[str, Any]


class Reader:
    """The process; a context manager."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.measured"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def read(self, path: Path, limits: Limits | None = None) -> Reading:
        """Read a file, a folder or an archive to its summary."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"path": str(path), "limits": asdict(limits or Limits())}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process died"
        return Reading(**json.loads(answer))


def _memory_bytes(what: str) -> int:
    line = next(line for line in STATUS.read_text("ascii").splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024


def _answer(asked: dict[str, Any]) -> Reading:
    import gc
    import time

    from projector.errors import ShardwiseError
    from tests.fuzz.checks import check_shares
    from traces.summary import read_summary

    gc.collect()
    _RESET.write_text(_RESET_PEAK)
    before, began = _memory_bytes("VmRSS"), time.process_time()
    facts: dict[str, Any] = {}
    outcome, message = "read", ""
    try:
        summary = read_summary([Path(asked["path"])], limits=Limits(**asked["limits"]), workers=1)
        check_shares(summary)
        shown = {"window_ns", "compute_ns", "communication_ns", "warnings", "event_counts"}
        facts = summary.model_dump(include=shown)
        facts |= {"ranks": len(summary.ranks), "bytes": len(summary.model_dump_json())}
    except ShardwiseError as error:
        outcome, message = type(error).__name__, str(error)
    return Reading(outcome, message[:500], _memory_bytes("VmHWM") - before, time.process_time() - began, facts)


def _serve() -> None:
    for line in sys.stdin:
        print(json.dumps(asdict(_answer(json.loads(line)))), flush=True)


if __name__ == "__main__":
    _serve()
