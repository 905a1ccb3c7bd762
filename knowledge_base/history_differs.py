"""What differs between two runs, in words: a near miss must say why it is one."""

from collections.abc import Iterator

from knowledge_base.history_columns import same_model
from knowledge_base.past import PastCase, PastQuestion, PastRun
from projector.names import normalise
from projector.specs.plan import LAYOUT_FIELDS

# field, what one says of its value
SIZES = (
    ("chips", "{} chips"),
    ("seq_len", "sequences of {} tokens"),
    ("global_batch", "global batch {}"),
    ("input_len", "prompts of {} tokens"),
    ("output_len", "outputs of {} tokens"),
    ("concurrency", "{} requests in flight"),
)
# tasks whose layouts serve no other
PARTIAL_TASKS = ("lora", "qlora", "rl")
NOT_STATED = (*(field for field, _ in SIZES), "precision", "framework")


def differences(case: PastRun, other: PastRun) -> tuple[str, ...]:
    """What the case has and the other run has not, as both state it; then what only the other states."""
    return (*_stated(case, other), *_open(case, other))


def question_differences(case: PastCase, question: PastQuestion) -> tuple[str, ...]:
    """`differences`, and what the change started from where that is not the current layout."""
    return (*_stated(case, question), *_baseline(case, question), *_open(case, question))


def same_baseline(case: PastCase, question: PastQuestion) -> bool:
    """Whether the case started from the current layout, or from none in particular."""
    if case.baseline is None:
        return True
    return question.baseline is not None and case.baseline.agrees_with(question.baseline)


def same_task(first: PastRun, second: PastRun) -> bool:
    """Whether the same weights are trained in the same loop, as far as both say; layouts of the first training serve
    for tuning all weights too."""
    tasks = {run.task for run in (first, second) if run.task is not None}
    return len(tasks) < 2 or tasks == {"pretrain", "sft"}


def _stated(case: PastRun, other: PastRun) -> Iterator[str]:
    if not same_model(case, other):
        if case.model is not None and other.model is not None:
            yield f"model {case.model} instead of {other.model}"
        else:
            yield "the model is not named" if case.model is None else f"model {case.model}; yours is not known"
    elif case.family and other.family and normalise(case.family) != normalise(other.family):
        yield f"{case.model or case.family} instead of {other.model or other.family}, of one shape"
    if case.chip != other.chip:
        named = case.chip or (case.chip_stated if isinstance(case, PastCase) else "")
        yield f"{named or 'chip not stated'} instead of {other.chip or 'a chip not known'}"
    if not same_task(case, other):
        yield f"{case.task} instead of {other.task}"
    elif other.task is None and case.task in PARTIAL_TASKS:
        yield f"it is a case of {case.task}"
    for field, words in SIZES:
        has, wants = getattr(case, field), getattr(other, field)
        if has is not None and wants is not None and has != wants:
            yield f"{words.format(f'{has:,}')} instead of {wants:,}"
    if case.precision is not None and other.precision is not None and case.precision != other.precision:
        yield f"{case.precision} instead of {other.precision}"
    if case.framework and other.framework and not same_framework(case.framework, other.framework):
        yield f"{case.framework} instead of {other.framework}"
    if case.cause not in (None, "unknown") and other.cause not in (None, "unknown") and case.cause != other.cause:
        yield f"the cause was {_words(case.cause)}, not {_words(other.cause)}"


def _baseline(case: PastCase, question: PastQuestion) -> Iterator[str]:
    if same_baseline(case, question):
        return
    assert case.baseline is not None
    if question.baseline is None:
        yield f"it started from {case.baseline.text}; your current layout is not known"
        return
    plan = question.baseline
    current = " ".join(f"{name} {getattr(plan, name)}" for name in LAYOUT_FIELDS if getattr(plan, name) > 1)
    yield f"it started from {case.baseline.text} instead of {current or 'one device'}"


def _open(case: PastRun, other: PastRun) -> Iterator[str]:
    missing = [name for name in NOT_STATED if getattr(case, name) is None and getattr(other, name) is not None]
    if missing:
        yield f"not stated: {', '.join(name.replace('_', ' ') for name in missing)}"


def same_framework(first: str, second: str) -> bool:
    """Whether two names mean one framework: one is the beginning of the other, releases and editions apart."""
    short, long = sorted((normalise(first), normalise(second)), key=len)
    return long.startswith(short)


def _words(name: str | None) -> str:
    return (name or "").replace("_", " ")
