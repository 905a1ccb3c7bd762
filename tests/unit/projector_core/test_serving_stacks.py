"""Serving engines apart from chips: which stack a name means, what a stack changes, how sure a projection is."""

import pytest

from projector.catalog import architecture, chip
from projector.errors import InvalidDescription, UnknownName
from projector.project import project
from projector.serving_stacks import STACKS, serving_stack
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.serving_stack import ANY_ENGINE, ServingStack
from projector.specs.workload import WorkloadSpec


def served(engine: str | None = None, stack: ServingStack | None = None, tp: int = 4) -> float:
    """TPOT of Llama-3.1-70B in fp8 on H100 with 16 requests in flight."""
    workload = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=16, engine=engine)
    plan = ParallelismPlan(phase="serving", tp=tp, weight_dtype="fp8", max_num_seqs=16)
    found = project(
        plan,
        workload,
        architecture("llama-3.1-70b"),
        ClusterSpec(chip="h100-sxm", chips=tp),
        chip("h100-sxm"),
        stack=stack,
    )
    assert found.tpot_s is not None
    return found.tpot_s


def test_names_are_read_with_their_release() -> None:
    assert serving_stack("vllm 0.12.0").stack.engine == "vllm"
    assert serving_stack("TRTLLM 1.1.0rc2.post2").stack.name == "TensorRT-LLM since 0.20 (PyTorch)"
    assert serving_stack("TensorRT-LLM 0.14.0").stack.name == "TensorRT-LLM 0.5 to 0.19 (C++ runtime)"
    assert serving_stack("vLLM TPU 0.12.0").stack.engine == "vllm-tpu"


def test_an_engine_nobody_knows_is_an_error_with_the_nearest_names() -> None:
    with pytest.raises(UnknownName, match="unknown engine 'vlm") as raised:
        serving_stack("vlm 0.9")
    assert "vllm" in raised.value.nearest


def test_a_name_of_absurd_length_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="90 characters"):
        serving_stack("vllm " + "0" * 85)


@pytest.mark.parametrize("name", ["vllm", "vllm 9.9", "tensorrt-llm 0.1"])
def test_a_release_never_seen_falls_back_aloud_and_lowers_confidence(name: str) -> None:
    found = serving_stack(name)
    assert found.remark
    assert found.stack.fitted == ()


def test_a_projection_says_what_it_takes_for_the_engine() -> None:
    workload = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=16, engine="vllm 9.9")
    plan = ParallelismPlan(phase="serving", tp=4, weight_dtype="fp8", max_num_seqs=16)
    of = (plan, workload, architecture("llama-3.1-70b"), ClusterSpec(chip="h100-sxm", chips=4), chip("h100-sxm"))
    unseen = project(*of)
    assert "vllm 9.9 is newer than any seen: as vLLM since 0.8 (V1)" in unseen.assumptions
    seen = project(of[0], workload.model_copy(update={"engine": "vllm 0.19"}), *of[2:])
    wider, narrower = unseen.step_time_interval_s, seen.step_time_interval_s
    assert wider.high / unseen.step_time_s > narrower.high / seen.step_time_s


def test_an_engine_is_serving_only() -> None:
    with pytest.raises(ValueError, match="engine has no meaning in a training workload"):
        WorkloadSpec(phase="training", engine="vllm 0.19")


@pytest.mark.parametrize("field", ["kernel_factor", "link_factor"])
def test_what_takes_longer_slows_the_step(field: str) -> None:
    slower = ANY_ENGINE.model_copy(update={field: 3.0})
    assert served(stack=slower) > served(stack=ANY_ENGINE)


def test_a_better_memory_factor_never_passes_the_peak() -> None:
    profile = chip("h100-sxm")
    assert ANY_ENGINE.model_copy(update={"memory_factor": 2.0}).on(profile).calibration.hbm_efficiency_frac < 1


def test_links_do_not_matter_to_one_device() -> None:
    slower = ANY_ENGINE.model_copy(update={"link_factor": 3.0})
    assert served(stack=slower, tp=1) == served(stack=ANY_ENGINE, tp=1)


def test_every_stack_names_fitted_fields_it_has() -> None:
    for stack in STACKS:
        assert {name for name, _ in stack.fitted} <= set(ServingStack.model_fields)
        assert stack.since <= stack.last_seen
