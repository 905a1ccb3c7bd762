"""Properties of the search space: candidates are legal, keep the constraints, and rank the same in any company."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projector.catalog import architecture, chip
from projector.legality import check, legal_mask
from projector.project import project_many
from projector.search_space import candidates, enumerate_meshes, usable_cluster
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Bounds, Constraints
from projector.specs.plan import MESH_AXES
from projector.specs.plan_batch import FIELDS, PlanBatch
from projector.specs.workload import WorkloadSpec

MODELS = st.sampled_from(["llama-3.1-8b", "qwen3-8b", "mixtral-8x7b", "gpt-oss-120b", "gpt3-175b"])
CHIPS = st.sampled_from(["h100-sxm", "b200", "a100-80-sxm", "mi300x", "tpu-v5p", "tpu-v6e"])
COUNTS = st.sampled_from([1, 2, 4, 6, 8, 12, 16, 32, 64, 128])


@st.composite
def workloads(draw):
    if draw(st.booleans()):
        return WorkloadSpec(seq_len=draw(st.sampled_from([2048, 3072, 8192])), global_batch=draw(st.integers(1, 96)))
    return WorkloadSpec(phase="serving", input_len=512, output_len=128, concurrency=draw(st.integers(1, 300)))


@st.composite
def constraints(draw):
    fixed = draw(st.dictionaries(st.sampled_from(["tp", "pp", "dp"]), st.sampled_from([1, 2, 4]), max_size=2))
    bounds = {
        axis: Bounds(low=draw(st.sampled_from([None, 1, 2])), high=draw(st.sampled_from([None, 2, 8])))
        for axis in draw(st.lists(st.sampled_from(["cp", "ep", "micro_batch"]), unique=True, max_size=2))
    }
    most = draw(st.sampled_from([None, 3, 8, 20]))
    return Constraints(fixed=fixed, bounds=bounds, max_chips=most, allow_numerics_changes=draw(st.booleans()))


@given(workloads(), MODELS, CHIPS, COUNTS, constraints(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_every_candidate_is_legal_and_keeps_the_constraints(workload, model, chip_name, count, limits, random):
    known, profile = architecture(model), chip(chip_name)
    cluster = ClusterSpec(chip=chip_name, chips=count)
    plans = candidates(workload, known, cluster, profile, limits, None)
    usable = usable_cluster(cluster, limits, profile)
    assert legal_mask(plans, workload, known, usable, profile).all()
    for field, value in limits.fixed.items():
        assert (plans.columns[field] == value).all()
    for field, bounds in limits.bounds.items():
        assert (plans.columns[field] >= (bounds.low or 0)).all()
        assert (plans.columns[field] <= (bounds.high or 10**9)).all()
    if limits.max_chips is not None:
        assert (plans.devices <= limits.max_chips * profile.devices_per_chip).all()
    for index in random.sample(range(len(plans)), min(5, len(plans))):
        assert check(plans[index], workload, known, usable, profile) == ()


@given(workloads(), MODELS, CHIPS, COUNTS)
@settings(max_examples=30, deadline=None)
def test_candidates_are_distinct(workload, model, chip_name, count):
    cluster = ClusterSpec(chip=chip_name, chips=count)
    plans = candidates(workload, architecture(model), cluster, chip(chip_name), Constraints(), None)
    codes = np.stack([np.unique(plans.columns[field], return_inverse=True)[1] for field in FIELDS], axis=1)
    assert len(np.unique(codes, axis=0)) == len(plans)


@given(st.integers(0, 9), st.integers(1, 4))
def test_a_power_of_two_has_as_many_meshes_as_stars_and_bars_say(power, axes):
    meshes = enumerate_meshes(2**power, MESH_AXES[:axes])
    assert len(set(meshes)) == len(meshes) == comb(power + axes - 1, axes - 1)


@given(st.integers(1, 300), st.integers(1, 3))
@settings(max_examples=40)
def test_every_mesh_covers_the_devices(devices, axes):
    for mesh in enumerate_meshes(devices, MESH_AXES[:axes]):
        assert mesh.replica * mesh.data * mesh.seq * mesh.model == devices


@pytest.mark.parametrize(
    ("workload", "model", "chip_name", "objective"),
    [
        (WorkloadSpec(seq_len=4096, global_batch=32), "llama-3.1-8b", "h100-sxm", "tokens_per_s_per_chip"),
        (WorkloadSpec(phase="serving", input_len=512, output_len=128, concurrency=32), "gpt-oss-120b", "b200",
         "decode_throughput_tps_per_gpu"),
    ],
)  # fmt: skip
def test_infeasible_company_does_not_change_the_order(workload, model, chip_name, objective):
    """Plans that cannot fit are added to the batch: the others keep their figures, so their order."""
    known, profile = architecture(model), chip(chip_name)
    cluster = ClusterSpec(chip=chip_name, chips=8)
    plans = candidates(workload, known, cluster, profile, Constraints(), None)
    scored = project_many(plans, workload, known, cluster, profile)
    misfits = plans.take(~scored.fits)
    company = project_many(PlanBatch.concat([misfits, plans, misfits]), workload, known, cluster, profile)
    alone, among = scored.objective(objective), company.objective(objective)
    np.testing.assert_array_equal(alone, among[len(misfits) : len(misfits) + len(plans)])
