"""How well retrieval finds the notes that answer a question: hybrid, embedding alone and keyword alone.

    python -m tests.validation.retrieval

`retrieval_queries.jsonl` holds labelled queries. Those named q were written before anything was tuned: odd ones tune
the ranking, even ones test it. Misses of the test part led to the plain words of the glossary: it is no longer unseen.
Those named f were written after that; their misses led to abbreviations of the glossary, the ranking by body and the
one by filing (whose weights q decided). Those named u are unseen: written after everything, they changed nothing.

A query counts at k by the share of its answering notes among the first k (of k, where there are more); "any" is whether
at least one is there. Queries without an answer score abstention: the similarity of the first note should lie below
that from which planning takes a note as evidence.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from agents.planning.standings import LEAST_SIMILARITY
from knowledge_base.embed import MiniLmEmbedder
from knowledge_base.index import open_knowledge_base
from knowledge_base.note import HardwareKind
from knowledge_base.places import Ranking
from knowledge_base.retrieve import KnowledgeBase, RetrievedNote
from projector.specs.bottleneck import Cause
from projector.specs.plan import Phase

QUERIES: Final = Path(__file__).with_name("retrieval_queries.jsonl")
RANKINGS: Final[tuple[Ranking, ...]] = get_args(Ranking)
DEPTHS: Final = (1, 3, 5)
PARTS: Final = ("tuning", "test", "fresh", "unseen")
RESAMPLES: Final = 10_000
SEED: Final = 20261201
_K: Final = 50


@dataclass(frozen=True)
class Query:
    """A labelled query. answers: the notes that answer it; none where no note does."""

    id: str
    kind: str
    phase: Phase
    query: str
    answers: tuple[str, ...]
    causes: tuple[Cause, ...] = ()
    levers: tuple[str, ...] = ()
    hardware_kind: HardwareKind | None = None

    @property
    def part(self) -> str:
        """q: odd numbers tune, even ones test; f: fresh; u: unseen."""
        later = {"f": "fresh", "u": "unseen"}
        return later.get(self.id[0]) or PARTS[(int(self.id[1:]) + 1) % 2]


@dataclass(frozen=True)
class Scores:
    """Of the queries of a part that have an answer, in their order."""

    recall: Mapping[int, NDArray[np.float64]]
    any_found: Mapping[int, NDArray[np.float64]]
    reciprocal: NDArray[np.float64]


def read_queries() -> tuple[Query, ...]:
    """The labelled queries."""
    rows = [json.loads(line) for line in QUERIES.read_text().splitlines()]
    return tuple(Query(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}) for row in rows)


def found_by(knowledge: KnowledgeBase, query: Query, ranking: Ranking) -> tuple[RetrievedNote, ...]:
    """The first 50 notes."""
    return knowledge.search(
        query.query,
        phase=query.phase,
        causes=query.causes,
        levers=query.levers,
        hardware_kind=query.hardware_kind,
        k=_K,
        ranking=ranking,
    )


def scored(queries: Sequence[Query], found: Mapping[str, Sequence[str]]) -> Scores:
    """found: note ids by query id, best first."""
    places = [sorted(found[one.id].index(note) for note in one.answers if note in found[one.id]) for one in queries]
    sizes = [len(one.answers) for one in queries]

    def share(k: int) -> NDArray[np.float64]:
        return np.array([sum(p < k for p in ps) / min(k, n) for ps, n in zip(places, sizes, strict=True)])

    return Scores(
        recall={k: share(k) for k in DEPTHS},
        any_found={k: (share(k) > 0).astype(float) for k in DEPTHS},
        reciprocal=np.array([1 / (ps[0] + 1) if ps else 0.0 for ps in places]),
    )


def difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean of one - other over paired queries, and its 95 % interval by a paired bootstrap."""
    paired = one - other
    picked = np.random.default_rng(SEED).integers(len(paired), size=(RESAMPLES, len(paired)))
    low, high = np.quantile(paired[picked].mean(axis=1), [0.025, 0.975])
    return float(paired.mean()), float(low), float(high)


def lines_of(
    part: str, queries: Sequence[Query], found: Mapping[Ranking, Mapping[str, Sequence[str]]]
) -> Iterator[str]:
    """The table of one part, the comparisons, and every miss of the hybrid ranking."""
    asked = [one for one in queries if one.part == part and one.answers]
    scores = {ranking: scored(asked, found[ranking]) for ranking in RANKINGS}
    yield f"\n{part} part, {len(asked)} queries with an answer"
    yield f"{'':10} {'recall@1':>9} {'@3':>6} {'@5':>6} {'any@1':>7} {'@3':>6} {'@5':>6} {'MRR':>7}"
    for ranking, score in scores.items():
        shares = [*(score.recall[k].mean() for k in DEPTHS), *(score.any_found[k].mean() for k in DEPTHS)]
        widths = zip((9, 6, 6, 7, 6, 6), shares, strict=True)
        yield f"{ranking:10} {' '.join(f'{s:{w}.3f}' for w, s in widths)} {score.reciprocal.mean():7.3f}"
    for one, other in (("hybrid", "embedding"), ("hybrid", "keyword"), ("embedding", "keyword")):
        for name in ("MRR", "recall@5"):
            pair = [scores[r].reciprocal if name == "MRR" else scores[r].recall[5] for r in (one, other)]
            mean, low, high = difference(*pair)
            verdict = "better" if low > 0 else "worse" if high < 0 else "not told apart"
            yield f"{name} of {one} less {other}: {mean:+.3f} [{low:+.3f}, {high:+.3f}]: {verdict}"
    yield "recall@5 of hybrid by kind: " + ", ".join(_by_kind(asked, scores["hybrid"]))
    for query, recall in zip(asked, scores["hybrid"].recall[5], strict=True):
        if recall < 1:
            ids = list(found["hybrid"][query.id])
            missing = [(n, ids.index(n) + 1 if n in ids else None) for n in query.answers if n not in ids[:5]]
            yield f"miss {query.id} ({query.kind}) {query.query!r}: " + ", ".join(f"{n} at {p}" for n, p in missing)


def _by_kind(asked: Sequence[Query], score: Scores) -> Iterator[str]:
    for kind in dict.fromkeys(one.kind for one in asked):
        picked = [one.kind == kind for one in asked]
        yield f"{kind} {score.recall[5][picked].mean():.3f} (n {sum(picked)})"


def abstention(part: str, queries: Sequence[Query], first: Mapping[str, float]) -> str:
    """first: similarity of the first note by query id."""
    none = [one for one in queries if one.part == part and not one.answers]
    some = [one for one in queries if one.part == part and one.answers]
    silent = sum(first[one.id] < LEAST_SIMILARITY for one in none)
    lost = sum(first[one.id] < LEAST_SIMILARITY for one in some)
    return (
        f"{part} part: {silent} of {len(none)} queries without an answer stay below {LEAST_SIMILARITY}, "
        f"and {lost} of {len(some)} with one do"
    )


def main() -> None:
    """Print every part."""
    queries = read_queries()
    with tempfile.TemporaryDirectory() as name:
        knowledge, report = open_knowledge_base(Path(name) / "store", MiniLmEmbedder())
        with knowledge:
            notes = {r: {one.id: found_by(knowledge, one, r) for one in queries} for r in RANKINGS}
    found = {r: {i: [note.note_id for note in answer] for i, answer in notes[r].items()} for r in RANKINGS}
    first = {i: max(note.similarity for note in answer[:1]) for i, answer in notes["hybrid"].items()}
    print(f"{len(queries)} queries over {report.notes} notes, {report.chunks} passages")
    for part in dict.fromkeys(one.part for one in queries):
        print("\n".join(lines_of(part, queries, found)))
        print(abstention(part, queries, first))


if __name__ == "__main__":
    main()
