"""Ours, aiconfigurator, GenZ on the same measured points: `python -m tests.bench.serving_bench --peers FOLDER`.

Every tool is asked the same questions (`serving_questions`), each in a process of its own on one thread. Errors are
over the points that ours and the peer both model, so each peer is compared on its own ground. Speed is processor time
over candidates. inferasim needs AMD's Origami, which no package registry holds, and is left out.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median

from agents.evaluation.sweeps import spearman
from tests.bench.environments import Absent, python_with
from tests.bench.projector_peers import HERE, ROOT, Run, run, state_of
from tests.bench.serving_questions import FILE, Question, questions

EACH = 6
OURS = "Shardwise"
# as our answers name the kind of a model
DENSE = "dense"


@dataclass(frozen=True)
class Peer:
    """One tool. folder: of its source in the folder of peers, "" where its package is all; settings in words."""

    title: str
    script: str
    packages: tuple[str, ...]
    folder: str
    settings: str


AICONFIGURATOR = Peer(
    "aiconfigurator",
    "serving_aiconfigurator.py",
    ("aiconfigurator==0.12.0", "aiconfigurator-core==0.12.0"),
    "",
    "cli_estimate of each point with the measured tables of its backend; its hybrid mode where those lack an operator",
)
GENZ = Peer(
    "GenZ",
    "serving_genz.py",
    (
        "numpy==2.4.6", "pandas==3.1.1", "tqdm==4.70.1", "paretoset==1.2.5", "matplotlib==3.11.2", "plotly==7.1.0",
        "seaborn==0.13.2", "ipython==9.9.0",
    ),
    "genz",
    "datasheet peaks, its default efficiencies of 1; one decode pass, and our term for prompts between steps",
)  # fmt: skip
ADDRESS = "https://github.com/abhibambhaniya/GenZ-LLM-Analyzer"


@dataclass(frozen=True)
class Error:
    """Errors of one tool over points: fractions of the measured time, and rank correlation."""

    tool: str
    figure: str
    points: int
    mape_frac: float
    median_frac: float
    bias_frac: float
    rho: float | None


@dataclass(frozen=True)
class Compared:
    """Ours and a peer over the points of a kind that both model."""

    kind: str
    errors: tuple[Error, ...]


@dataclass(frozen=True)
class Speed:
    """What one candidate costs."""

    way: str
    candidates: int
    us_a_candidate: float
    peak_mib: float


@dataclass(frozen=True)
class Result:
    """Everything the comparison prints."""

    asked: int
    modelled: dict[str, int]
    refusals: dict[str, dict[str, int]]
    compared: tuple[Compared, ...]
    speed: tuple[Speed, ...]
    settings: tuple[str, ...]


class Failed(Exception):
    """Nothing to compare: no rows, or a tool that gave nothing."""


Answers = Mapping[str, Mapping[str, object]]


def compare(groundtruth: Path, peers: Path, environments: Path, each: int) -> Result:
    """Ask every tool, put the answers beside the measurements."""
    asked = questions(groundtruth, each)
    if not asked:
        raise Failed(f"no measured point in {groundtruth / FILE}")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(one)) + "\n" for one in asked)
        file.flush()
        runs = {OURS: _ours("answers", str(groundtruth), file.name)}
        for peer in (AICONFIGURATOR, GENZ):
            runs[peer.title] = _given(peer.title, _ask(peer, peers, environments, file.name))
    answers = {tool: {str(line["id"]): line for line in found.lines} for tool, found in runs.items()}
    return Result(
        asked=len(asked),
        modelled={tool: sum("tpot_ms" in line for line in found.values()) for tool, found in answers.items()},
        refusals={tool: refusals(found) for tool, found in answers.items()},
        compared=tuple(comparisons(asked, answers)),
        speed=tuple(speeds(_ours("search"), runs)),
        settings=tuple(
            f"{peer.title} ({state_of(peers / peer.folder) if peer.folder else peer.packages[0]}): {peer.settings}"
            for peer in (AICONFIGURATOR, GENZ)
        ),
    )


def _ask(peer: Peer, peers: Path, environments: Path, file: str) -> Run | Absent:
    python = python_with(peer.packages, environments)
    if isinstance(python, Absent):
        return python
    source = [str((peers / peer.folder).resolve())] if peer.folder else []
    return run([str(python), str(HERE / peer.script), *source, file], {"PYTHONPATH": ""})


def _ours(*arguments: str) -> Run:
    return _given(OURS, run([sys.executable, "-m", "tests.bench.serving_ours", *arguments], {"PYTHONPATH": str(ROOT)}))


def _given(tool: str, found: Run | Absent) -> Run:
    if isinstance(found, Absent):
        raise Failed(f"{tool} {found}")
    return found


def refusals(answers: Answers) -> dict[str, int]:
    """How many points a tool does not model, by reason, the commonest first."""
    found: dict[str, int] = {}
    for line in answers.values():
        if "refused" in line:
            reason = str(line["refused"]).split(":")[0][:70]
            found[reason] = found.get(reason, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def comparisons(asked: Sequence[Question], answers: Mapping[str, Answers]) -> list[Compared]:
    """Ours beside each peer over what both model, and over the kinds of it."""
    found = []
    for peer in (AICONFIGURATOR.title, GENZ.title):
        both = [one for one in asked if all("tpot_ms" in answers[tool].get(one.id, {}) for tool in (OURS, peer))]
        kinds = {
            f"all that {peer} models": both,
            "  dense": [one for one in both if answers[OURS][one.id]["how"] == DENSE],
            "  mixtures of experts": [one for one in both if answers[OURS][one.id]["how"] != DENSE],
            "  in one pool": [one for one in both if one.mode == "agg"],
            "  prefill and decode apart": [one for one in both if one.mode == "disagg"],
        }
        if peer == AICONFIGURATOR.title:
            kinds["  from its measured tables alone"] = [
                one for one in both if answers[peer][one.id]["how"] == "SILICON"
            ]
        found += [Compared(kind, _errors(points, peer, answers)) for kind, points in kinds.items() if points]
    return found


def _errors(points: Sequence[Question], peer: str, answers: Mapping[str, Answers]) -> tuple[Error, ...]:
    tools = (OURS, peer)
    return tuple(_error(tool, figure, points, answers[tool]) for figure in ("tpot_ms", "ttft_ms") for tool in tools)


def _error(tool: str, figure: str, points: Sequence[Question], answers: Answers) -> Error:
    projected = [float(str(answers[one.id][figure])) for one in points]
    measured = [float(getattr(one, figure)) for one in points]
    errors = [p / m - 1 for p, m in zip(projected, measured, strict=True)]
    return Error(
        tool=tool,
        figure="TPOT" if figure == "tpot_ms" else "TTFT",
        points=len(points),
        mape_frac=mean(map(abs, errors)),
        median_frac=median(map(abs, errors)),
        bias_frac=mean(errors),
        rho=spearman(projected, measured),
    )


def speeds(searched: Run, runs: Mapping[str, Run]) -> list[Speed]:
    """Our search, and every tool asked point by point: the median, as a tool's first answers read its tables."""
    line = searched.lines[0]
    found = [_cost(f"{OURS}: a search as columns", line["plans"], line["cpu_s"] / line["plans"], searched)]
    for tool, one in runs.items():
        answered = [line["cpu_s"] for line in one.lines if "tpot_ms" in line]
        if answered:
            found.append(_cost(f"{tool}: point by point, median", len(answered), median(answered), one))
    return found


def _cost(way: str, candidates: int, each_s: float, found: Run) -> Speed:
    return Speed(way, candidates, 1e6 * each_s, found.peak_bytes / 2**20)


def lines(found: Result) -> list[str]:
    """The result as text."""
    ours = found.speed[0].us_a_candidate
    return [
        "Peers, as configured",
        *(f"  {one}" for one in found.settings),
        "  inferasim: left out, its GEMM model Origami is in no package registry",
        f"\n{found.asked} points asked, some of every (model, chip, backend, mode)",
        *(f"  {tool:16} models {count}" for tool, count in found.modelled.items()),
        *(
            f"    {tool} refuses {count}: {reason}"
            for tool, reasons in found.refusals.items()
            for reason, count in list(reasons.items())[:5]
        ),
        "\nProjected / measured - 1 over the points that both model",
        f"{'points':38}{'':6}{'tool':16}{'n':>5}{'MAPE':>9}{'median':>9}{'bias':>9}{'rho':>7}",
        *(
            f"{one.kind:38}{error.figure:6}{error.tool:16}{error.points:>5}{error.mape_frac:>9.1%}"
            f"{error.median_frac:>9.1%}{error.bias_frac:>+9.1%}{'' if error.rho is None else f'{error.rho:.2f}':>7}"
            for one in found.compared
            for error in one.errors
        ),
        "\nProcessor time of a candidate on one core",
        f"{'way':44}{'n':>8}{'us':>12}{'times ours':>12}{'peak MiB':>10}",
        *(
            f"{one.way:44}{one.candidates:>8}{one.us_a_candidate:>12.1f}{one.us_a_candidate / ours:>12.0f}"
            f"{one.peak_mib:>10.0f}"
            for one in found.speed
        ),
    ]


def main(arguments: Sequence[str]) -> int:
    """Compare and print; 2 where a peer is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, required=True, help="folder that holds genz/")
    parser.add_argument("--groundtruth", type=Path, required=True, help="folder of measured rows")
    parser.add_argument("--environments", type=Path, default=ROOT / ".bench" / "serving", help="made where absent")
    parser.add_argument("--each", type=int, default=EACH, help="points of every (model, chip, backend, mode); 0: all")
    parser.add_argument("--json", type=Path, help="where the result goes as JSON too")
    given = parser.parse_args(arguments)
    if not (given.peers / GENZ.folder).is_dir():
        source = given.peers / GENZ.folder
        print(f"{source} is missing: git clone {ADDRESS} {source}", file=sys.stderr)
        return 2
    try:
        found = compare(given.groundtruth, given.peers, given.environments, given.each)
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
