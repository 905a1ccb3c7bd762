"""Write the bundled history from a folder of ground truth: same data in, same bytes out.

    python -m tests.validation.write_history ../shared/groundtruth

Facts only, each with its source: what ran, on what, what it measured; what a change moved and what it did. No prose of
the data set is taken over. Left out, and counted by reason: rows marked suspect, rows of an older release of the same
workload, rows that ran out of memory or print no speed, chips the catalogue lacks, layouts that contradict themselves.
Of a sweep only the fastest variant is kept.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from knowledge_base.history_files import HISTORY_FOLDER, MODELS, SOURCES, NamedModel, NamedSource
from knowledge_base.past import PastCase
from projector.names import normalise
from tests.validation.write_history_changes import changes_of
from tests.validation.write_history_rows import NamedCase, serving_cases, training_cases

FILES = ("training.jsonl", "posttraining.jsonl", "serving.jsonl")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, and say what was kept and what was left out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with training.jsonl, serving.jsonl, advice_cases.jsonl, ...")
    parser.add_argument("--out", type=Path, default=HISTORY_FOLDER, help="where the history is written")
    given = parser.parse_args(arguments)
    left_out: Counter[str] = Counter()
    cases = published_of(given.folder, left_out)
    advice = given.folder / "advice_cases.jsonl"
    known = {normalise(named.case.model): named.case for named in cases if named.case.model}
    changes = changes_of(advice.read_text(encoding="utf-8"), known, left_out) if advice.exists() else []
    write(given.out, cases, changes)
    size = sum(path.stat().st_size for path in given.out.glob("*.jsonl"))
    print(f"{len(cases)} published, {len(changes)} changes, {size / 1e3:.0f} kB", file=sys.stderr)
    for reason, count in sorted(left_out.items(), key=lambda entry: (-entry[1], entry[0])):
        print(f"  left out {count}: {reason}", file=sys.stderr)
    return 0


def published_of(folder: Path, left_out: Counter[str]) -> list[NamedCase]:
    """The layouts that ran."""
    found: list[NamedCase] = []
    for name in FILES:
        path = folder / name
        if path.exists():
            text = path.read_text(encoding="utf-8")
            read = serving_cases if name == "serving.jsonl" else training_cases
            found += read(text, name, left_out)
    return sorted(found, key=lambda named: named.case.id)


def write(folder: Path, published: Sequence[NamedCase], changes: Sequence[NamedCase]) -> None:
    """models.jsonl, sources.jsonl, and one file a kind of case."""
    folder.mkdir(parents=True, exist_ok=True)
    everything = (*published, *changes)
    models = {
        named.case.model: NamedModel(
            model=named.case.model, family=named.case.family or named.case.model, architecture=named.case.architecture
        )
        for named in everything
        if named.case.model
    }
    titles = {named.source_key: named.case.source for named in everything}
    keys = {title: f"s{number}" for number, title in enumerate(sorted(titles), start=1)}
    sources = {title: NamedSource(key=keys[title], source=titles[title]) for title in titles}
    _write(folder / MODELS, (models[name].model_dump(mode="json", exclude_defaults=True) for name in sorted(models)))
    _write(folder / SOURCES, (sources[key].model_dump(mode="json", exclude_defaults=True) for key in sorted(sources)))
    for name, kind in (("published.jsonl", published), ("changes.jsonl", changes)):
        ordered = sorted(kind, key=lambda named: named.case.id)
        _write(folder / name, (_line(named, keys[named.source_key]) for named in ordered))


def _line(named: NamedCase, source: str) -> dict[str, Any]:
    case: PastCase = named.case
    kept = case.model_dump(mode="json", exclude_defaults=True, exclude={"architecture", "family", "source"})
    return {"id": case.id, **kept, "source": source}


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    lines = [json.dumps(row, ensure_ascii=True, separators=(",", ":")) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main())
