"""What a model's prose may say of a plan: numbers with their unit, directions, nothing that is not text."""

import pytest
from llm_examples import question_of, summary

from agents.advisors.llm_prose import prose_problems
from agents.advisors.protocol import AdvisorChoice, AdvisorInput, Candidate, Pick


@pytest.fixture(scope="module")
def question() -> AdvisorInput:
    return question_of(summary())


def changing(question: AdvisorInput, **wanted: tuple[str, str]) -> Candidate:
    """The first candidate with these changes of degree; of graphs alone where none is named."""
    for candidate in question.candidates:
        changes = {change.field: (change.before, change.after) for change in candidate.changes}
        if wanted.items() <= changes.items() and (wanted or set(changes) == {"cuda_graphs"}) and "pp" not in changes:
            return candidate
    raise AssertionError(f"no candidate changes {wanted}")


def one_way(question: AdvisorInput) -> Candidate:
    """A plan that takes tp from 8 to 1 and dp from 1 to 8."""
    return changing(question, tp=("8", "1"), dp=("1", "8"))


def problems(question: AdvisorInput, text: str, candidate: Candidate | None = None) -> tuple[str, ...]:
    pick = Pick(candidate=(candidate or one_way(question)).id, rationale=text, evidence=("ev-idle",))
    return prose_problems(question, AdvisorChoice(picks=(pick,)))


@pytest.mark.parametrize(
    "text",
    [
        "Launches limit the step, so graphs help.",
        "The device is idle 86.3 % of the window.",
        "The device is idle 86.3% of the window, and 99.4 percent of that ends with a late launch.",
        "Less tensor parallelism (8 to 1) leaves each device more work.",
        "Tensor parallelism falls from 8 to 1, tp=1, so no layer is shared.",
        "It reduces tensor-parallel communication and is not slower.",
        "It adds data parallelism: dp goes 1->8 on b200.",
        "It raises data parallelism of attention to 8.",
        "It asks for more memory bandwidth and unfolds in 3 more changes.",
        "Arithmetic stays in fp8 or bf16.",
    ],
)
def test_what_the_data_says_may_be_said(question, text):
    assert problems(question, text) == ()


def test_the_projected_change_may_be_said_in_each_form(question):
    first = one_way(question)
    step, gain = first.expected.step_time_frac, first.gain_frac
    assert step is not None
    memory = first.projection.memory
    assert memory is not None
    for text in (
        f"The step is {abs(step) * 100:.1f} % faster.",
        f"It gains {gain * 100:.0f} %.",
        f"The rate is {1 + gain:.1f}x that of today.",
        f"From {question.reference_step_time_s * 1e3:.1f} to {first.step_time_s * 1e3:.1f} ms.",
        f"It needs {memory.total_bytes / 1e9:.1f} of {memory.capacity_bytes / 1e9:.0f} GB.",
    ):
        assert problems(question, text) == (), text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("It is 41.7 % better.", "the number 41.7 is no figure (outcome percent) of this plan"),
        ("It is 86.3 % faster.", "the number 86.3 is no figure (outcome percent) of this plan"),
        ("It needs 86.3 GB.", "the number 86.3 is no figure (gb) of this plan"),
        ("It takes 8 ms.", "the number 8 is no figure (ms) of this plan"),
        ("It is 8x the rate.", "the number 8 is no figure (ratio) of this plan"),
        ("It saves 40%of the time.", "the number 40 is no figure (other) of this plan"),
        ("It costs 1e6 dollars.", "a name with digits does not stand in the data of this plan"),
        ("It handles 12,345 requests.", "a name with digits does not stand in the data of this plan"),
        ("The kernel bmm_E2m1 waits.", "a name with digits does not stand in the data of this plan"),
        ("It is faster, by 86.3 %.", "the number 86.3 is no figure (outcome percent) of this plan"),
        ("It is twice as fast.", "the quantity 'twice' is written as a word"),
        ("It doubles the rate.", "the quantity 'doubles' is written as a word"),
        ("More tensor parallelism helps.", "more tp is claimed, in this plan there is less of it"),
        ("Tensor parallelism is increased.", "more tp is claimed, in this plan there is less of it"),
        ("It reduces the degree of data parallelism.", "less dp is claimed, in this plan there is more of it"),
        ("It adds pipeline stages.", "more pp is claimed, in this plan it does not change"),
        ("Tensor parallelism goes from 4 to 1.", "tp does not change from 4 to 1 in this plan"),
        ("The step is slower.", "more step time is claimed, its projected direction is: less"),
        ("Click [here](x).", "the prose holds a link, markup, code or an internal id"),
        ("See www.example.org.", "the prose holds a link, markup, code or an internal id"),
        ("<b>Good.</b>", "the prose holds a link, markup, code or an internal id"),
        ("As ev-idle shows.", "the prose holds a link, markup, code or an internal id"),
    ],
)
def test_what_it_does_not_say_is_refused(question, text, problem):
    assert f"{one_way(question).id}: {problem}" in problems(question, text)


def test_what_is_true_of_one_plan_is_refused_of_another(question):
    assert problems(question, "It uses less tensor parallelism.", one_way(question)) == ()
    assert problems(question, "It uses less tensor parallelism.", changing(question)) != ()


def test_memory_claims_follow_the_projection(question):
    said = {"less": "It needs less memory.", "more": "It needs more memory."}
    for candidate in question.candidates:
        for direction, text in said.items():
            agrees = candidate.expected.memory_direction == direction
            assert (problems(question, text, candidate) == ()) is agrees
