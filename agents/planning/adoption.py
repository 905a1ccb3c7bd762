"""Adoption: what it takes to run another plan, read off what changes.

flag      a switch of the same launch
config    a value of the same launch
relaunch  other groups over the same checkpoint: data parallelism, weight sharding, context parallelism, replicas;
          in serving every layout, as engines cut a checkpoint while they load it
reshard   training: tensor, pipeline and expert parallelism and virtual stages say which weights a rank holds, so a
          checkpoint written by rank has to be cut anew (formats that are independent of the layout, such as PyTorch's
          distributed checkpoints, Megatron-Core's and Orbax, are cut while they load)
code      the software or the model's code has to learn it

What no exporter can write down is said beside the effort and does not raise it: a framework may do without being told.
"""

from agents.exporters import exporters
from agents.exporters.exporter import Job as Launch
from agents.planning.job import Job
from agents.proposal_parts import EFFORTS, Effort
from agents.wording import listed
from projector.errors import InvalidDescription
from projector.levers import changed_levers
from projector.specs.plan import ParallelismPlan

# fields that say which part of the weights a training rank holds
CUT_BY = ("tp", "pp", "vp", "ep", "etp", "first_stage_layers", "last_stage_layers", "schedule")


def effort_of(before: ParallelismPlan, after: ParallelismPlan, job: Job, *, runs: bool) -> Effort:
    """The largest effort any change takes. runs: something runs today whose checkpoint would be cut anew."""
    levers = [lever for lever in changed_levers(before, after) if job.phase in lever.phases]
    effort: Effort = max((lever.effort for lever in levers), key=EFFORTS.index, default="flag")
    resharded = runs and job.phase == "training" and any(_differ(before, after, field) for field in CUT_BY)
    return max(effort, "reshard", key=EFFORTS.index) if resharded else effort


def adoption_text(before: ParallelismPlan, after: ParallelismPlan, effort: Effort, job: Job, *, runs: bool) -> str:
    """Why it takes that effort, and which changes no launch configuration of ours can write down."""
    unsaid = _unsaid(before, after, job)
    reason = _reason(before, after, effort, job) if runs else "nothing runs yet, so it is the layout to start with"
    return "; ".join([reason, *([unsaid] if unsaid else [])])


def _unsaid(before: ParallelismPlan, after: ParallelismPlan, job: Job) -> str:
    """Of the exporter that lacks the fewest changes, those it lacks; '' where one says them all, or none can launch."""
    changed = {field for field in type(after).model_fields if _differ(before, after, field)}
    lacking: list[tuple[int, str, list[str]]] = []
    for exporter in exporters():
        if job.phase not in exporter.phases or not changed:
            continue
        try:
            config = exporter.export(Launch(after, job.workload, job.architecture, job.cluster, job.hardware))
        except InvalidDescription:
            continue
        if config.command:
            fields = [entry.field for entry in config.refused if entry.field in changed and not entry.inert]
            lacking.append((len(fields), config.title, fields))
    if not lacking:
        return ""
    count, title, fields = min(lacking)
    return f"the launch configuration for {title} cannot say {listed(fields)}" if count else ""


def _reason(before: ParallelismPlan, after: ParallelismPlan, effort: Effort, job: Job) -> str:
    if effort == "reshard":
        cut = listed([field for field in CUT_BY if _differ(before, after, field)])
        return (
            f"another {cut}, so a rank holds other weights: a checkpoint written by rank is cut anew, one in a format "
            "that is independent of the layout is only loaded again"
        )
    if effort == "relaunch":
        loaded = "engines cut the checkpoint as they load it" if job.phase == "serving" else "from the same checkpoint"
        return f"the job is started anew, {loaded}"
    if effort == "code":
        return "the change needs support in the software that runs, or in the model's code"
    if before == after:
        return "nothing changes"
    return "a switch of the same launch" if effort == "flag" else "a value of the same launch"


def _differ(before: ParallelismPlan, after: ParallelismPlan, field: str) -> bool:
    return bool(getattr(before, field) != getattr(after, field))
