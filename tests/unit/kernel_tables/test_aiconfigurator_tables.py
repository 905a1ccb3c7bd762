"""The real tables: needs the extra "kernel-tables" (make kernel-tables)."""

from importlib.util import find_spec

import pytest

from agents.kernel_tables.aiconfigurator import Aiconfigurator
from agents.kernel_tables.tables import StepQuestion, TabledSteps, Untabled
from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.specs.plan import ParallelismPlan

QUESTION = StepQuestion(decoding=16, prompt_tokens=1024, input_len=1024, output_len=1024)
INSTALLED = find_spec("aiconfigurator_core") is not None
real = [pytest.mark.kernel_tables, pytest.mark.skipif(not INSTALLED, reason="aiconfigurator-core is not installed")]


def steps(plan, model="llama-3.1-70b", hardware="h200", engine="trtllm", question=QUESTION):
    return Aiconfigurator().steps(question, plan, architecture(model), chip(hardware), engine)


def engine_of(tp, **fields):
    return ParallelismPlan(phase="serving", tp=tp, weight_dtype="fp8", kv_cache_dtype="fp8", **fields)


@pytest.mark.skipif(INSTALLED, reason="aiconfigurator-core is installed")
def test_without_the_package_the_way_to_get_it_is_named():
    with pytest.raises(InvalidDescription) as missing:
        Aiconfigurator()
    assert "kernel-tables" in missing.value.hint


class TestReal:
    pytestmark = real

    def test_a_dense_engine_has_steps_that_shrink_with_tp(self):
        two, eight = steps(engine_of(2)), steps(engine_of(8))
        assert isinstance(two, TabledSteps)
        assert isinstance(eight, TabledSteps)
        assert eight.decode_ms < two.decode_ms < two.mixed_ms
        assert two.tables == "aiconfigurator-core 0.12.0, trtllm on h200_sxm"

    def test_a_mixture_of_experts_has_steps(self):
        found = steps(engine_of(8, ep=8), model="deepseek-r1")
        assert isinstance(found, TabledSteps)
        assert 1 < found.decode_ms < 100

    @pytest.mark.parametrize(
        ("changed", "reason"),
        [
            ({"hardware": "mi300x"}, "no tables of mi300x"),
            ({"model": "megascale-530b"}, "no bundled configuration"),
            ({"engine": "some engine 1.0"}, "no tables of some engine"),
        ],
    )
    def test_what_it_does_not_know_is_said(self, changed, reason):
        found = steps(engine_of(8), **changed)
        assert isinstance(found, Untabled)
        assert reason in found.reason
