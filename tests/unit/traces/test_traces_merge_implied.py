"""What ranks imply together: the best supported value, groups that complete each other, contradictions told."""

import pickle
from dataclasses import replace

from trace_examples import kernel, trace_of

from traces.implied_types import Implied, Inferred, ModelShapes, ProcessGroup
from traces.merge_implied import merge_implied
from traces.rank import RankParts, rank_parts


def sure(value: object, confidence: float = 0.9) -> Inferred[object]:
    return Inferred(value=value, confidence=confidence, basis="seen")


def rank(number: int, events: int = 5, **implied: object) -> RankParts:
    one = rank_parts(trace_of(kernel("nvjet", 0, 1), distributedInfo={"rank": number, "world_size": 16}))
    world = {"world_size": sure(16, 1.0)}
    return replace(one, event_count=events, implied=Implied(**(world | implied)))  # type: ignore[arg-type]


def test_the_value_most_ranks_support_counts_and_the_others_are_told() -> None:
    ranks = [rank(0, 9, tp=sure(8, 0.6)), *(rank(number, tp=sure(4)) for number in (1, 2, 3))]
    merged, told = merge_implied(ranks)
    assert merged.tp is not None
    assert (merged.tp.value, merged.tp.basis) == (4, "seen (rank 1)")
    assert told == ("the files disagree on the tp degree: 4 was taken, 8 stands in 1 of them (rank 0)",)


def test_many_guesses_do_not_outweigh_one_that_knows() -> None:
    ranks = [rank(0, tp=sure(8)), *(rank(number, 9, tp=sure(4, 0.4)) for number in range(1, 9))]
    merged, told = merge_implied(ranks)
    assert merged.tp is not None
    assert (merged.tp.value, told) == (8, ())


def test_ranks_and_uses_of_a_group_are_put_together() -> None:
    short = ProcessGroup(name="3", size=4, description="mesh_tp")
    seen = ProcessGroup(name="3", size=4, ranks=(0, 1, 2, 3), description="mesh_tp", axis="tp", use="reduce")
    idle = seen.model_copy(update={"axis": "unknown", "use": "unused"})
    other = seen.model_copy(update={"ranks": (4, 5, 6, 7)})
    merged, _ = merge_implied([rank(0, 9, groups=(short,)), rank(1, groups=(idle,)), rank(2, groups=(seen, other))])
    assert merged.groups == (seen, other)
    busy = seen.model_copy(update={"use": "pair"})
    assert merge_implied([rank(0, groups=(seen,)), rank(1, groups=(busy,))])[0].groups[0].use == "many"


def test_groups_of_all_ranks_tell_degrees_that_none_knows_alone() -> None:
    """One rank declares the tensor-parallel group, another the stages."""
    tp = ProcessGroup(name="1", size=4, ranks=(0, 1, 2, 3), description="mesh_tp")
    pp = ProcessGroup(name="2", size=2, ranks=(4, 12), description="mesh_pp")
    merged, _ = merge_implied([rank(0, groups=(tp,)), rank(4, groups=(pp,))])
    assert [value.value for value in (merged.tp, merged.pp, merged.dp, merged.cp) if value] == [4, 2, 2, 1]


def test_why_a_degree_is_unknown_stays_unless_another_rank_knows_it() -> None:
    why = (("tp", "its groups have 4 and 8 ranks"), ("pp", "stages, or parts of a context"))
    merged, _ = merge_implied([rank(0, unresolved=why), rank(1, pp=sure(2))])
    assert merged.unresolved == (("tp", "its groups have 4 and 8 ranks"),)
    assert merged.pp is not None


def test_sizes_that_ranks_disagree_on_are_told_and_hints_are_not() -> None:
    def sized(number: int, hidden: int, confidence: float) -> RankParts:
        return rank(
            number, 9 - number, shapes=ModelShapes(hidden_size=hidden, confidences=(("hidden_size", confidence),))
        )

    merged, told = merge_implied([sized(0, 4096, 0.9), sized(1, 2048, 0.9)])
    assert merged.shapes.hidden_size == 4096
    assert told == ("the files disagree on the hidden size: 4096 was taken, 2048 stands in 1 of them (rank 1)",)
    assert merge_implied([sized(0, 4096, 0.9), sized(1, 2048, 0.4)])[1] == ()


def test_confidences_come_with_the_sizes_they_belong_to() -> None:
    first = ModelShapes(hidden_size=64, confidences=(("hidden_size", 0.95),))
    second = ModelShapes(hidden_size=64, layers=4, confidences=(("hidden_size", 0.6), ("layers", 0.9)))
    merged, _ = merge_implied([rank(0, 9, shapes=first), rank(1, shapes=second)])
    assert merged.shapes.confidences == (("hidden_size", 0.95), ("layers", 0.9))


def test_the_order_of_the_ranks_changes_nothing() -> None:
    ranks = [rank(number, 9 - number, tp=sure(4 + number % 2), dtype=sure("bf16")) for number in range(4)]
    assert merge_implied(ranks)[0].tp == merge_implied(ranks[::-1])[0].tp


def test_what_a_rank_implies_crosses_to_another_process() -> None:
    every = Implied(
        chip_name=sure("NVIDIA B200"),
        tp=sure(8),
        sp=sure(True),
        phase=sure("serving"),
        dtype=sure("fp8"),
        weight_dtype=sure("fp4"),
        framework=sure("vllm"),
    )
    assert pickle.loads(pickle.dumps(every)) == every  # noqa: S301 - bytes of our own
