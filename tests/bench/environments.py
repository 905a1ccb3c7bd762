"""Throw-away environments for tools that are compared: packages at fixed versions, below a folder that git ignores."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

Absent = str
"""Why there is no such thing."""


def python_with(packages: Sequence[str], folder: Path) -> Path | Absent:
    """A Python that has the packages (`name==version`), made in `folder` where it is not there yet; or why not."""
    home = folder / "-".join(packages).replace("==", "-")
    python = home / "bin" / "python"
    try:
        if not python.exists():
            _run(sys.executable, "-m", "venv", "--clear", str(home))
            uv = shutil.which("uv", path=str(Path(sys.executable).parent))
            installer = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
            _run(*installer, *packages)
    except subprocess.CalledProcessError as fault:
        shutil.rmtree(home, ignore_errors=True)
        return f"not installed: {(fault.stderr.strip().splitlines() or ['no reason given'])[-1]}"
    return python


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
