"""Random jobs, training and serving, with and without a current plan, for properties of proposals."""

from typing import Any

from hypothesis import strategies as st

from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest

MODELS = ("llama-3.1-8b", "qwen3-8b", "gpt-oss-120b", "llama-3.1-70b")
CHIPS = ("h100-sxm", "tpu-v5p", "tpu-v6e", "b200", "mi300x")
TRAINING_GOALS = (None, "step_time_s", "mfu", "memory_per_chip_gb")
SERVING_GOALS = (None, "itl_ms", "ttft_ms", "memory_per_gpu_gb", "total_throughput_tps_per_gpu")


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """A model on a few chips, for one of the goals."""
    chips = draw(st.sampled_from([1, 2, 4, 8, 16, 64]))
    serving = draw(st.booleans())
    body: dict[str, Any] = {
        "workload": {"model": draw(st.sampled_from(MODELS)), **draw(_served() if serving else _trained())},
        "cluster": {"chip": draw(st.sampled_from(CHIPS)), "chips": chips},
        "objective": draw(st.sampled_from(SERVING_GOALS if serving else TRAINING_GOALS)),
    }
    degrees = [degree for degree in (1, 2, 4, 8) if degree <= chips]
    if draw(st.booleans()):
        tp = draw(st.sampled_from(degrees))
        body["current_plan"] = {"phase": body["workload"]["phase"], "tp": tp, "dp": chips // tp}
    if draw(st.integers(0, 3)) == 0:
        body["constraints"] = {"fixed": {"tp": draw(st.sampled_from(degrees))}}
    return body


def _trained() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"phase": st.just("training"), "seq_len": st.sampled_from([2048, 8192]), "global_batch": st.just(64)}
    )


def _served() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "phase": st.just("serving"),
            "input_len": st.just(512),
            "output_len": st.just(128),
            "concurrency": st.sampled_from([1, 16, 128]),
        }
    )


def answer(body: dict[str, Any]) -> PlanResult:
    """By rules, without notes."""
    return run_plan(PlanRequest.model_validate(body), None, knowledge=NoKnowledge(), advisor=RulesAdvisor())
