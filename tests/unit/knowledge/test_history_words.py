"""The words of a symptom beside the figures: a second collection, opened only where there are words."""

import pytest
from history_examples import change, published, question

from knowledge_base.history_match import History
from knowledge_base.history_words import HISTORY_COLLECTION, ChangeWords, chunk_of
from knowledge_base.index import open_knowledge_base
from knowledge_base.store import open_embedded
from projector.errors import StoreBusy

QUEUES = {"moves": [{"field": "router", "before": "random", "after": "shortest queue"}], "levers": ["scheduler"]}
PADDING = {"moves": [{"field": "packing", "before": "off", "after": "on"}], "levers": ["packing"]}


@pytest.fixture
def history():
    """Two changes of other models that figures cannot tell apart, and a published layout."""
    other = {"model": "else", "family": "else", "architecture": {"parameters": 8e9, "experts": 0}, "baseline": None}
    return History([change("queues", **other, **QUEUES), change("padding", **other, **PADDING), published("layout")])


@pytest.fixture
def words(tmp_path, embedder):
    words = ChangeWords(embedder, lambda: open_embedded(tmp_path / "words", embedder, collection=HISTORY_COLLECTION))
    yield words
    words.close()


def test_words_bring_the_change_they_are_about_to_the_front(history, words):
    for said, expected in (("rows packing off", "padding"), ("router shortest queue", "queues")):
        found = history.past(question(words=said), near=words.nearness(said, history))
        changes = [match for match in found if match.case.kind == "change"]
        assert changes[0].case.id == expected
        assert changes[0].word_similarity > changes[1].word_similarity
    assert [match.word_similarity for match in history.past(question())] == [None, None, None]


def test_published_layouts_are_compared_as_figures_only(history, words):
    assert set(words.nearness("anything", history)) == {"queues", "padding"}
    assert chunk_of(published("layout")) is None


def test_only_what_is_new_is_embedded_and_what_is_gone_is_dropped(history, words, embedder):
    words.nearness("packing", history)
    before = len(embedder.calls)
    words.nearness("packing", history)
    assert len(embedder.calls) == before + 1
    fewer = History([case for case in history.cases if case.id != "queues"])
    assert set(words.nearness("packing", fewer)) == {"padding"}
    assert len(embedder.calls) == before + 2


def test_the_collection_of_changes_stands_beside_that_of_notes(tmp_path, embedder, history):
    knowledge, _ = open_knowledge_base(tmp_path / "store", embedder, folders=(), history=lambda: history)
    with knowledge:
        assert not (tmp_path / "store-history").exists()
        knowledge.past(question())
        assert not (tmp_path / "store-history").exists()
        found = knowledge.past(question(words="packing"))
        assert (tmp_path / "store-history").is_dir()
        assert {match.case.id: match.word_similarity is None for match in found}["layout"]
        assert not {match.case.id: match.word_similarity is None for match in found}["padding"]
        with pytest.raises(StoreBusy):
            open_embedded(tmp_path / "store-history", embedder, collection=HISTORY_COLLECTION)
    open_embedded(tmp_path / "store-history", embedder, collection=HISTORY_COLLECTION).close()


def test_the_best_change_is_among_the_matches_where_layouts_would_fill_them(history):
    layouts = [published(f"layout-{tp}", layout={"tp": tp}) for tp in (1, 2, 8)]
    found = History([*layouts, *history.cases]).past(question(), k=3)
    assert [match.case.kind for match in found] == ["published", "published", "change"]
