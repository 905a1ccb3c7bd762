"""The command line where stdin, stdout or a file is not what one would like."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from test_cli import TRACE, planner  # noqa: F401 (a fixture)

from app.cli import main

DIAGNOSE = f"{sys.executable} -m app.cli diagnose {TRACE}"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("redirection", "reason"),
    [
        (">&-", "stdout is closed"),
        (">/dev/full", "No space left on device"),
        ("| exit 0; exit ${PIPESTATUS[0]}", "Broken pipe"),
    ],
)
@pytest.mark.parametrize("option", ["", "--json"])
def test_output_that_cannot_be_written_is_exit_1_and_one_line(redirection, reason, option) -> None:
    if reason == "No space left on device" and not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    done = shell(f"{DIAGNOSE} {option} {redirection}")
    assert (done.returncode, done.stderr) == (1, f"shardwise: cannot write the output: {reason}\n")


def test_a_problem_that_cannot_be_written_is_exit_1_and_one_line() -> None:
    done = shell(f"{sys.executable} -m app.cli diagnose missing --json >&-")
    assert (done.returncode, done.stderr) == (1, "shardwise: cannot write the output: stdout is closed\n")


def test_a_closed_stdin_is_exit_2() -> None:
    done = shell(f"{sys.executable} -m app.cli plan --request - <&-")
    assert done.returncode == 2
    assert "stdin is closed" in done.stderr


def test_a_request_comes_through_a_pipe_with_a_name(planner, capsys, tmp_path) -> None:  # noqa: F811
    pipe = tmp_path / "request"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=('{"hardware": ["tpu-v5p"]}',))
    writer.start()
    assert main(["plan", "--request", str(pipe)]) == 0
    writer.join()
    assert planner.asked[0][0].hardware == ("tpu-v5p",)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["plan", "--request", "."], "'.' is a folder"),
        (["diagnose", "/dev/null"], "save the trace to a file first"),
        (["project", "--plam", "x"], "shardwise project"),
        (["catalog", "chips", "--jsn"], "usage: shardwise catalog"),
        (["knowledge", "rebuild", "--jsn"], "usage: shardwise knowledge rebuild"),
    ],
)
def test_a_hint_that_fits(arguments, told, capsys) -> None:
    assert main(arguments) == 2
    assert told in capsys.readouterr().err
