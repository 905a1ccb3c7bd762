"""A question an advisor may be asked, from few figures."""

from collections.abc import Sequence

from planning_examples import summary_of, sure

from agents.advisors.protocol import AdvisorInput, Candidate, LeverView, Note, Standing, Step
from agents.findings import Change, Citation, Evidence, Expected
from agents.planning.analyzer import diagnose
from agents.planning.titles import KEEP_TITLE, changes_of, title_of
from agents.proposal_parts import Effort
from projector.breakdown import Interval, MemoryBreakdown, Projection, TimeBreakdown
from projector.specs.objective import OBJECTIVES
from projector.specs.plan import ParallelismPlan
from traces.summary_types import Implied

CURRENT = ParallelismPlan(tp=8, dp=8)
EXPOSED_TP = diagnose(
    summary_of(
        compute_ms=300,
        exposed_ms=600,
        kinds={"gemm": 300},
        collectives=[("tp", 600)],
        implied=Implied(phase=sure("training")),
    )
)
LAUNCH_BOUND = diagnose(summary_of(compute_ms=100, kinds={"gemm": 100}, launch_bound_frac=0.9))


def projection_of(plan: ParallelismPlan, step_time_s: float, memory_gb: float = 40) -> Projection:
    return Projection(
        plan=plan,
        chip="h100-sxm",
        chips=64,
        source="modelled",
        step_time_s=step_time_s,
        step_time_interval_s=Interval(low=step_time_s * 0.9, high=step_time_s * 1.1, basis="example"),
        breakdown=TimeBreakdown(
            source="modelled",
            total_s=step_time_s,
            compute_s=step_time_s,
            exposed_communication_s=0,
            overlapped_communication_s=0,
            idle_s=0,
        ),
        memory=MemoryBreakdown(weights_bytes=memory_gb * 1e9, capacity_bytes=80e9),
    )


def candidate(
    number: int,
    plan: ParallelismPlan,
    gain: float,
    *,
    levers: Sequence[str] = ("tensor_parallelism",),
    relieving: bool = False,
    effort: Effort = "relaunch",
    extra_changes: int = 0,
    memory_gb: float = 40,
) -> Candidate:
    """A candidate that improves a 10 s step by `gain`."""
    keeps = plan == CURRENT
    changes = (
        changes_of(CURRENT, plan, {}) + (Change(field="vp", before="1", after="2", why="example"),) * extra_changes
    )
    return Candidate(
        id=f"c{number}",
        title=KEEP_TITLE if keeps else title_of(CURRENT, plan),
        plan=plan,
        projection=projection_of(plan, 10 / (1 + gain), memory_gb),
        changes=changes,
        levers=tuple(levers),
        relieving=tuple(levers) if relieving else (),
        steps=(Step(levers=tuple(levers), gain_frac=gain, too_large_without_bytes=None),),
        effort=effort,
        gain_frac=gain,
        step_time_s=10 / (1 + gain),
        expected=Expected(
            step_time_frac=1 / (1 + gain) - 1,
            objective_frac=gain,
            memory_frac=0.0,
            exposed_communication_frac=None,
            idle_frac=None,
            step_time_direction="less" if gain > 0 else "same",
            memory_direction="same",
            basis="example",
        ),
        keeps=keeps,
        is_reference=keeps,
        evidence=(
            Evidence(
                id=f"ev-c{number}-gain", claim="gain", value=gain, source="modelled", ref="projection.step_time_s"
            ),
        ),
    )


def note(chunk: str, levers: Sequence[str]) -> Note:
    return Note(
        citation=Citation(
            note_id=chunk, chunk_id=chunk, title=chunk, quote="a passage", sources=("https://x",), similarity=0.5
        ),
        levers=tuple(levers),
        causes=("exposed_tp",),
    )


def stand(entry: Candidate, *, holds: bool, relieves: bool = False, chunk: str = "fsdp-1") -> Candidate:
    """The candidate with what a note says of it."""
    standing = Standing(chunk_id=chunk, title="A note", holds=holds, relieves=relieves, statement="a < b, with a = 1")
    return entry.model_copy(update={"standings": (*entry.standings, standing)})


def question(
    candidates: Sequence[Candidate], *, notes: Sequence[Note] = (), layout_relieves: bool = True, wanted: int = 3
) -> AdvisorInput:
    names = {name for entry in candidates for name in entry.levers}
    return AdvisorInput(
        phase="training",
        objective=OBJECTIVES[0],
        diagnosis=EXPOSED_TP if layout_relieves else LAUNCH_BOUND,
        reference_label="the current plan (dp 8 tp 8)",
        reference_is_current=True,
        reference=projection_of(CURRENT, 10.0),
        reference_step_time_s=10.0,
        anchored=False,
        layout_relieves=layout_relieves,
        levers=tuple(
            LeverView(
                name=name,
                summary="example",
                mechanism=f"{name} works.",
                relieves=("exposed_tp",),
                numerics=name == "precision",
                effort="relaunch",
            )
            for name in sorted(names)
        ),
        candidates=tuple(candidates),
        notes=tuple(notes),
        wanted=min(wanted, len(candidates)),
    )
