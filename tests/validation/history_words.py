"""Whether the words of a symptom help to find past changes: figures alone, words alone, and both.

    python -m tests.validation.history_words ../shared/groundtruth/advice_cases.jsonl

Each report that is in the bundled history asks for the five nearest changes of its phase and bottleneck, with every
case of its own source hidden, by the figures of its job, by its symptom in words, or by both. A change found counts
where it pulls one of the levers the report pulled. The difference to figures alone is bootstrapped over reports.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.rows import json_object
from knowledge_base.embed import MiniLmEmbedder
from knowledge_base.history_columns import Columns
from knowledge_base.history_files import bundled_history
from knowledge_base.history_words import chunk_of
from knowledge_base.past import PastCase, PastQuestion, PastRun
from tests.validation.write_history_facts import identifier

ASKED = tuple(PastRun.model_fields)
WAYS = ("figures", "words", "figures and words", "chance")
FIVE, RESAMPLES = 5, 2000

Floats = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print recall of a lever among five, a way a line, each against figures alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path, help="advice_cases.jsonl")
    text = parser.parse_args(arguments).reports.read_text(encoding="utf-8")
    symptoms = {identifier("chg", row["id"]): str(row["symptom"]) for row in map(json_object, _lines(text))}
    hits = measured(tuple(case for case in bundled_history().cases if case.kind == "change"), symptoms)
    chance = np.random.default_rng(0)
    print(f"{len(hits)} reports; a change among five that pulls one of the report's levers")
    for way, column in zip(WAYS, hits.T, strict=True):
        drawn = chance.integers(0, len(hits), (RESAMPLES, len(hits)))
        low, high = np.quantile((column - hits[:, 0])[drawn].mean(axis=1), (0.025, 0.975))
        print(f"{way:18} {column.mean():.3f}  against figures {column.mean() - hits[:, 0].mean():+.3f} "
              f"[{low:+.3f}, {high:+.3f}]")  # fmt: skip
    return 0


def measured(changes: tuple[PastCase, ...], symptoms: dict[str, str]) -> Floats:
    """1 where one of five changes pulls a lever of the report; shape [reports, WAYS]."""
    embedder, columns = MiniLmEmbedder(), Columns(changes)
    chunks = [chunk_of(case) for case in changes]
    vectors = embedder.embed([chunk.embedded_text for chunk in chunks if chunk is not None]).astype(np.float64)
    chance = np.random.default_rng(0)
    rows = []
    for case in changes:
        if case.id not in symptoms:
            continue
        seen = np.array([_comparable(case, other) for other in changes])
        pulls = np.array([bool(set(case.levers) & set(other.levers)) for other in changes])
        if not (seen & pulls).any():
            continue
        figures = columns.similarity(PastQuestion.model_validate({name: getattr(case, name) for name in ASKED}))
        words = vectors @ embedder.embed([symptoms[case.id]])[0].astype(np.float64)
        orders = (figures, words, figures + words, chance.random(len(changes)))
        rows.append([_found(order, seen, pulls) for order in orders])
    return np.array(rows, dtype=np.float64)


def _comparable(case: PastCase, other: PastCase) -> bool:
    """Of one phase and, as far as both say, one bottleneck, and of another source."""
    regimes = {case.bottleneck, other.bottleneck} - {None}
    return other.phase == case.phase and other.source.url != case.source.url and len(regimes) < 2


def _found(order: Floats, seen: NDArray[np.bool_], pulls: NDArray[np.bool_]) -> bool:
    rows = np.flatnonzero(seen)
    return bool(pulls[rows[np.argsort(-order[rows], kind="stable")[:FIVE]]].any())


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


if __name__ == "__main__":
    sys.exit(main())
