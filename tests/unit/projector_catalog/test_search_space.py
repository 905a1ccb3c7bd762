import json
import os
from math import comb
from pathlib import Path

import pytest

import projector.search_space as search_space
from projector.catalog import architecture, chip
from projector.errors import InvalidDescription, UnknownName
from projector.search.factors import divisors, ordered_factorisations
from projector.search_space import candidates, enumerate_meshes, explore, usable_cluster
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Bounds, Constraints
from projector.specs.plan import MeshForm, ParallelismPlan
from projector.specs.workload import WorkloadSpec

FOUR = ("replica", "data", "seq", "model")
THREE = ("data", "seq", "model")
TRAIN = WorkloadSpec(model="llama-3.1-8b", seq_len=8192, global_batch=128)
SERVE = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=64)


@pytest.mark.parametrize(
    ("devices", "axes", "forms"),
    [(256, FOUR, 165), (512, THREE, 55), (16, FOUR, 35), (128, THREE, 36), (2, THREE, 3)],
)
def test_the_five_spaces_of_prompts(devices, axes, forms):
    meshes = enumerate_meshes(devices, axes)
    power = devices.bit_length() - 1
    assert len(meshes) == len(set(meshes)) == forms == comb(power + len(axes) - 1, len(axes) - 1)
    assert all(mesh.replica * mesh.data * mesh.seq * mesh.model == devices for mesh in meshes)


def test_the_adopted_meshes_are_among_them():
    assert MeshForm(data=16, seq=4, model=8) in enumerate_meshes(512, THREE)
    assert MeshForm(data=8, seq=16, model=2) in enumerate_meshes(256, FOUR)


def test_devices_that_are_no_power_of_two():
    assert len(enumerate_meshes(12, ("data", "model"))) == 6
    assert divisors(12) == (1, 2, 3, 4, 6, 12)
    assert ordered_factorisations(6, 2).tolist() == [[1, 6], [2, 3], [3, 2], [6, 1]]


def test_mesh_axes_are_checked():
    with pytest.raises(UnknownName):
        enumerate_meshes(8, ("data", "modle"))
    with pytest.raises(InvalidDescription):
        enumerate_meshes(8, ("data", "data"))
    with pytest.raises(InvalidDescription):
        enumerate_meshes(0, ("data",))


def space(workload=TRAIN, model="llama-3.1-8b", chip_name="h100-sxm", chips=8, constraints=None, current=None, **shape):
    known = None if model is None else architecture(model)
    cluster = ClusterSpec(chip=chip_name, chips=chips, **shape)
    return candidates(workload, known, cluster, chip(chip_name), constraints or Constraints(), current)


def values(plans, field):
    return set(plans.columns[field].tolist())


def test_one_chip_still_leaves_choices_outside_the_mesh():
    plans = space(WorkloadSpec(seq_len=8192, global_batch=1), chips=1)
    recompute = zip(plans.recompute, plans.recompute_modules, plans.recompute_layers, strict=True)
    assert {tuple(map(str, one)) for one in recompute} == {
        ("none", "", "0"),
        ("selective", "", "0"),
        ("selective", "mlp", "0"),
        ("full", "", "16"),
        ("full", "", "0"),
    }


def test_recompute_of_a_part_is_that_of_what_the_model_has():
    mixed = space(model="deepseek-v3", chips=64)
    assert values(mixed, "recompute_modules") == {"", "mlp+moe"}
    assert {int(layers) for layers in mixed.recompute_layers[mixed.pp == 4]} == {0, 8}
    fixed = space(constraints=Constraints(fixed={"recompute_layers": 5, "recompute": "full"}))
    assert values(fixed, "recompute_layers") == {5}


def test_a_fixed_number_of_micro_batches_leaves_what_a_rank_pushes_through_at_once():
    plans = space(chips=8, constraints=Constraints(fixed={"grad_accum": 1, "tp": 1, "pp": 1, "cp": 1}))
    assert values(plans, "grad_accum") == {1}
    assert values(plans, "micro_batch") == {TRAIN.global_batch // 8}


def test_a_plan_from_scratch_shards_the_sequence_wherever_it_shards_tensors():
    plans = space(chips=8)
    assert plans.sp[plans.tp > 1].all()
    assert not space(constraints=Constraints(fixed={"sp": False})).sp.any()


def test_every_axis_is_tried():
    plans = space(WorkloadSpec(seq_len=262144, global_batch=128), chips=64)
    assert values(plans, "tp") == {1, 2, 4, 8}  # within the NVLink domain
    assert values(plans, "pp") >= {1, 2, 4, 8, 16}
    assert values(plans, "cp") >= {1, 2, 4, 8, 16, 32, 64}
    assert values(plans, "vp") >= {1, 2, 4, 8}
    assert values(plans, "zero_stage") == {0, 1, 3}
    assert values(plans, "fsdp") >= {1, 8, 64}
    assert (64, 8) in set(zip(plans.dp.tolist(), plans.fsdp.tolist(), strict=True))  # sharded inside the node only


def test_a_torus_is_searched_without_pipeline_and_beyond_eight_ways():
    plans = space(chip_name="tpu-v5e", chips=256, topology=(16, 16))
    assert values(plans, "pp") == {1}
    assert values(plans, "tp") >= {1, 2, 4, 8, 16, 32}


def test_experts_are_spread_or_sliced():
    plans = space(model="mixtral-8x7b")
    pairs = set(zip(plans.ep.tolist(), plans.etp.tolist(), strict=True))
    assert {(8, 1), (1, 8), (4, 2), (1, 1)} <= pairs
    unsharded = (plans.ep * plans.etp == 1) & (plans.tp > 1)
    assert not unsharded.any()


def test_a_serving_space_varies_the_engine():
    plans = space(SERVE, "gpt-oss-120b", "b200")
    assert values(plans, "attention_dp") == {1, 2, 4, 8}
    assert values(plans, "chunked_prefill_tokens") == {512, 2048, 8192}
    assert values(plans, "cp") == {1}
    assert values(plans, "weight_dtype") == values(plans, "kv_cache_dtype") == {"bf16"}
    single = plans.take(plans.dp // plans.attention_dp == 1)
    assert max(values(single, "max_num_seqs")) == 64  # more than the stated concurrency would never fill


def test_experts_may_spread_over_attention_ranks():
    plans = space(SERVE, "gpt-oss-120b", "b200")
    layouts = set(zip(plans.tp.tolist(), plans.attention_dp.tolist(), plans.ep.tolist(), strict=True))
    assert {(1, 8, 8), (8, 1, 8), (2, 4, 8)} <= layouts
    assert (1, 1, 8) not in layouts  # eight engines of one rank each hold all experts


def test_attention_dp_is_left_alone_in_a_dense_model():
    assert values(space(SERVE), "attention_dp") == {1}


def test_precision_changes_only_when_allowed():
    allow = Constraints(allow_numerics_changes=True)
    assert values(space(constraints=allow), "compute_dtype") == {"bf16", "fp8"}
    assert values(space(chip_name="a100-80-sxm", constraints=allow), "compute_dtype") == {"bf16"}
    engine = space(SERVE, "gpt-oss-120b", "b200", constraints=allow)
    pairs = set(zip(engine.weight_dtype.tolist(), engine.compute_dtype.tolist(), strict=True))
    assert pairs == {("bf16", "bf16"), ("fp8", "fp8"), ("fp4", "fp4")}
    hopper = space(SERVE, "gpt-oss-120b", "h100-sxm", constraints=allow)
    assert ("fp4", "bf16") in set(zip(hopper.weight_dtype.tolist(), hopper.compute_dtype.tolist(), strict=True))


def test_fixed_and_bounded_fields_are_kept():
    constraints = Constraints(fixed={"tp": 2, "recompute": "full"}, bounds={"pp": Bounds(low=2, high=4)})
    plans = space(constraints=constraints)
    assert values(plans, "tp") == {2}
    assert values(plans, "recompute") == {"full"}
    assert values(plans, "pp") == {2, 4}


def test_a_constraint_opens_what_the_search_would_not_try():
    staged = Constraints(bounds={"pp": Bounds(low=2)})
    assert values(space(chip_name="tpu-v5e", chips=16, constraints=staged), "pp") == {2, 4, 8, 16}
    assert values(space(chips=32, constraints=Constraints(fixed={"tp": 16})), "tp") == {16}
    assert values(space(constraints=Constraints(fixed={"zero_stage": 2})), "zero_stage") == {2}
    assert values(space(constraints=Constraints(fixed={"micro_batch": 32})), "micro_batch") == {32}
    assert values(space(constraints=Constraints(bounds={"zero_stage": Bounds(low=2)})), "zero_stage") == {2, 3}
    assert values(space(constraints=Constraints(bounds={"micro_batch": Bounds(low=0, high=2)})), "micro_batch") == {
        1,
        2,
    }
    assert len(space(constraints=Constraints(fixed={"tp": 3}))) == 0


@pytest.mark.parametrize(
    ("constraints", "says"),
    [
        (Constraints(fixed={"tp": "eight"}), "constraints.fixed.tp = 'eight'"),
        (Constraints(fixed={"tp": 0}), "constraints.fixed.tp = 0"),
        (Constraints(fixed={"recompute": "some"}), "constraints.fixed.recompute"),
        (Constraints(fixed={"phase": "serving"}), "phase contradicts"),
        (Constraints(bounds={"recompute": Bounds(low=1)}), "only numbers can be bounded"),
        (Constraints(bounds={"micro_batch": Bounds(high=0)}), "constraints.bounds.micro_batch.high = 0"),
        (Constraints(fixed={"tp": 8}, bounds={"tp": Bounds(high=4)}), "fixed value 8 out of bounds"),
    ],
)
def test_constraints_that_can_never_hold_are_named(constraints, says):
    with pytest.raises(InvalidDescription, match=says):
        space(constraints=constraints)


def test_max_chips_caps_the_cluster():
    cluster, hopper = ClusterSpec(chip="h100-sxm", chips=64), chip("h100-sxm")
    assert usable_cluster(cluster, Constraints(), hopper) is cluster
    assert usable_cluster(cluster, Constraints(max_chips=100), hopper) is cluster
    assert usable_cluster(cluster, Constraints(max_chips=20), hopper).chips == 16  # whole nodes
    assert usable_cluster(cluster, Constraints(max_chips=7), hopper).chips == 4  # part of one
    pods = ClusterSpec(chip="tpu-v5e", chips=512, topology=(16, 16), slices=2)
    part = usable_cluster(pods, Constraints(max_chips=300), chip("tpu-v5e"))
    assert (part.chips, part.slices, part.topology) == (256, 1, (16, 16))
    assert usable_cluster(pods, Constraints(max_chips=100), chip("tpu-v5e")).chips == 64
    plans = space(chips=64, constraints=Constraints(max_chips=20))
    assert set(plans.devices.tolist()) == {16}


CURRENT = ParallelismPlan(dp=4, fsdp=2, zero_stage=3, tp=2, sp=False, micro_batch=1, grad_accum=32)


def test_the_current_plan_is_among_its_neighbours():
    plans = [plan for plan in space(current=CURRENT) if plan.layout == CURRENT.layout]
    assert CURRENT in plans


def test_the_batch_of_the_current_plan_stands_in_for_an_unstated_one():
    plans = space(WorkloadSpec(), current=CURRENT)
    assert set((plans.dp * plans.micro_batch * plans.grad_accum).tolist()) == {128}
    with pytest.raises(InvalidDescription, match="global batch"):
        space(WorkloadSpec())


def test_an_unknown_model_keeps_what_cannot_be_checked():
    found = explore(
        WorkloadSpec(), None, ClusterSpec(chip="h100-sxm", chips=8), chip("h100-sxm"), Constraints(), CURRENT
    )
    assert values(found.plans, "pp") == values(found.plans, "ep") == {1}
    assert values(found.plans, "tp") == {1, 2, 4, 8}
    assert found.notes[0].startswith("the model is unknown")


def layouts(plans):
    return set(zip(*(plans.columns[axis].tolist() for axis in ("dp", "tp", "pp", "cp")), strict=True))


def test_what_is_left_out_is_said_and_layouts_are_never_left_out(monkeypatch):
    monkeypatch.setattr(search_space, "MAX_CANDIDATES", 2_000)
    cluster = ClusterSpec(chip="h100-sxm", chips=64)
    found = explore(TRAIN, architecture("llama-3.1-8b"), cluster, chip("h100-sxm"), Constraints(), None)
    assert "more than 2000 plans: hybrid sharding is left out" in found.notes
    monkeypatch.undo()
    assert layouts(found.plans) == layouts(space(chips=64))


def test_a_plan_of_the_other_phase_is_refused():
    with pytest.raises(InvalidDescription, match="training current plan for a serving workload"):
        space(SERVE, current=CURRENT)


@pytest.mark.shared
def test_spaces_stated_in_the_reference_cases():
    beside_the_project = Path(__file__).parents[3].parent / "shared"
    file = Path(os.environ.get("SHARDWISE_SHARED", beside_the_project)) / "reference" / "prompts_cases.json"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    cases = json.loads(file.read_text())["cases"]
    stated = [case for case in cases if case.get("search_space")]
    assert stated
    for case in stated:
        axes = tuple(case["baseline_mesh"])
        assert len(enumerate_meshes(case["axes_multiply_to"], axes)) == case["search_space"]


def notes(workload, chips=8, constraints=None, current=None):
    cluster = ClusterSpec(chip="h100-sxm", chips=chips)
    model = architecture("llama-3.1-8b")
    return explore(workload, model, cluster, chip("h100-sxm"), constraints or Constraints(), current).notes


def test_context_ranks_keep_4096_tokens_unless_somebody_names_cp():
    said = "context parallelism under 4096 tokens a rank is left out"
    assert values(space(), "cp") == {1, 2}
    assert said in notes(TRAIN)
    asked = Constraints(fixed={"cp": 8})
    assert values(space(constraints=asked), "cp") == {8}
    assert said not in notes(TRAIN, constraints=asked)
    running = ParallelismPlan(dp=2, cp=4, grad_accum=64)
    assert values(space(current=running), "cp") == {1, 2, 4}


def test_a_batch_that_no_data_parallelism_divides_is_said():
    assert any(
        "127 shares no factor with 8 devices" in note for note in notes(WorkloadSpec(seq_len=8192, global_batch=127))
    )
    assert not any("shares no factor" in note for note in notes(TRAIN))


def test_ends_of_the_model_counted_as_layers_open_interleaving():
    workload = WorkloadSpec(seq_len=8192, global_batch=2048)
    constraints = Constraints(fixed={"tp": 8, "pp": 16, "cp": 1})
    plans = space(workload, model="llama-3.1-405b", chips=1024, constraints=constraints)
    assert {2, 4, 8} <= values(plans, "vp")


def test_sharding_inside_the_domain_comes_before_sharding_over_all():
    plans = space(chips=64, constraints=Constraints(fixed={"tp": 1, "pp": 1, "cp": 1, "micro_batch": 1}))
    groups = [size for size in plans.fsdp.tolist() if size > 1]
    assert groups.index(8) < groups.index(64)


UNVARIED = [
    {"optimizer": "adam_8bit"},
    {"offload_optimizer": True},
    {"offload_activations": True},
    {"cp": 2, "dp": 4, "cp_kind": "all_to_all"},
    {"optimizer_shard": 4, "zero_stage": 1},
]


@pytest.mark.parametrize("stated", UNVARIED)
def test_what_no_search_varies_stays_as_the_current_plan_has_it(stated):
    current = ParallelismPlan(**({"dp": 8} | stated))
    current = current.model_copy(update={"grad_accum": 128 // current.dp})
    plans = space(current=current)
    assert current in list(plans)
    for field in stated.keys() & {"optimizer", "offload_optimizer", "offload_activations"}:
        assert values(plans, field) == {stated[field]}
    kinds = set(zip((plans.cp > 1).tolist(), plans.cp_kind.tolist(), strict=True))
    assert kinds <= {(False, "ring"), (True, current.cp_kind)}


@pytest.mark.parametrize("stated", UNVARIED)
def test_what_no_search_varies_may_be_fixed(stated):
    fixed = {field: value for field, value in stated.items() if field != "dp"}
    plans = space(constraints=Constraints(fixed=fixed))
    assert len(plans) > 0
    assert all(values(plans, field) == {value} for field, value in fixed.items())


def test_how_tokens_reach_experts_stays_where_they_travel():
    mixtral = {"model": "mixtral-8x7b", "workload": TRAIN.model_copy(update={"model": "mixtral-8x7b"})}
    plans = space(
        **mixtral, current=ParallelismPlan(dp=8, ep=8, grad_accum=16, expert_dispatch="deepep", overlap_ep=True)
    )
    told = set(zip((plans.ep > 1).tolist(), plans.expert_dispatch.tolist(), strict=True))
    assert told == {(False, "auto"), (True, "deepep")}
    assert (plans.overlap_ep == ((plans.ep > 1) & (plans.grad_accum > 1))).all()
