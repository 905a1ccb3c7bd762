"""The refit of serving constants: parameters touch what they belong to, groups are left out, planted errors found."""

import numpy as np

from agents.evaluation.refusal import Refused
from agents.evaluation.serving_cases import ServingCase, serving_case_of
from agents.evaluation.serving_csv import read_serving_csv
from agents.evaluation.serving_folds import serving_folds
from agents.evaluation.serving_parameters import SERVING_PARAMETERS
from agents.evaluation.serving_refit import observation_weights, observations, serving_linear
from agents.evaluation.serving_rows import ServingRow
from agents.evaluation.serving_scored import ServingScored, score_serving
from projector.serving_stacks import STACKS

HEADER = (
    "id,silicon_data_source,backend,backend_version,model_path,system,precision,mode,isl,osl,gemm_quant_mode,"
    "moe_quant_mode,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,silicon_ttft_ms,"
    "silicon_tpot_ms"
)


def cases(tpot_ms: float = 10.0) -> list[ServingCase]:
    """Llama-3.1-70B on two chips by two engines, four loads each."""
    lines = [
        f"{engine}-{chip}-{conc},x; silicon_concurrency={conc},{engine},{release},meta-llama/Llama-3.1-70B,"
        f"{chip},fp8,agg,1024,1024,fp8,fp8,{conc},4,1,1,1,1,200,{tpot_ms + conc / 100}"
        for engine, release in (("vllm", "0.19.0"), ("trtllm", "1.0.0"))
        for chip in ("h200_sxm", "b200_sxm")
        for conc in (4, 16, 64, 128)
    ]
    rows = read_serving_csv("\n".join((HEADER, *lines)), "points.csv")
    return [serving_case_of(row) for row in rows if isinstance(row, ServingRow)]


def scored(given: list[ServingCase]) -> list[ServingScored]:
    """All of them, projected."""
    found = score_serving(given)
    assert not [one for one in found if isinstance(one, Refused)]
    return [one for one in found if isinstance(one, ServingScored)]


def test_no_parameter_knows_a_model_or_a_row() -> None:
    owners = {name for one in SERVING_PARAMETERS for name in one.members if one.owner == "stack"}
    assert owners == {stack.name for stack in STACKS}
    assert {one.owner for one in SERVING_PARAMETERS} == {"stack", "chip"}


def test_loads_of_one_layout_are_projected_together_as_one_by_one() -> None:
    given = cases()
    alone = [scored([case])[0].projected for case in given]
    assert [one.projected for one in scored(given)] == alone


def test_a_parameter_bears_on_its_own_engine_alone() -> None:
    ones = scored(cases())
    seen = observations(ones)
    linear = serving_linear(ones, seen)
    place = next(number for number, one in enumerate(linear.parameters) if one.name.endswith("(V1): kernel_factor"))
    moved = {one.one.case.row.engine for number, one in enumerate(seen) if abs(linear.jacobian[number, place]) > 1e-3}
    assert moved == {"vllm"}
    assert linear.rows[place] == 8


def test_measured_points_twice_as_slow_pull_the_constants_up() -> None:
    ones = scored(cases())
    linear = serving_linear(ones, observations(ones))
    weights = observation_weights(observations(ones))
    every = np.ones(len(weights), dtype=np.bool_)
    slow = scored(cases(tpot_ms=20.0))
    other = serving_linear(slow, observations(slow))
    steps = [number for number, one in enumerate(linear.parameters) if one.field == "kernel_factor"]
    assert (other.fitted(every, weights)[steps] > linear.fitted(every, weights)[steps]).all()


def test_folds_print_parameters_with_what_bears_on_them() -> None:
    found = serving_folds(scored(cases()))
    assert {one.name for one in found.figures} >= {"as projected", "own (family, chip) group left out"}
    assert all(one.groups <= 2 for one in found.parameters)
    assert [one.name for one in found.intervals] == ["dense, engine seen", "dense, engine not seen"]
