"""Titles and changes say what the numbers say."""

import pytest

from agents.planning.titles import KEEP_TITLE, changes_of, layout_title, title_of
from projector.specs.plan import ParallelismPlan


@pytest.mark.parametrize(
    ("before", "after", "title"),
    [
        (
            ParallelismPlan(tp=8, dp=8),
            ParallelismPlan(tp=4, dp=16),
            "Less tensor parallelism (8 to 4) and more data parallelism (8 to 16)",
        ),
        (
            ParallelismPlan(dp=64),
            ParallelismPlan(dp=8, fsdp=8, pp=8, vp=2, micro_batch=2),
            "More pipeline parallelism (1 to 8), less data parallelism (64 to 8), more weight sharding (1 to 8) "
            "and 2 more changes",
        ),
        (
            ParallelismPlan(phase="serving", tp=8, cuda_graphs=False),
            ParallelismPlan(phase="serving", tp=8, cuda_graphs=True),
            "CUDA graphs on",
        ),
        (ParallelismPlan(recompute="none"), ParallelismPlan(recompute="full"), "Recompute full instead of none"),
        (ParallelismPlan(micro_batch=4), ParallelismPlan(micro_batch=1, grad_accum=4), "Smaller micro-batch (4 to 1)"),
        (ParallelismPlan(tp=8), ParallelismPlan(tp=8), KEEP_TITLE),
    ],
)
def test_title(before, after, title):
    assert title_of(before, after) == title


def test_the_c3_mistake_cannot_be_made():
    """A published proposal was titled a reduction of model parallelism while it went from 4 to 8."""
    title = title_of(ParallelismPlan(dp=4, cp=16, tp=4), ParallelismPlan(dp=2, cp=16, tp=8))
    assert title == "More tensor parallelism (4 to 8) and less data parallelism (4 to 2)"


def test_fields_of_the_other_phase_are_no_change():
    before = ParallelismPlan(phase="training", max_num_seqs=64)
    assert changes_of(before, before.model_copy(update={"max_num_seqs": 8}), {}) == ()


def test_every_changed_field_is_listed_with_both_values():
    changes = changes_of(ParallelismPlan(tp=8, dp=2, sp=True), ParallelismPlan(tp=4, dp=4), {})
    assert [(change.field, change.before, change.after) for change in changes] == [
        ("dp", "2", "4"),
        ("tp", "8", "4"),
        ("sp", "on", "off"),
    ]


def test_a_plan_from_scratch_is_titled_by_its_layout():
    plain = ParallelismPlan(dp=32, fsdp=32)
    assert layout_title(plain, ParallelismPlan(tp=8, dp=4, fsdp=4, recompute="full")) == (
        "Tensor parallelism 8, data parallelism 4, weight sharding 4; recompute full instead of none"
    )
    assert layout_title(ParallelismPlan(), ParallelismPlan()) == "One device"


def test_recomputing_every_layer_is_not_called_fewer():
    some, every = (ParallelismPlan(recompute="full", recompute_layers=layers) for layers in (40, 0))
    assert title_of(some, every) == "Recomputed layers a stage without a cap instead of 40"
    assert title_of(every, some) == "Recomputed layers a stage 40 instead of without a cap"
