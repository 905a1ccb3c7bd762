"""Every exporter: found by itself, its arguments are those of the stated release, no plan field is dropped."""

import json
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import iter_modules
from typing import get_args

import pytest

import agents.exporters as package
from agents.exporters import exporter, exporters
from agents.exporters.exporter import Job, Known
from agents.exporters.maxtext_model import MODEL_NAMES, model_name
from projector.catalog import architecture, architectures, chip, chips
from projector.errors import InvalidDescription
from projector.specs.plan import ComputeDtype, Dtype, OptimizerName, ParallelismPlan, Phase
from projector.specs.plan_batch import FIELDS
from projector.specs.workload import WorkloadSpec

ROOT = Path(__file__).parents[2]
EACH = pytest.mark.parametrize("each", exporters(), ids=lambda each: each.framework)
TYPES = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str, int)}


@cache
def facts(framework):
    return json.loads((ROOT / "tests/data/exporters" / f"{framework}_arguments.json").read_text())


def definitions(framework):
    """Arguments of the release by every name they go by, each with whether the name is the first one."""
    known = facts(framework)
    listed = [*known["arguments"], *known.get("launcher", {}).get("arguments", [])]
    return {name: argument for argument in listed for name in (argument["name"], *argument["also"])}


def training_plans():
    """Plans that reach every branch of an exporter, illegal ones among them: nothing may crash or be dropped."""
    yield ParallelismPlan()
    yield ParallelismPlan(dp=2, attention_dp=2)
    single = {
        "zero_stage": (1, 2, 3),
        "recompute": ("selective", "full"),
        "recompute_modules": ("mlp", "layernorm+moe_act"),
        "recompute_layers": (2,),
        "cp_kind": ("all_gather",),
        "optimizer": get_args(OptimizerName),
        "offload_optimizer": (True,),
        "offload_activations": (True,),
        "schedule": ("interleaved",),
        "vp": (2,),
        "sp": (True,),
        "compute_dtype": get_args(ComputeDtype),
        "overlap_tp": (True,),
        "max_num_seqs": (8,),
        "cuda_graphs": (False,),
    }
    yield ParallelismPlan(recompute="selective", recompute_modules="core_attn+mlp")
    yield ParallelismPlan(recompute="full", recompute_layers=3)
    for optimizer, offload in product(get_args(OptimizerName), (False, True)):
        yield ParallelismPlan(dp=2, zero_stage=1, optimizer=optimizer, offload_optimizer=offload)
    yield from (ParallelismPlan(cp=2, cp_kind=kind) for kind in ("ring", "all_to_all", "all_gather"))
    for dispatch, overlap in product(("auto", "all_to_all", "deepep", "all_gather"), (False, True)):
        for pp, vp in ((1, 1), (2, 1), (2, 2)):
            exchange = {"expert_dispatch": dispatch, "overlap_ep": overlap, "vp": vp}
            yield ParallelismPlan(dp=4, ep=4, pp=pp, grad_accum=4, **exchange)
    for field, values in single.items():
        yield from (ParallelismPlan(**{field: value}) for value in values)
    for dp, tp, pp, cp, stage in product((1, 8, 12), (1, 2), (1, 4), (1, 2), (0, 1, 2, 3)):
        rest = {"zero_stage": stage, "sp": tp > 1, "overlap_tp": tp > 1, "grad_accum": 6, "vp": 2 if pp > 1 else 1}
        for fsdp, (ep, etp) in product(sorted({1, min(2, dp), dp}), ((1, 1), (1, tp), (2, 1), (4, tp))):
            if (dp * cp * tp) % (ep * etp) == 0:
                yield ParallelismPlan(dp=dp, tp=tp, pp=pp, cp=cp, fsdp=fsdp, ep=ep, etp=etp, recompute="full", **rest)


def serving_plans():
    yield ParallelismPlan(phase="serving", cp=2)
    yield ParallelismPlan(phase="serving", fsdp=2, dp=2)
    for weight, compute, cache_dtype in product(get_args(Dtype), ("bf16", "fp8"), get_args(Dtype)):
        yield ParallelismPlan(phase="serving", weight_dtype=weight, compute_dtype=compute, kv_cache_dtype=cache_dtype)
    for attention_dp, tp, pp, chunk, graphs in product((1, 4), (1, 2, 8), (1, 2), (0, 8, 2048), (True, False)):
        for ep, etp in {(1, 1), (attention_dp * tp, 1), (1, attention_dp * tp), (1, tp)}:
            yield ParallelismPlan(
                phase="serving", dp=2 * attention_dp, attention_dp=attention_dp, tp=tp, pp=pp, ep=ep, etp=etp,
                chunked_prefill_tokens=chunk, max_num_seqs=30, cuda_graphs=graphs,
            )  # fmt: skip


def jobs(each):
    """Every plan of the exporter's phases, on chips of every kind and with models of every shape, known or not."""
    models = [None, *(architecture(name) for name in ("llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-120b"))]
    profiles = [None, *(chip(name) for name in ("h100-sxm", "b200", "mi300x", "mi250x", "tpu-v6e"))]
    plans = training_plans() if "training" in each.phases else serving_plans()
    for number, plan in enumerate(plans):
        model, profile = models[number % len(models)], profiles[number % len(profiles)]
        load = None if number % 7 == 0 else WorkloadSpec(phase=plan.phase)
        yield Job(plan, load, model, None, profile)


@cache
def configurations(framework):
    each = exporter(framework)
    return [(job, each.export(job)) for job in jobs(each)]


def test_the_three_frameworks_are_there():
    assert {each.framework for each in exporters()} >= {"megatron", "maxtext", "vllm"}


def test_a_file_is_named_for_its_framework():
    modules = [import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__)]
    found = {module.__name__.rpartition(".")[2]: module.EXPORTER for module in modules if hasattr(module, "EXPORTER")}
    assert {name: each.framework for name, each in found.items()} == {
        each.framework: each.framework for each in exporters()
    }


@EACH
def test_the_stated_release_is_the_one_the_arguments_were_read_from(each):
    known = facts(each.framework)
    assert known["version"] == each.version
    assert known["read_from"]
    assert known["retrieved"]
    assert set(each.phases) <= set(get_args(Phase))


@EACH
def test_every_argument_exists_with_an_admissible_value(each):
    known = definitions(each.framework)
    for _, config in configurations(each.framework):
        placeholders = {placeholder.token for placeholder in config.placeholders}
        for setting in config.settings:
            assert setting.name in known, f"{setting.name} is no argument of {each.version}"
            check_value(setting, known[setting.name], placeholders)


def check_value(setting, argument, placeholders):
    if argument["values"] == 0:
        assert setting.value is None, setting
        return
    assert isinstance(setting.value, tuple) == (argument["values"] == "+"), setting
    for value in setting.value if isinstance(setting.value, tuple) else (setting.value,):
        if value in placeholders:
            continue
        assert type(value) in TYPES[argument["type"]], setting
        assert argument["choices"] is None or value in argument["choices"], setting
        assert not isinstance(value, int) or value >= 0, setting


@EACH
def test_no_plan_field_is_dropped(each):
    for job, config in configurations(each.framework):
        assert sorted(outcome.field for outcome in (*config.stated, *config.refused)) == sorted(FIELDS)
        for refusal in config.refused:
            assert refusal.value == str(getattr(job.plan, refusal.field))
            assert refusal.reason
            assert refusal.instead


@EACH
def test_what_is_not_refused_comes_back(each):
    for job, config in configurations(each.framework):
        if config.command:
            plan = each.parse(config.command, Known(config.devices, job.architecture, job.hardware)).plan
            said = set(FIELDS) - {refusal.field for refusal in config.refused}
            assert {field: getattr(plan, field) for field in said} == {
                field: getattr(job.plan, field) for field in said
            }


@EACH
def test_placeholders_of_the_command_are_explained(each):
    for _, config in configurations(each.framework):
        used = {token.rpartition("=")[2] for token in config.command if token.endswith(">")}
        assert used == {placeholder.token for placeholder in config.placeholders}


@EACH
def test_settings_stand_once_and_in_the_command(each):
    for _, config in configurations(each.framework):
        names = [setting.name for setting in config.settings]
        assert len(names) == len(set(names))
        written = {token.partition("=")[0] for token in config.command}
        assert set(names) <= written


@EACH
def test_the_launcher_is_known(each):
    known = definitions(each.framework)
    for _, config in configurations(each.framework):
        for token in config.command:
            assert not token.startswith("--") or token in known, token


@EACH
@pytest.mark.parametrize("phase", get_args(Phase))
def test_a_phase_it_does_not_run_is_refused_whole(each, phase):
    config = each.export(Job(ParallelismPlan(phase=phase)))
    assert bool(config.command) == (phase in each.phases)
    assert bool(config.settings) == bool(config.command)
    if not config.command:
        assert {refusal.field for refusal in config.refused} == set(FIELDS)


@EACH
@pytest.mark.parametrize("profile", chips(), ids=lambda profile: profile.id)
def test_every_chip_of_the_catalogue_is_launched_or_refused(each, profile):
    plan = ParallelismPlan(phase=each.phases[0], dp=16 * profile.devices_per_chip)
    config = each.export(Job(plan, hardware=profile))
    assert config.command or all(profile.id in refusal.reason for refusal in config.refused)


@EACH
@pytest.mark.parametrize("model", architectures(), ids=lambda model: model.name)
def test_every_model_of_the_catalogue_is_written_with_known_arguments(each, model):
    known = definitions(each.framework)
    config = each.export(Job(ParallelismPlan(phase=each.phases[0]), architecture=model))
    for setting in config.settings:
        check_value(setting, known[setting.name], {placeholder.token for placeholder in config.placeholders})


@EACH
def test_nonsense_is_a_typed_error_or_ignored(each):
    for tokens in (
        [],
        ["--"],
        ["="],
        ["---"],
        ["--x"],
        ["x=y=z"],
        ["--tensor-parallel-size"],
        ["dtype=complex"],
        ["\0"],
    ):
        with suppress(InvalidDescription):
            assert each.parse(tokens).plan.phase == each.phases[0]


def test_online_quantisation_names_are_those_that_quantise_while_loading():
    from agents.exporters.vllm_formats import ONLINE

    assert set(ONLINE.values()) <= set(facts("vllm")["online_quantization"])
    assert "fp8" not in facts("vllm")["online_quantization"]


def test_maxtext_model_names_exist_on_both_sides():
    assert set(MODEL_NAMES.values()) <= set(facts("maxtext")["model_names"])
    assert set(MODEL_NAMES) <= {model.name for model in architectures()}


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_a_maxtext_model_has_the_shape_of_ours(name):
    model = architecture(name)
    theirs = facts("maxtext")["models"][model_name(model)]
    ours = {
        "base_emb_dim": model.hidden_size,
        "base_num_query_heads": model.heads,
        "base_num_decoder_layers": model.layers,
        "vocab_size": model.vocab_size,
    }
    if model.is_moe:
        ours |= {"num_experts": model.experts, "num_experts_per_tok": model.experts_per_token}
    else:
        ours |= {"base_mlp_dim": model.intermediate_size}
    if not model.is_mla:
        ours |= {"base_num_kv_heads": model.kv_heads, "head_dim": model.head_dim}
    assert {key: theirs.get(key, value) for key, value in ours.items()} == ours


def test_the_page_names_every_framework_release_and_plan_field():
    page = (ROOT / "docs/exporters.md").read_text()
    for each in exporters():
        assert each.title in page
        assert each.version in page
    for field in FIELDS:
        assert f"`{field}`" in page, field
