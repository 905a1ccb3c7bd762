"""`eval advice` over workloads, from files to report: spaces, folds, answers, and what leaving out a part costs."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.evaluation.accuracy import Say
from agents.evaluation.advice import Advised, Material, advise, choices_of, published_of
from agents.evaluation.advice_parts import PARTS, Past, Setup
from agents.evaluation.advice_report import ablation_of, costs_of, efforts_of, order_only, reliability_of
from agents.evaluation.baselines import Published
from agents.evaluation.hits import TOO_LARGE
from agents.evaluation.practice_fit import COMMAND, PRIOR, blind_models, shipped_sets
from agents.evaluation.reports_advice import AblationRow, AdviceReport, RefusedRun
from agents.evaluation.rows import MeasuredRow, Unreadable
from agents.evaluation.topk import FrameworkInput, report_of
from agents.evaluation.workloads import Workload
from agents.planning.state import Knowledge
from agents.practice.model import PracticeModel, shipped_model

FITTED_ON = "pretrain"
NOTES = (
    "the whole service without a trace: proposals of the rules advisor, in their order; ranks beyond them are those of "
    "the order of layouts",
    "each workload is blind to its own (family, chip) group: history hides it, and weights of practice and their "
    "calibration are those that ship where these have not seen it, else fitted on the other groups given",
    "told: model, chip, number of chips, precision, sequence length, global batch and phase, and the framework only "
    "where it is named",
    "a workload that cannot be planned counts as missed; the commonest layouts leave the workload's own group out",
    "what was chosen on these workloads and not fold by fold: which figures of a layout count, how votes of past runs "
    "fade, and how much slower than the best a first place may be projected",
)
NO_MODEL = "no language model is asked in this evaluation: without one the answer is the same"


@dataclass(frozen=True)
class Question:
    """What is evaluated. every_part: the table of ablations too."""

    phase: str
    framework: FrameworkInput
    setup: Setup
    every_part: bool = False
    with_ids: bool = False
    with_workloads: bool = False


def advice(
    workloads: Sequence[Workload | Unreadable],
    rows: Sequence[MeasuredRow | Unreadable],
    question: Question,
    knowledge: Knowledge,
    past: Past,
    say: Say = lambda _: None,
) -> AdviceReport:
    """The report over every eligible workload of a training phase."""
    known = {row.id: row for row in rows if isinstance(row, MeasuredRow)}
    asked = published_of(workloads, known, (question.phase,))
    fitted_on = published_of(workloads, known, tuple({FITTED_ON, question.phase}))
    choices = choices_of(fitted_on, known, question.framework, past, say)
    models = blind_models(list(choices.values()), shipped_model())
    own = [choices[one.workload.id] for one in asked if one.workload.id in choices]
    seen = [one for one in own if one.group in shipped_model().groups]
    given = Material(known, question.framework, knowledge, past, choices, models)
    answers = advise(asked, asked, given, question.setup, say)
    report = report_of(
        [one.outcome for one in answers],
        [(one.id, one.reason) for one in workloads if isinstance(one, Unreadable)],
        question.phase,
        question.framework,
        with_ids=question.with_ids,
        with_workloads=question.with_workloads,
    )
    ran, refused = _refused(answers)
    whole = report.model_dump() | {
        "notes": NOTES,
        "history": question.setup.has("history"),
        "diversity": question.setup.has("diversity"),
        "ablated": tuple(sorted(question.setup.ablated)),
        "refused_ran_n": ran,
        "refused_ran_share": len(refused) / ran if ran else None,
        "refused_ran": refused,
        "confidence": reliability_of(answers),
        "efforts": efforts_of(answers),
        "costs": costs_of(answers),
        "order_only": order_only(seen, list(choices.values()), with_past=question.setup.has("history")),
        "unseen_n": len(own) - len(seen),
        "ablations": _ablations(asked, answers, given, question, say) if question.every_part else (),
    }
    return AdviceReport.model_validate(whole)


def practice_model(
    workloads: Sequence[Workload | Unreadable],
    rows: Sequence[MeasuredRow | Unreadable],
    past: Past,
    data: str,
    say: Say = lambda _: None,
) -> PracticeModel:
    """The weights to ship, fitted on every eligible pre-training workload, framework named and not."""
    known = {row.id: row for row in rows if isinstance(row, MeasuredRow)}
    published = published_of(workloads, known, (FITTED_ON,))
    sets, groups = [], set()
    told: tuple[tuple[FrameworkInput, bool], ...] = (("named", True), ("unknown", False))
    for framework, named in told:
        choices = choices_of(published, known, framework, past, say)
        sets += shipped_sets(list(choices.values()), framework_named=named)
        groups |= {one.group for one in choices.values()}
    return PracticeModel(command=COMMAND, data=data, prior=PRIOR, groups=tuple(sorted(groups)), sets=tuple(sets))


def _ablations(
    asked: Sequence[Published], whole: Sequence[Advised], given: Material, question: Question, say: Say
) -> tuple[AblationRow, ...]:
    """Every part left out by itself."""
    rows: list[AblationRow] = []
    for part in PARTS:
        say(f"without {part}")
        setup = Setup(question.setup.ablated | {part})
        answers = whole if part == "llm" else advise(asked, asked, given, setup, say)
        rows += ablation_of(whole, answers, part, NO_MODEL if part == "llm" else "")
    return tuple(rows)


def _refused(answers: Sequence[Advised]) -> tuple[int, tuple[RefusedRun, ...]]:
    """(workloads whose model is modelled, those of which no adopted layout passes the gates, with what refuses it)."""
    found, ran = [], 0
    for one in answers:
        outcome = one.outcome
        if outcome.hits is None and outcome.refused != "no legal plan fits":
            continue
        ran += 1
        absent = TOO_LARGE if outcome.hits is None else outcome.hits.absent
        if absent:
            layouts = "; ".join(str(layout) for layout in sorted(outcome.published.layouts))
            rule = outcome.refused or absent
            found.append(RefusedRun(workload_id=outcome.published.workload.id, layout=layouts, rules=(rule,)))
    return ran, tuple(found)
