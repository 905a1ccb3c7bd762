"""Ranking by shared words: what counts as one word, what repetition wins, and what a slip of the pen costs."""

import pytest

from knowledge_base.fuse import ranks, reciprocal_rank
from knowledge_base.keyword import Subject, bm25, expanded, tokens


def subject(title: str, claim: str = "", aliases: tuple[str, ...] = ()) -> Subject:
    return Subject(title, aliases, (), claim)


SUBJECTS = {
    "fp8": subject("Low-precision (fp8) training", "Fp8 doubles the peak of matrix multiplication."),
    "exchange": subject("Expert parallelism and its all-to-all", "Tokens travel to their experts."),
    "zero": subject("ZeRO-3 shards the weights", "Weights are gathered for each layer."),
    "hybrid": subject("Hybrid sharding", "Weights are sharded inside a node.", ("HSDP",)),
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("fp8, H100!", ["fp8", "h100"]),
        ("ZeRO-3", ["zero-3", "zero", "3"]),
        ("all-to-all", ["all-to-all", "all", "to", "all"]),
        ("max_num_seqs", ["max-num-seqs", "max", "num", "seqs"]),
        ("PP2TP8 on v5p", ["pp2tp8", "pp", "tp", "on", "v5p"]),
        ("<script>", ["script"]),
        ("", []),
    ],
)
def test_tokens_keep_the_terms_of_the_field(text: str, found: list[str]) -> None:
    assert tokens(text) == found


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("fp8", "fp8"),
        ("all-to-all", "exchange"),
        ("zero-3", "zero"),
        ("HSDP", "hybrid"),
        ("experts", "exchange"),
        ("hybird shardng", "hybrid"),
        ("multiplications", "fp8"),
    ],
)
def test_a_shared_word_finds_its_note(query: str, first: str) -> None:
    scores = bm25(query, SUBJECTS)
    assert ranks(scores)[first] == 1


def test_what_shares_no_word_has_no_score() -> None:
    assert bm25("sourdough", SUBJECTS) == {}
    assert bm25("the and of", SUBJECTS) == {}
    assert bm25("fp8", {}) == {}
    assert set(bm25("fp8", SUBJECTS)) == {"fp8"}


def test_repetition_wins_nothing() -> None:
    once = subject("Sharding", "Weights are sharded in a node.")
    stuffed = subject("Sharding", "Weights are sharded in a node. " + "sharded " * 500)
    scores = bm25("sharded", {"once": once, "stuffed": stuffed})
    assert scores["once"] == scores["stuffed"]


def test_a_note_that_names_everything_is_about_nothing() -> None:
    every_word = " ".join(f"{one.title} {one.claim}" for one in SUBJECTS.values())
    stuffed = Subject("Notes", (), (), every_word * 3)
    scores = bm25("hybrid sharding", SUBJECTS | {"stuffed": stuffed})
    assert scores["hybrid"] > scores["stuffed"]


def test_an_abbreviation_is_read_in_words() -> None:
    assert "hybrid sharding" in expanded("HSDP on 8 nodes")
    assert expanded("HSDP on 8 nodes").startswith("HSDP on 8 nodes (")
    assert expanded("nothing to add") == "nothing to add"


def test_equal_scores_share_the_better_place() -> None:
    assert ranks({"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.5}) == {"b": 1, "a": 2, "c": 2, "d": 4}


def test_fusion_adds_reciprocal_places() -> None:
    fused = reciprocal_rank([(1.0, {"a": 1, "b": 2}), (0.5, {"b": 1})], constant=1)
    assert fused == pytest.approx({"a": 1 / 2, "b": 1 / 3 + 0.25})


def test_fusion_does_not_depend_on_the_order_of_the_rankings() -> None:
    lists = [(1.0, {"a": 1, "b": 2, "c": 3}), (1.0, {"a": 3, "b": 1, "c": 2}), (0.3, {"a": 2, "b": 3, "c": 1})]
    assert reciprocal_rank(lists) == reciprocal_rank(lists[::-1])
