"""What ranks imply together: the one that shows most decides, others fill gaps, contradictions are told."""

from dataclasses import replace

from tests.unit.jobs.job_examples import part
from traces.implied_types import Implied, Inferred, ModelShapes, ProcessGroup
from traces.merge_implied import merge_implied
from traces.rank import RankParts


def sure(value: object, confidence: float = 1.0) -> Inferred[object]:
    return Inferred(value=value, confidence=confidence, basis="seen")


def rank(number: int, events: int, **implied: object) -> RankParts:
    one = part(f"{number}.json", rank=number, source=number)
    return replace(one, event_count=events, implied=Implied(**implied))  # type: ignore[arg-type]


def test_one_rank_speaks_for_itself() -> None:
    alone = part("a.json", rank=0, world=2)
    assert merge_implied([alone]) == (alone.implied, ())


def test_the_rank_that_shows_most_decides_and_contradiction_is_told() -> None:
    merged, told = merge_implied([rank(0, 5, chip_name=sure("A100")), rank(1, 9, chip_name=sure("H100"))])
    assert merged.chip_name is not None
    assert (merged.chip_name.value, merged.chip_name.basis) == ("H100", "seen")
    assert told == ("the files disagree on the chip: 'H100' was taken, 'A100' stands in 1 of them (rank 0)",)


def test_what_the_largest_does_not_say_another_may() -> None:
    merged, told = merge_implied([rank(0, 9), rank(3, 2, pp=sure(4, 0.9))])
    assert merged.pp is not None
    assert (merged.pp.value, merged.pp.basis) == (4, "seen (rank 3)")
    assert told == ()


def test_a_guess_gives_way_to_knowledge() -> None:
    merged, told = merge_implied([rank(0, 9, tp=sure(8, 0.4)), rank(1, 2, tp=sure(4, 0.9))])
    assert merged.tp is not None
    assert merged.tp.value == 4
    assert told == ()


def test_the_world_is_what_is_stated_else_the_largest_group_seen() -> None:
    seen = [rank(0, 9, world_size=sure(8, 0.5)), rank(1, 2, world_size=sure(16, 0.5))]
    assert merge_implied(seen)[0].world_size == Inferred(value=16, confidence=0.5, basis="seen (rank 1)")
    merged, told = merge_implied([*seen, rank(2, 1, world_size=sure(64))])
    assert merged.world_size is not None
    assert merged.world_size.value == 64
    assert told == ()
    stated = [rank(0, 9, world_size=sure(8)), rank(1, 2, world_size=sure(16))]
    assert merge_implied(stated)[1] == (
        "the files disagree on the world size: 16 was taken, 8 stands in 1 of them (rank 0)",
    )


def test_groups_are_united() -> None:
    world, left, right = (ProcessGroup(name=name, size=2, ranks=(0, 1)) for name in ("world", "left", "right"))
    merged, _ = merge_implied([rank(0, 2, groups=(world, left)), rank(1, 9, groups=(world, right))])
    assert merged.groups == (world, right, left)


def test_stages_of_a_pipeline_complete_one_another() -> None:
    first = ModelShapes(hidden_size=64, vocab_shard=1000, basis=(("vocab_shard", "embedding"), ("hidden_size", "gemm")))
    last = ModelShapes(hidden_size=64, layers=4, basis=(("layers", "attention"), ("hidden_size", "norm")))
    other = ModelShapes(hidden_size=32, experts=8)
    ranks = [rank(0, 5, shapes=first), rank(1, 9, shapes=last), rank(2, 1, shapes=other)]
    merged, _ = merge_implied(ranks)
    assert merged.shapes == ModelShapes(
        hidden_size=64,
        layers=4,
        vocab_shard=1000,
        basis=(("layers", "attention"), ("hidden_size", "norm"), ("vocab_shard", "embedding (rank 0)")),
    )


def test_a_job_that_is_no_language_model_has_no_shapes_of_one() -> None:
    ranks = [rank(0, 9, is_transformer_lm=sure(False)), rank(1, 2, shapes=ModelShapes(hidden_size=64))]
    assert merge_implied(ranks)[0].shapes == ModelShapes()


def test_a_chip_name_is_untrusted_text() -> None:
    _, (told,) = merge_implied([rank(0, 5, chip_name=sure("A\x1b[31m" + "x" * 500)), rank(1, 9, chip_name=sure("H"))])
    assert told.isprintable()
    assert len(told) < 250
