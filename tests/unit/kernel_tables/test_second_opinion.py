"""What measured steps make of a projection, and what is said where there are none."""

import pytest

from agents.kernel_tables.tables import StepQuestion, TabledSteps, Untabled, second_opinion
from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

MODEL, HARDWARE = architecture("llama-3.1-8b"), chip("h100-sxm")
LOAD = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=32)


class Recorded:
    """Tables that know one engine; keeps what it was asked."""

    name = "recorded"

    def __init__(self, decode_ms: float = 5.0, mixed_ms: float = 20.0) -> None:
        self.answer = TabledSteps(tables="recorded 1.0", decode_ms=decode_ms, mixed_ms=mixed_ms)
        self.asked: list[StepQuestion] = []

    def steps(self, question, plan, model, hardware, engine):
        self.asked.append(question)
        return self.answer if plan.tp == 1 else Untabled(reason=f"no table of tp {plan.tp}")


def projected(**fields):
    plan = ParallelismPlan(phase="serving", chunked_prefill_tokens=512, **fields)
    return project(plan, LOAD, MODEL, ClusterSpec(chip=HARDWARE.id, chips=plan.devices), HARDWARE)


def opinion(tables, projection, load=LOAD):
    return second_opinion(projection, load, MODEL, HARDWARE, tables)


def test_tables_that_agree_change_nothing():
    projection = projected()
    mine = projection.serving
    found = opinion(Recorded(mine.decode_step_ms_pure, mine.decode_step_ms_mixed), projection)
    assert found.tpot_ms == pytest.approx(1e3 * projection.tpot_s)
    assert found.ttft_ms == pytest.approx(1e3 * projection.ttft_s)
    assert (found.decode_ratio, found.mixed_ratio) == pytest.approx((1, 1))


def test_steps_twice_as_long_double_both_latencies():
    projection = projected()
    mine = projection.serving
    found = opinion(Recorded(2 * mine.decode_step_ms_pure, 2 * mine.decode_step_ms_mixed), projection)
    assert found.tpot_ms == pytest.approx(2e3 * projection.tpot_s)
    assert found.ttft_ms == pytest.approx(2e3 * projection.ttft_s)
    assert found.tables == "recorded 1.0"


def test_the_question_is_of_one_attention_rank():
    tables = Recorded()
    opinion(tables, projected(dp=4, attention_dp=2))
    assert tables.asked == [StepQuestion(decoding=8, prompt_tokens=512, input_len=1024, output_len=256)]


def test_seats_bound_what_decodes():
    tables = Recorded()
    opinion(tables, projected(max_num_seqs=16))
    assert tables.asked[0].decoding == 16


def test_what_was_not_measured_is_said():
    assert opinion(Recorded(), projected(tp=2)) == Untabled(reason="no table of tp 2")


def test_a_training_projection_has_no_engine():
    load = WorkloadSpec(seq_len=2048, global_batch=8)
    plan = ParallelismPlan(grad_accum=8)
    projection = project(plan, load, MODEL, ClusterSpec(chip=HARDWARE.id, chips=1), HARDWARE)
    with pytest.raises(InvalidDescription, match="serving engines"):
        opinion(Recorded(), projection, load)
