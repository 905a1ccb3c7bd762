"""Ours, Calculon and llm-analysis on the same measured rows: `python -m tests.bench.projector_bench --peers FOLDER`.

Every tool is asked the same questions (`projector_questions`), each in a process of its own on one thread: the plans a
row may mean, of which its fastest that fits counts. Errors are over rows that all tools model as they are, and apart
over rows that Calculon models only with a stand-in. Speed is CPU time over the plans of one search.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.environments import Absent
from tests.bench.projector_peers import (
    CALCULON,
    LLM_ANALYSIS,
    OURS,
    PEERS,
    ROOT,
    Run,
    ask_ours,
    ask_peer,
    missing,
    state_of,
)
from tests.bench.projector_questions import FILES, SPEED_SETTING, cases, questions, speed_questions
from tests.bench.projector_results import (
    Answers,
    Coverage,
    Errors,
    Rankings,
    answers_of,
    common,
    coverage,
    errors,
    rankings,
)
from tests.bench.projector_tables import coverage_lines, error_lines, ranking_lines

SPEED_PLANS = 300
RUNS = 3


@dataclass(frozen=True)
class Speed:
    """What a way to score plans costs on one core, the interpreter's start left out; memory of the whole process."""

    way: str
    plans: int
    us_a_plan: float
    plans_a_second: float
    peak_mib: float


@dataclass(frozen=True)
class Settings:
    """Which state of a peer was asked, and how it was configured."""

    tool: str
    state: str
    settings: str


@dataclass(frozen=True)
class Result:
    """Everything the comparison prints; fractions throughout."""

    tools: tuple[Settings, ...]
    coverage: tuple[Coverage, ...]
    as_they_are: tuple[Errors, ...]
    with_stand_ins: tuple[Errors, ...]
    sweeps: tuple[Rankings, ...]
    speed_setting: str
    speed: tuple[Speed, ...]


class Failed(Exception):
    """Nothing to compare: no rows, or a tool that gave nothing."""


def compare(groundtruth: Path, peers: Path, environments: Path) -> Result:
    """Ask every tool, put the answers beside the measurements."""
    asked = cases(groundtruth)
    if not asked:
        raise Failed(f"no measured row on A100, H100 or H200 in {groundtruth}: expected {', '.join(FILES)}")
    every = list(questions(asked))
    tools: dict[str, Answers] = {OURS: answers_of(_given(OURS, ask_ours("answers", str(groundtruth))).lines)}
    for peer in PEERS:
        tools[peer.title] = answers_of(_given(peer.title, ask_peer(peer, peers, environments, every)).lines)
    return Result(
        tools=tuple(Settings(peer.title, state_of(peers / peer.folder), peer.settings) for peer in PEERS),
        coverage=tuple(coverage(tool, asked, answers) for tool, answers in tools.items()),
        as_they_are=errors(common(asked, tools, stand_ins=False), tools),
        with_stand_ins=errors(common(asked, tools, stand_ins=True), tools),
        sweeps=rankings(asked, tools),
        speed_setting=SPEED_SETTING,
        speed=_speed(peers, environments),
    )


def _speed(peers: Path, environments: Path) -> tuple[Speed, ...]:
    plans = speed_questions(SPEED_PLANS)
    ways: dict[str, Callable[[], Run | Absent]] = {
        f"{OURS}: a search as columns": lambda: ask_ours("search"),
        f"{OURS}: one by one, with breakdown": lambda: ask_ours("alone"),
        "Calculon: its own search loop": lambda: ask_peer(CALCULON, peers, environments, plans, "search"),
        "Calculon: debug records off": lambda: ask_peer(CALCULON, peers, environments, plans),
        "llm-analysis: logging off": lambda: ask_peer(LLM_ANALYSIS, peers, environments, plans),
    }
    found = []
    for way, ask in ways.items():
        runs = [_given(way, ask()) for _ in range(RUNS)]
        # the run other load disturbed least
        cpu_s, counted, peak = min(
            (sum(line["cpu_s"] for line in run.lines), sum(line.get("plans", 1) for line in run.lines), run.peak_bytes)
            for run in runs
        )
        found.append(Speed(way, counted, 1e6 * cpu_s / counted, counted / cpu_s, peak / 2**20))
    return tuple(found)


def _given(tool: str, run: Run | Absent) -> Run:
    if isinstance(run, Absent):
        raise Failed(f"{tool} {run}")
    return run


def lines(found: Result) -> list[str]:
    """The result as text."""
    ours = found.speed[0]
    return [
        "Peers, as configured",
        *(f"  {one.tool} ({one.state}): {one.settings}" for one in found.tools),
        "\nRows asked (A100, H100, H200 of the ground truth that print a speed), and what each tool modelled",
        *coverage_lines(found.coverage),
        "\nStep time, rows that all model as they are: projected / measured - 1",
        *error_lines(found.as_they_are),
        "\nStep time, rows that Calculon models with stand-ins (gated MLP, grouped keys, sharded weights)",
        *error_lines(found.with_stand_ins),
        "\nSweeps in which each tool models two configurations or more; regret against the best measured of all",
        *ranking_lines(found.sweeps),
        f"\nSpeed on one core: plans of one search, {found.speed_setting}",
        f"{'way':40}{'plans':>8}{'us a plan':>12}{'plans/s':>12}{'times ours':>12}{'peak MiB':>10}",
        *(
            f"{one.way:40}{one.plans:>8}{one.us_a_plan:>12.1f}{one.plans_a_second:>12.0f}"
            f"{one.us_a_plan / ours.us_a_plan:>12.0f}{one.peak_mib:>10.0f}"
            for one in found.speed
        ),
    ]


def main(arguments: Sequence[str]) -> int:
    """Compare and print; 2 where a peer is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, required=True, help="folder that holds calculon/ and llm-analysis/")
    parser.add_argument("--groundtruth", type=Path, required=True, help="folder of measured rows")
    parser.add_argument("--environments", type=Path, default=ROOT / ".bench" / "projector", help="made where absent")
    parser.add_argument("--json", type=Path, help="where the result goes as JSON too")
    given = parser.parse_args(arguments)
    lacking = missing(given.peers)
    if lacking:
        print(*lacking, "(or name their folder: make bench-projector PEERS=...)", sep="\n", file=sys.stderr)
        return 2
    try:
        found = compare(given.groundtruth, given.peers, given.environments)
    except Failed as fault:
        print(fault, file=sys.stderr)
        return 1
    print(*lines(found), sep="\n")
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
