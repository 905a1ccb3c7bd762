"""Retrieval of the notes that ship, on the labelled queries: what `python -m tests.validation.retrieval` prints."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest

from agents.planning.standings import LEAST_SIMILARITY
from knowledge_base.embed import MiniLmEmbedder
from knowledge_base.index import open_knowledge_base
from knowledge_base.note import NOTES_FOLDER, read_notes
from knowledge_base.places import Ranking
from knowledge_base.retrieve import KnowledgeBase
from tests.validation.retrieval import PARTS, Query, difference, found_by, lines_of, read_queries, scored

QUERIES = read_queries()
TEST = [query for query in QUERIES if query.part == "test"]
ANSWERED = [query for query in TEST if query.answers]

Found = Mapping[Ranking, Mapping[str, Sequence[str]]]


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    knowledge, _ = open_knowledge_base(tmp_path_factory.mktemp("kb") / "store", MiniLmEmbedder())
    with knowledge:
        yield knowledge


@pytest.fixture(scope="module")
def found(knowledge: KnowledgeBase) -> Found:
    rankings: tuple[Ranking, ...] = ("hybrid", "embedding")
    return {r: {q.id: [note.note_id for note in found_by(knowledge, q, r)] for q in ANSWERED} for r in rankings}


def test_the_queries_are_many_unlike_and_name_notes_that_exist() -> None:
    notes = {note.id for note in read_notes(NOTES_FOLDER)}
    assert len({query.id for query in QUERIES}) == len({query.query for query in QUERIES}) == len(QUERIES) >= 200
    assert {note for query in QUERIES for note in query.answers} <= notes
    assert {query.part for query in QUERIES} == set(PARTS)
    assert len(ANSWERED) >= 70
    assert len({query.kind for query in TEST}) == 8


def test_hybrid_retrieval_finds_what_answers(found: Found) -> None:
    assert scored(ANSWERED, found["hybrid"]).recall[5].mean() >= 0.95


def test_hybrid_is_not_worse_than_embedding_alone(found: Found) -> None:
    hybrid, embedding = (scored(ANSWERED, found[ranking]).reciprocal for ranking in ("hybrid", "embedding"))
    _, _, high = difference(hybrid, embedding)
    assert high > 0


def test_queries_without_an_answer_are_mostly_far_from_every_note(knowledge: KnowledgeBase) -> None:
    unanswered = [query for query in TEST if not query.answers]
    first = [found_by(knowledge, query, "hybrid")[0].similarity for query in unanswered]
    assert np.mean([similarity < LEAST_SIMILARITY for similarity in first]) >= 0.8


def test_the_measures_by_hand() -> None:
    two, one = (Query(f"q00{n}", "x", "training", "?", answers) for n, answers in ((2, ("a", "b")), (4, ("c",))))
    score = scored([two, one], {"q002": ["x", "a", "y", "z", "w", "b"], "q004": ["x", "y"]})
    assert score.recall[1].tolist() == [0, 0]
    assert score.recall[5].tolist() == [0.5, 0]
    assert score.any_found[3].tolist() == [1, 0]
    assert score.reciprocal.tolist() == [0.5, 0]
    lists = {"hybrid": {"q002": ["a", "b"], "q004": ["c"]}}
    lists |= {ranking: {"q002": ["x"], "q004": ["y"]} for ranking in ("embedding", "keyword")}
    text = "\n".join(lines_of("test", [two, one], lists))
    assert "MRR of hybrid less embedding: +1.000 [+1.000, +1.000]: better" in text
    assert "MRR of embedding less keyword: +0.000 [+0.000, +0.000]: not told apart" in text


def test_a_bootstrap_repeats() -> None:
    one, other = np.array([1.0, 0.5, 0.2, 1.0]), np.array([0.5, 0.5, 0.5, 0.5])
    assert difference(one, other) == difference(one, other)
