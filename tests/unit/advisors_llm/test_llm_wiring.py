"""From the settings to the advisor: each one matters, none is shown, and none is needed for the rules."""

import subprocess
import sys
from pathlib import Path

import pytest
from llm_examples import TRACE, LeverNotes, answer, question_of, summary
from scripted_endpoint import SILENCE, Endpoint

from agents.advisors.llm import LlmAdvisor
from agents.request import PlanRequest
from app.errors import InvalidSettings
from app.settings import Settings, load_settings
from app.wiring import TracePlanner, advisor_of

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"SHARDWISE_{name.upper()}", raising=False)


def planned(wanted: str = "auto", **settings):
    """The provenance of a plan made with these settings."""
    chosen = load_settings(**settings)
    advisor = advisor_of(chosen)
    try:
        planner = TracePlanner(LeverNotes, chosen, advisor)
        return planner.plan(PlanRequest.model_validate({"advisor": wanted}), [TRACE]).result.provenance
    finally:
        if isinstance(advisor, LlmAdvisor):
            advisor.close()


def test_without_a_model_the_rules_advise_and_a_request_for_one_is_answered_with_the_reason():
    assert (planned().advisor, planned().fallback_reason) == ("rules", "")
    assert "none is configured" in planned("llm").fallback_reason


def test_model_address_key_and_timeout_reach_the_endpoint(monkeypatch):
    with Endpoint([answer(question_of(summary())), SILENCE]) as endpoint:
        monkeypatch.setenv("SHARDWISE_LLM_MODEL", "openai/scripted")
        monkeypatch.setenv("SHARDWISE_LLM_API_BASE", endpoint.address)
        monkeypatch.setenv("SHARDWISE_LLM_API_KEY", "sk-mine")
        assert planned().advisor == "llm"
        assert endpoint.bodies[0]["model"] == "scripted"
        assert endpoint.keys == ["Bearer sk-mine"]
        assert "no answer within 0.3 s" in planned(llm_timeout_s=0.5).fallback_reason


def test_the_key_is_not_printed_with_the_settings():
    settings = load_settings(llm_model="openai/x", llm_api_key="sk-mine")
    assert "sk-mine" not in f"{settings!r} {settings} {settings.model_dump_json()}"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"llm_api_key": "sk-mine"}, "need llm_model"),
        ({"llm_api_base": "http://localhost"}, "need llm_model"),
        ({"llm_model": "openai/x", "llm_api_base": "localhost:8000"}, "must start with http"),
        ({"llm_model": "openai/x", "llm_timeout_s": 0}, "llm_timeout_s"),
        ({"llm_model": ""}, "llm_model"),
    ],
)
def test_settings_that_cannot_work_are_refused_without_repeating_the_key(settings, message):
    with pytest.raises(InvalidSettings, match=message) as error:
        load_settings(**settings)
    assert "sk-mine" not in f"{error.value.message} {error.value.hint}"


def test_neither_the_service_nor_a_plan_by_rules_imports_litellm():
    """Also not where a model is configured and the request asks for the rules."""
    script = (
        "import sys; import app.main\n"
        "from pathlib import Path\n"
        "from agents.request import PlanRequest\n"
        "from app.settings import load_settings\n"
        "from app.wiring import TracePlanner, advisor_of\n"
        "class NoNotes:\n"
        "    def search(self, *_, **__): return ()\n"
        "    def past(self, *_, **__): return ()\n"
        "for settings, wanted in ((load_settings(), 'auto'), (load_settings(llm_model='openai/x'), 'rules')):\n"
        "    planner = TracePlanner(NoNotes, settings, advisor_of(settings))\n"
        f"    planner.plan(PlanRequest(advisor=wanted), [Path({str(TRACE)!r})])\n"
        "print('litellm' in sys.modules, 'openai' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "False False\n"


def test_the_switch_of_the_local_model_check_is_no_setting_and_no_error(monkeypatch):
    monkeypatch.setenv("SHARDWISE_LOCAL_LLM", "1")
    load_settings()
