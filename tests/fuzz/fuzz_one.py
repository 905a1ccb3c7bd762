"""One target in the hands of Atheris, in a process of its own.

    python -m tests.fuzz.fuzz_one NAME FOLDER [libFuzzer arguments]

Needs Atheris, and beside it only what the readers themselves import. A defect (any exception that is no typed error) is
written to FOLDER/defects with its traceback, one file for each place in the code it comes from, and fuzzing goes on;
what libFuzzer itself ends the process for (a crash of native code, a hang, too much memory) it leaves there as well.
"""

import hashlib
import json
import re
import resource
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import atheris  # type: ignore[import-not-found]

with atheris.instrument_imports(include=["traces", "projector"]):
    from tests.fuzz.byte_mutations import damaged
    from tests.fuzz.harness import Target, reshaped, target

_TOLD_EVERY: Final = 500
_RESHAPED_SHARE: Final = 0.4
_DAMAGED_SHARE: Final = 0.6
_PLACES: Final = 3
_MOST_RISE_MB: Final = 128


class Told:
    """What happened so far, kept in a file so that it outlives the process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = 0
        self.slowest_ms = self.largest_rise_mb = 0.0
        self.outcomes: Counter[str] = Counter()
        self.defects: Counter[str] = Counter()

    def note(self, data: bytes, outcome: str, spent_s: float, rise_mb: float) -> None:
        self.runs += 1
        self.outcomes[outcome] += 1
        self.largest_rise_mb = max(self.largest_rise_mb, rise_mb)
        if rise_mb > _MOST_RISE_MB:
            self.note_defect(data, MemoryError(f"memory rose by {rise_mb:,.0f} MB"))
        if spent_s * 1e3 > self.slowest_ms:
            self.slowest_ms = spent_s * 1e3
            (self.folder / "slowest").write_bytes(data)
        if self.runs % _TOLD_EVERY == 0:
            self.write()

    def note_defect(self, data: bytes, error: BaseException) -> None:
        place = _place(error)
        name = hashlib.sha256(place.encode()).hexdigest()[:12]
        self.defects[place] += 1
        input_ = self.folder / "defects" / name
        if not input_.exists() or len(data) < input_.stat().st_size:
            input_.write_bytes(data)
            input_.with_suffix(".txt").write_text(place + "\n\n" + "".join(traceback.format_exception(error)))
        self.write()

    def write(self) -> None:
        told = {
            "runs": self.runs,
            "slowest_ms": self.slowest_ms,
            "largest_rise_mb": self.largest_rise_mb,
            "outcomes": self.outcomes,
            "defects": self.defects,
        }
        (self.folder / "told.json").write_text(json.dumps(told))


def _place(error: BaseException) -> str:
    """Kind of the error and the innermost lines of our own code: what makes two defects the same one."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/traces/" in frame.filename or "/tests/fuzz/" in frame.filename]
    listed = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(own[-_PLACES:]))
    said = re.sub(r"\d+", "0", str(error).partition(":")[0])[:60] if isinstance(error, AssertionError) else ""
    return f"{type(error).__name__} at {listed}{said and ': '}{said}"


def _run(one: Target, told: Told, data: bytes) -> None:
    began, peak_mb = time.process_time(), _peak_mb()
    try:
        outcome = one.run(data)
    except Exception as error:
        outcome = "defect"
        told.note_defect(data, error)
    told.note(data, outcome, time.process_time() - began, _peak_mb() - peak_mb)


def _peak_mb() -> float:
    """Most memory the process has had; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _mutator(one: Target) -> object:
    seeds = one.seeds()

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        random = Random(seed)  # noqa: S311
        share = random.random()
        changed = None
        if share < _RESHAPED_SHARE:
            changed = reshaped(one, data, random)
        elif share < _DAMAGED_SHARE:
            changed = damaged(data, random, random.choice(seeds))
        if changed is None or len(changed) > max_size:
            changed = atheris.Mutate(data, len(data))
        return bytes(changed[:max_size])

    return mutate


def main() -> None:
    """Fuzz until libFuzzer's own limits end it."""
    name, folder, *arguments = sys.argv[1:]
    one, told = target(name), Told(Path(folder))
    (told.folder / "defects").mkdir(parents=True, exist_ok=True)
    told.write()
    atheris.Setup(
        [sys.argv[0], *arguments],
        lambda data: _run(one, told, data),
        custom_mutator=_mutator(one),
        internal_libfuzzer=True,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
