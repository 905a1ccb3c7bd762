"""Rankings and sizings, the same for the service and the command line."""

from collections.abc import Callable

from agents.frameworks import framework_named, stack_of
from agents.planning.request_checks import check_request
from agents.request import PlanRequest
from app.schemas_ranking import RankRequest, SizeRequest
from projector import catalog
from projector.errors import InvalidDescription
from projector.memory_limit import with_memory_limit
from projector.ranking.rank import rank_space
from projector.ranking.records import SpaceRanking
from projector.ranking.sizing import machines, powers_of_two, size
from projector.ranking.sizing_records import ChipCounts, Sizing
from projector.ranking.sizing_serving import MOST_ENGINE_CHIPS, size_serving
from projector.ranking.task import Stack, Task
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import Slo
from projector.specs.workload import WorkloadSpec


def ranking_of(request: RankRequest) -> SpaceRanking:
    """The ranked space. UnknownName, InvalidDescription as `rank_space` and for parts of the request that clash."""
    _check(
        workload=request.workload,
        architecture=request.architecture,
        cluster=request.cluster,
        current_plan=request.current_plan,
        objective=request.objective,
        slo=request.slo,
        constraints=request.constraints,
    )
    hardware = with_memory_limit(catalog.chip(request.cluster.chip), request.constraints)
    task = Task(
        workload=request.workload,
        architecture=_model(request.workload, request.architecture),
        cluster=request.cluster.model_copy(update={"chip": hardware.id}),
        hardware=hardware,
        constraints=request.constraints,
        current=request.current_plan,
        slo=request.slo,
        stack=_stack(request.framework, request.workload),
    )
    if request.measured is not None:
        task = task.anchored(request.measured)
    return rank_space(
        task, objective=request.objective, top=request.top, pareto=request.pareto, relieve=request.relieve
    )


def sizing_of(request: SizeRequest, say: Callable[[str], None] = lambda _: None) -> Sizing:
    """The machines by cost. UnknownName, InvalidDescription as `machines` and `size`."""
    _check(workload=request.workload, architecture=request.architecture, constraints=request.constraints)
    if request.machines and request.chips:
        raise InvalidDescription("chips and machines both say what is compared", hint="give one of the two")
    names = request.chips or tuple(chip.id for chip in catalog.chips())
    serving = request.workload.phase == "serving"

    def chip(name: str) -> HardwareProfile:
        return with_memory_limit(catalog.chip(name), request.constraints)

    counts = powers_of_two(min(request.max_chips, MOST_ENGINE_CHIPS) if serving else request.max_chips)
    candidates = request.machines or tuple(ChipCounts(chip=name, chips=counts) for name in names)
    if serving:
        if request.framework is not None:
            raise InvalidDescription("framework names a training stack", hint="leave it out for serving")
        return size_serving(
            request.workload,
            _model(request.workload, request.architecture),
            request.target,
            machines(candidates, request.prices_usd, chip),
            slo=request.slo,
            constraints=request.constraints,
            scale_to=None if request.machines else request.max_chips,
            say=say,
        )
    if request.slo != Slo():
        raise InvalidDescription("latency budgets of a training workload", hint="state step_time_s in the target")
    return size(
        request.workload,
        _model(request.workload, request.architecture),
        request.target,
        machines(candidates, request.prices_usd, chip),
        constraints=request.constraints,
        stack=_stack(request.framework, request.workload),
        say=say,
    )


def _check(**parts: object) -> None:
    check_request(PlanRequest.model_validate(parts))


def _model(workload: WorkloadSpec, own: ModelArchitecture | None) -> ModelArchitecture:
    if own is not None:
        return own
    if workload.model is None:
        raise InvalidDescription("no model is named", hint="state workload.model or architecture")
    return catalog.architecture(workload.model)


def _stack(name: str | None, workload: WorkloadSpec) -> Stack | None:
    """What the named framework bounds. UnknownName; InvalidDescription for a serving workload."""
    if name is None:
        return None
    if workload.phase != "training":
        raise InvalidDescription("framework names a training stack", hint="leave it out for serving")
    return stack_of(framework_named(name))
