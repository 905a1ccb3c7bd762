"""The tools that are compared: where they come from, how they are run, what a run costs."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.bench.environments import Absent, python_with

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("traces_speed_child.py")


@dataclass(frozen=True)
class Tool:
    """One line of the result.

    work      function of `traces_speed_child` that does it
    packed    whether it reads the gzip file or the plain one
    packages  what it needs in an environment of its own; none where it runs in the project's
    """

    title: str
    work: str
    packed: bool
    packages: tuple[str, ...] = ()


GUNZIP = Tool("isal gunzip", "isal_gunzip", True, ("isal==1.8.0",))
SIMDJSON = Tool("pysimdjson parse only", "simdjson_parse", False, ("pysimdjson==7.0.2",))
HTA = Tool("HTA: file to breakdown", "hta_breakdown", True, ("traceinsight==0.6.1", "pandas==3.1.1", "numpy==2.4.6"))
OURS_TRACE = Tool("ours: file to table", "shardwise_trace", True)
OURS_BREAKDOWN = Tool("ours: file to breakdown", "shardwise_breakdown", True)
TOOLS = (
    OURS_TRACE,
    Tool("ours: plain file to table", "shardwise_trace", False),
    OURS_BREAKDOWN,
    Tool("ours: file to whole summary", "shardwise_summary", True),
    GUNZIP,
    SIMDJSON,
    Tool("orjson load", "orjson_load", False, ("orjson==3.11.4",)),
    Tool("json load", "json_load", False),
    HTA,
)


@dataclass(frozen=True)
class Cost:
    """What one run took: CPU seconds (user and system) of the whole process, those before the work, peak memory."""

    cpu_s: float
    start_cpu_s: float
    peak_bytes: int
    found: Any

    @property
    def work_cpu_s(self) -> float:
        return self.cpu_s - self.start_cpu_s


def environments(folder: Path) -> dict[str, Path | Absent]:
    """A Python for each tool by title, or why it has none. Those of other tools are made in `folder`, one each."""
    own = Path(sys.executable)
    return {tool.title: python_with(tool.packages, folder) if tool.packages else own for tool in TOOLS}


def measure(tool: Tool, python: Path | Absent, file: Path) -> Cost | Absent:
    """Run a tool in a process of its own; what is absent or fails is told, with the reason."""
    if isinstance(python, Absent):
        return python
    environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": "" if tool.packages else str(ROOT)}
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        command = [python, CHILD, tool.work, file]
        process = subprocess.Popen(command, stdout=said, stderr=complained, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            return f"failed: {_last_line(complained)}"
        told = json.loads(_last_line(said))
    return Cost(usage.ru_utime + usage.ru_stime, told["start_cpu_s"], usage.ru_maxrss * 1024, told["found"])


def _last_line(file: IO[bytes]) -> str:
    file.seek(0)
    return (file.read().decode("utf-8", "replace").strip().splitlines() or ["nothing was said"])[-1]
