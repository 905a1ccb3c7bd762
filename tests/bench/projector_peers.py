"""The projectors that are compared: where a peer's source lies, which Python runs it, and what it answers.

A peer is a source tree in the folder of peers, at whatever state it is there; nothing of it is kept in this repository.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.environments import Absent, python_with
from tests.bench.projector_questions import Question

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """One column of the result.

    folder     of its source in the folder of peers
    address    to clone it from
    script     that asks it, beside this file
    packages   it needs
    arguments  of the script behind source and questions
    settings   how it is configured, in words
    """

    title: str
    folder: str
    address: str
    script: str
    packages: tuple[str, ...]
    arguments: tuple[str, ...]
    settings: str


CALCULON = Peer(
    "Calculon",
    "calculon",
    "https://github.com/calculon-ai/calculon",
    "projector_calculon.py",
    ("numpy==2.4.6", "pandas==3.1.1", "psutil==7.2.2"),
    (),
    "its system files a100_80g and h100_80g_nvl8 with their efficiency curves; other memory sizes from the datasheet",
)
LLM_ANALYSIS = Peer(
    "llm-analysis",
    "llm-analysis",
    "https://github.com/cli99/llm-analysis",
    "projector_llm_analysis.py",
    ("fire==0.7.1",),
    ("0.5", "0.9"),
    "its GPU files; FLOP efficiency 0.5 and memory efficiency 0.9, which its README suggests where nothing is measured",
)
LLM_ANALYSIS_AS_SHIPPED = Peer(
    "llm-analysis, defaults",
    "llm-analysis",
    LLM_ANALYSIS.address,
    LLM_ANALYSIS.script,
    LLM_ANALYSIS.packages,
    ("1", "1"),
    "its GPU files; both efficiencies 1, its defaults: a lower bound by its own words",
)
PEERS = (CALCULON, LLM_ANALYSIS, LLM_ANALYSIS_AS_SHIPPED)
OURS = "Shardwise"


@dataclass(frozen=True)
class Run:
    """The lines one process wrote between start and end, and its peak memory."""

    lines: tuple[Mapping[str, Any], ...]
    peak_bytes: int


def missing(folder: Path) -> list[str]:
    """Peers that are not there, each with the command that gets it."""
    return [
        f"{folder / name} is missing: git clone {address} {folder / name}"
        for name, address in dict.fromkeys((peer.folder, peer.address) for peer in PEERS)
        if not (folder / name).is_dir()
    ]


def state_of(source: Path) -> str:
    """The commit of a clone, and without one a digest of its Python files."""
    if (source / ".git").exists():
        command = ["git", "-C", str(source), "rev-parse", "--short=12", "HEAD"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*.py")):
        digest.update(path.read_bytes())
    return f"no clone; sha256 of its Python files {digest.hexdigest()[:12]}"


def ask_peer(peer: Peer, folder: Path, environments: Path, asked: Sequence[Question], *arguments: str) -> Run | Absent:
    """A peer's lines for the questions; what it lacks or how it failed where there are none."""
    python = python_with(peer.packages, environments)
    if isinstance(python, Absent):
        return python
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(one)) + "\n" for one in asked)
        file.flush()
        source = (folder / peer.folder).resolve()
        command = [str(python), str(HERE / peer.script), str(source), file.name, *peer.arguments, *arguments]
        return run(command, {"PYTHONPATH": ""})


def ask_ours(*arguments: str) -> Run | Absent:
    """The same of ours."""
    return run([sys.executable, "-m", "tests.bench.projector_ours", *arguments], {"PYTHONPATH": str(ROOT)})


def run(command: Sequence[str], environment: Mapping[str, str]) -> Run | Absent:
    """Run one process on one thread."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **threads, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"failed: {(done.stderr.strip().splitlines() or ['nothing was said'])[-1]}"
    *lines, end = (json.loads(line) for line in done.stdout.splitlines())
    return Run(tuple(lines), end["peak_bytes"])
