"""`shardwise rl`: a step of reinforcement learning from a JSON file."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

REQUEST: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "cluster": {"chip": "h100-sxm", "chips": 16},
    "step": {"prompts": 16, "samples": 8, "prompt_tokens": 100, "response_tokens": 900, "row_tokens": 2048},
    "plan": {
        "training": {"dp": 8, "fsdp": 8, "zero_stage": 3, "recompute": "full"},
        "rollout": {"phase": "serving", "dp": 8},
        "placement": "separate",
        "steps_off_policy": 1,
    },
}


def request_file(folder: Path, **changes: Any) -> str:
    path = folder / "step.json"
    path.write_text(json.dumps(REQUEST | changes))
    return str(path)


def test_the_document_holds_phases_and_a_breakdown_that_sums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rl", request_file(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["legal"]
    assert found["request"]["plan"]["training"]["grad_accum"] == 8
    projection = found["projection"]
    assert [phase["name"] for phase in projection["phases"]] == ["rollout", "log_probs", "training", "weight_sync"]
    parts = projection["breakdown"]
    names = ("compute_s", "exposed_communication_s", "exposed_copy_s", "idle_s")
    assert sum(parts[name] for name in names) == pytest.approx(projection["step_time_s"])


def test_people_get_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rl", request_file(tmp_path, framework="nemo")]) == 0
    shown = capsys.readouterr().out
    assert "weight sync" in shown
    assert "Where a step goes on a device of the" in shown


def test_a_training_plan_that_breaks_a_rule_is_not_projected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = REQUEST["plan"] | {"training": {"dp": 8, "zero_stage": 1, "vp": 4}}
    assert main(["rl", request_file(tmp_path, plan=plan), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["legal"], found["projection"]) == (False, None)
    assert main(["rl", request_file(tmp_path, plan=plan)]) == 0
    assert "not legal" in capsys.readouterr().out


def test_engines_that_break_a_rule_are_not_projected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """7 ranks do not share 32 heads."""
    cluster, plan = {"chip": "h100-sxm", "chips": 15}, REQUEST["plan"] | {"rollout": {"phase": "serving", "tp": 7}}
    assert main(["rl", request_file(tmp_path, plan=plan, cluster=cluster), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["legal"], found["projection"]) == (False, None)
    assert all(one["quantity"].startswith("engines: ") for one in found["illegal"])


def test_models_beside_the_policy_are_said_to_take_no_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = REQUEST["step"] | {"critic": True}
    assert main(["rl", request_file(tmp_path, step=step), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["projection"]["assumptions"]
    assert any("policy alone: reference, critic wait" in text for text in said)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"framework": "spark"}, "spark"),
        ({"model": "llama-9"}, "llama-9"),
        ({"cluster": {"chip": "h100-sxm", "chips": 8}}, "occupy 16 devices"),
        ({"step": REQUEST["step"] | {"updates": 3}}, "does not divide"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], message: str
) -> None:
    assert main(["rl", request_file(tmp_path, **changes)]) == 2
    assert message in capsys.readouterr().err
