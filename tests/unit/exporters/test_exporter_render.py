"""Text of a configuration: what a shell and a YAML reader make of it."""

import subprocess

import pytest
import yaml
from exporter_examples import serving_job, training_job

from agents.exporters import exporter, exporters
from agents.exporters.exporter import Job, LaunchConfig, Refusal, Setting, Variable, spread
from agents.exporters.render import shell, yaml_file
from projector.catalog import architecture
from projector.errors import InvalidDescription, UnknownName
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

NASTY = ("a b", "$(touch x)", "`id`", "it's", '"', "<FILL_IN>", ";", "&&", "*", "\\", "new\nline", "#", "", "--x=$HOME")


def config_of(**fields):
    return LaunchConfig(framework="f", title="F", version="1", devices=1, **fields)


def read_by_sh(text):
    """The words a POSIX shell hands to the command."""
    script = text.rstrip("\n") + "\n"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, timeout=30)
    return tuple(done.stdout.split("\0")[:-1])


def test_a_shell_reads_every_token_as_it_is():
    config = config_of(command=("printf", "%s\\0", *NASTY))
    assert read_by_sh(shell(config)) == NASTY


def test_the_environment_is_set_and_unset():
    variables = (Variable(name="A", value="1 2"), Variable(name="B", value=None))
    config = config_of(command=("sh", "-c", 'printf "%s\\0" "$A" "${B-unset}"'), environment=variables)
    assert read_by_sh(shell(config)) == ("1 2", "unset")


def test_no_name_ends_a_comment():
    refused = (Refusal(field="tp", value="2", reason="x\nrm -rf /", instead="y\r\nz\u2028w"),)
    text = shell(config_of(command=("true",), refused=refused))
    assert [line for line in text.splitlines() if not line.startswith("#")] == ["true"]


def test_a_model_name_cannot_break_out():
    own = architecture("llama-3.1-8b").model_copy(update={"name": "x\n; rm -rf /", "hf_id": None})
    for each in exporters():
        plan = ParallelismPlan(phase=each.phases[0])
        lines = [line for line in shell(each.export(Job(plan, architecture=own))).splitlines() if line[:1] != "#"]
        assert not any("rm -rf" in line for line in lines)


def test_what_is_not_the_plan_says_so_first():
    text = shell(exporter("maxtext").export(training_job(chip_id="tpu-v5p", recompute="none")))
    assert "NOT the plan" in text
    assert text.index("NOT the plan") < text.index("python3")
    assert "recompute = none cannot be said" in text
    whole = shell(exporter("vllm").export(training_job()))
    assert "Cannot be launched" in whole
    assert all(line.startswith("#") for line in whole.splitlines())


def test_copies_and_placeholders_are_in_the_comments():
    text = shell(exporter("vllm").export(serving_job(dp=2, tp=8, pp=2)))
    assert "# Start 2 of these side by side." in text
    assert "# Fill in <NODE_RANK>" in text
    assert "'<NODE_RANK>'" in text


def test_yaml_holds_the_settings():
    config = exporter("maxtext").export(training_job(chip_id="tpu-v5p", dp=4, fsdp=4, zero_stage=3, recompute="full"))
    values = yaml.safe_load(yaml_file(config))
    assert values["base_config"] == "base.yml"
    assert values["ici_fsdp_parallelism"] == 4
    assert values["allow_split_physical_axes"] is True
    assert config.config_file.command[-1] == config.config_file.name
    switches = yaml.safe_load(yaml_file(exporter("vllm").export(serving_job(cuda_graphs=False))))
    assert switches["enforce-eager"] is True


def test_megatron_has_no_file():
    with pytest.raises(InvalidDescription, match="no configuration file"):
        yaml_file(exporter("megatron").export(training_job()))


def test_a_setting_keeps_its_type_through_json():
    for value in (True, 1, 1.0, "1", ("a", "b"), None):
        again = Setting.model_validate_json(Setting(name="x", value=value).model_dump_json())
        assert again.value == value
        assert type(again.value) is type(value)


def test_frameworks_by_name():
    assert exporter(" Megatron ").title == "Megatron-LM"
    with pytest.raises(UnknownName) as caught:
        exporter("maxtxt")
    assert caught.value.nearest[0] == "maxtext"


def test_jobs_that_contradict_themselves():
    with pytest.raises(InvalidDescription, match="a serving plan for a training workload"):
        Job(ParallelismPlan(phase="serving"), WorkloadSpec())
    known = training_job(dp=2)
    with pytest.raises(InvalidDescription, match="occupies 4 devices, the cluster has 2"):
        Job(ParallelismPlan(dp=4), cluster=known.cluster, hardware=known.hardware)


@pytest.mark.parametrize(
    ("devices", "per_group", "expected"),
    [(4, 8, (1, 4)), (16, 8, (2, 8)), (12, 8, (2, 6)), (7, 4, (7, 1)), (128, 72, (2, 64))],
)
def test_devices_spread_evenly_over_the_fewest_groups(devices, per_group, expected):
    assert spread(devices, per_group) == expected
