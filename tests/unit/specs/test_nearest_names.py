"""What others call a key leads to ours."""

import pytest

from projector.nearest import OTHER_NAMES, nearest_names
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

PLAN = tuple(ParallelismPlan.model_fields)


@pytest.mark.parametrize(("theirs", "ours"), OTHER_NAMES.items())
def test_the_names_of_others_lead_to_keys_that_exist_and_are_not_ours(theirs, ours):
    keys = (*PLAN, *WorkloadSpec.model_fields)
    assert theirs not in keys
    assert nearest_names(theirs, keys)[0] == ours


def test_a_typo_leads_to_what_is_spelled_alike():
    assert nearest_names("attention_backed", PLAN)[0] == "attention_backend"
    assert nearest_names("MOE_EXPERT_DTYPE", PLAN)[0] == "expert_dtype"
    assert nearest_names("zzz", PLAN) == ()
