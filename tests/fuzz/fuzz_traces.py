"""Fuzz every reader for a while and print a row each.

    python -m tests.fuzz.fuzz_traces --seconds 30 [--only NAME ...]

Coverage-guided (Atheris: libFuzzer over instrumented bytecode), one reader after another, from the seeds the builders
of the tests make and whatever earlier runs found worth keeping. Exit status 1 where anything was found.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fuzz.harness import TARGETS, Target
from tests.fuzz.words import WORDS

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / ".fuzz"

_LONGEST_INPUT_BYTES: Final = 16_384
_SECONDS_AN_INPUT: Final = 20
_MEMORY_MB: Final = 8_192
"""Of the whole process, which grows with the runs (the fuzzer's own mutations are not freed); one input that takes much
is told by the harness."""
_STATISTIC: Final = re.compile(r"^stat::(\w+):\s+(\d+)", re.MULTILINE)
_COVERAGE: Final = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
_FOUND: Final = re.compile(r"^(?:==\d+== ?)?(?:ERROR|SUMMARY): (libFuzzer: .*)$", re.MULTILINE)
_INTERRUPTED: Final = "libFuzzer: run interrupted"
_COLUMNS: Final = (16, 10, 6, 6, 8, 6, 5, 10, 7, 7, 5)
_TITLES: Final = (
    "reader",
    "executions",
    "per s",
    "edges",
    "features",
    "corpus",
    "new",
    "slowest ms",
    "rise MB",
    "defects",
    "s",
)


@dataclass(frozen=True)
class Row:
    """Figures of one reader."""

    name: str
    executions: int
    edges: int
    features: int
    corpus: int
    new: int
    slowest_ms: float
    largest_rise_mb: float
    seconds: float
    found: tuple[str, ...]
    outcomes: dict[str, int]

    def __str__(self) -> str:
        figures = (
            self.executions,
            self.executions / max(self.seconds, 1),
            self.edges,
            self.features,
            self.corpus,
            self.new,
            self.slowest_ms,
            self.largest_rise_mb,
            len(self.found),
            self.seconds,
        )
        return _line(self.name, *(f"{figure:,.0f}" for figure in figures))


def _line(name: str, *cells: str) -> str:
    """One line of the table."""
    aligned = (f"{cell:>{width}}" for cell, width in zip(cells, _COLUMNS[1:], strict=True))
    return " ".join((f"{name:<{_COLUMNS[0]}}", *aligned))


def fuzz(one: Target, seconds: int, folder: Path) -> Row:
    """One reader, in a process of its own."""
    corpus, seeds, words = folder / "corpus", folder / "seeds", folder / "words.txt"
    for made in (corpus, seeds, folder / "defects"):
        made.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(one.seeds()):
        (seeds / str(number)).write_bytes(seed)
    words.write_text("".join(f"{_quoted(word)}\n" for word in WORDS.get(one.name, ())))
    command = [
        sys.executable, "-m", "tests.fuzz.fuzz_one", one.name, str(folder), f"-max_total_time={seconds}",
        f"-max_len={_LONGEST_INPUT_BYTES}", f"-timeout={_SECONDS_AN_INPUT}", f"-rss_limit_mb={_MEMORY_MB}",
        f"-artifact_prefix={folder / 'defects'}/", "-print_final_stats=1",
        *([f"-dict={words}"] if one.name in WORDS else []), str(corpus), str(seeds),
    ]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    return _row(one.name, done, folder, time.monotonic() - began)


def _row(name: str, done: "subprocess.CompletedProcess[str]", folder: Path, seconds: float) -> Row:
    (folder / "log.txt").write_text(done.stderr)
    told = json.loads((folder / "told.json").read_text()) if (folder / "told.json").exists() else {}
    statistics = {key: int(value) for key, value in _STATISTIC.findall(done.stderr)}
    coverage = [tuple(map(int, match)) for match in _COVERAGE.findall(done.stderr)]
    edges, features, corpus = coverage[-1] if coverage else (0, 0, 0)
    ended = tuple(_FOUND.findall(done.stderr)) or ((f"ended with status {done.returncode}",) if done.returncode else ())
    ended = (_INTERRUPTED,) if _INTERRUPTED in done.stderr else ended
    return Row(
        name=name,
        executions=statistics.get("number_of_executed_units", told.get("runs", 0)),
        edges=edges,
        features=features,
        corpus=corpus,
        new=statistics.get("new_units_added", 0),
        slowest_ms=told.get("slowest_ms", 0.0),
        largest_rise_mb=told.get("largest_rise_mb", 0.0),
        seconds=seconds,
        found=(*told.get("defects", {}), *ended),
        outcomes=told.get("outcomes", {}),
    )


def _quoted(word: str) -> str:
    """A line of libFuzzer's dictionary."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02X}" for byte in word.encode()
    )
    return f'"{plain}"'


def main() -> int:
    """The table, then what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--only", nargs="*", choices=[one.name for one in TARGETS], default=None)
    asked = parser.parse_args()
    print(_line(*_TITLES), flush=True)
    rows = []
    for one in TARGETS:
        if asked.only is None or one.name in asked.only:
            rows.append(fuzz(one, asked.seconds, FOLDER / one.name))
            print(rows[-1], flush=True)
    for row in rows:
        print(
            f"\n{row.name}: "
            + ", ".join(
                f"{count:,} x {word}" for word, count in sorted(row.outcomes.items(), key=lambda item: -item[1])
            )
        )
        for place in row.found:
            print(f"  FOUND {place}")
    return 1 if any(row.found for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
