"""`--plan dp=8,tp=4` of `shardwise project`."""

import pytest

from app.commands.project import plan_of
from app.validation import InvalidRequest
from projector.errors import InvalidDescription, UnknownName


def test_fields_are_read_by_their_type() -> None:
    plan = plan_of("dp=8, tp=4,sp=true,recompute=full,zero_stage=3", "training")
    assert (plan.dp, plan.tp, plan.sp, plan.recompute, plan.zero_stage) == (8, 4, True, "full", 3)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("tpp=4", UnknownName, "unknown plan field 'tpp'"),
        ("tp", InvalidDescription, "'tp'"),
        ("", InvalidDescription, "names no field"),
        (" , ", InvalidDescription, "names no field"),
        ("tp=4,tp=8", InvalidDescription, "'tp=8'"),
        ("tp=four", InvalidRequest, "tp: "),
        ("dp=6,fsdp=4", InvalidRequest, "fsdp 4 does not divide dp 6"),
        ("phase=serving", InvalidDescription, "phase=serving"),
    ],
)
def test_what_is_wrong_is_named(text, error, message) -> None:
    with pytest.raises(error, match=message):
        plan_of(text, "training")
