"""With the switch on no name of the request or the trace is in any byte sent; prose gets them back; numbers stay."""

import json
import re

import pytest
from llm_examples import LeverNotes, answer, question_of, summary
from scripted_endpoint import Endpoint

from agents.advisors.llm import LlmAdvisor
from agents.advisors.redaction import Masks, names_of
from agents.planning.graph import run_plan
from agents.request import PlanRequest
from traces.summary_types import TraceSummary

KERNEL = "acme_secretmoe_fused_v7"
HOST = "node17.corp.acme.internal"
FILE = "projectzeus-rank0.json"


@pytest.fixture(scope="module")
def measured() -> TraceSummary:
    """The example with names that would tell whose it is."""
    plain = summary()
    first = plain.top_kernels[0].model_copy(update={"name": KERNEL})
    return plain.model_copy(
        update={
            "top_kernels": (first, *plain.top_kernels[1:]),
            "files": (FILE,),
            "warnings": (*plain.warnings, f"clock of {HOST} was late"),
        }
    )


def sent(endpoint: Endpoint) -> str:
    return json.dumps(endpoint.bodies, ensure_ascii=False)


def planned(measured: TraceSummary, endpoint: Endpoint, *, redact: bool, by_settings: bool = False):
    advisor = LlmAdvisor("openai/scripted", api_base=endpoint.address, timeout_s=100)
    request = PlanRequest.model_validate({"redact": redact, "symptom": "Zeuscluster is slow at Acmecorp."})
    result = run_plan(request, measured, knowledge=LeverNotes(), advisor=advisor, redact=by_settings)
    advisor.close()
    return result


def foreign_names(measured: TraceSummary) -> set[str]:
    """Every word of kernels, files and warnings that is not plainly one of ours."""
    kernels = {kernel.name for kernel in measured.top_kernels}
    return kernels | {KERNEL, "acme", "secretmoe", "node17", "corp", "projectzeus", "Zeuscluster", "Acmecorp"}


@pytest.mark.parametrize("by_settings", [False, True], ids=["by the request", "by the settings"])
def test_no_name_is_in_any_byte_sent(measured, by_settings):
    lying = answer(question_of(measured), rationale=f"The kernel {KERNEL} is 41.7 % of it.")
    with Endpoint([lying, answer(question_of(measured))]) as endpoint:
        result = planned(measured, endpoint, redact=not by_settings, by_settings=by_settings)
        text = sent(endpoint)
    assert len(endpoint.bodies) == 2
    assert not [name for name in foreign_names(measured) if name.lower() in text.lower()]
    assert "Hidden" in text
    assert result.provenance.redacted
    assert "Hidden" not in result.model_dump_json()
    for figure in ("86.3 %", "38.6 ms", "114.2 %", "29.1 GB"):
        assert figure in text


def test_without_the_switch_names_are_sent_as_they_are(measured):
    with Endpoint([answer(question_of(measured))]) as endpoint:
        result = planned(measured, endpoint, redact=False)
        assert KERNEL in sent(endpoint)
    assert not result.provenance.redacted


def test_a_token_in_prose_becomes_the_name_again_and_is_judged_as_one():
    masks = Masks(names_of([json.dumps({"job": "Zeus on Acmecorp"})]))
    hidden = masks.hidden("Zeus waits for the network of Acmecorp.")
    assert not re.search("zeus|acme", hidden, re.IGNORECASE)
    assert masks.restored(hidden) == "zeus waits for the network of acmecorp."
    assert masks.restored("HiddenZZ stays") == "HiddenZZ stays"


def test_tokens_are_stable_and_names_are_hidden_cut_short_and_in_any_case():
    names = names_of([json.dumps({"kernel": KERNEL})])
    masks, again = Masks(names), Masks(names)
    assert masks.hidden(KERNEL) == again.hidden(KERNEL.upper())
    assert "acme" not in masks.hidden(f"'{KERNEL[:14]}…' waits")


def test_a_model_is_a_name_with_all_its_sizes():
    names = names_of([], ["llama3-70b"])
    assert Masks(names).hidden("llama3 of 70b, step 70 ms on h100") == "HiddenA of HiddenB, step 70 ms on h100"


def test_our_own_words_chips_and_numbers_stay():
    texts = [json.dumps({"chip": "h100-sxm", "precision": "bf16", "what": "all-reduce of 8 ranks in training"})]
    assert names_of(texts) == ()
