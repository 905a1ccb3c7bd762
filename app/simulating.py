"""Simulations, the same for the service and the command line."""

from agents.planning.request_checks import check_request
from agents.request import PlanRequest
from agents.request_logs import ReadLog, read_log
from app.schemas_simulation import SimulationAnswer, SimulationRequest
from projector import catalog
from projector.errors import InvalidDescription
from projector.legality import check
from projector.simulation.simulate import simulate
from projector.specs.architecture import ModelArchitecture


def simulation_of(request: SimulationRequest) -> SimulationAnswer:
    """The simulated plan. UnknownName, InvalidDescription as `simulate`, `read_log` and for a plan that is illegal."""
    read = None
    if request.log is not None:
        read = read_log(request.log.text.encode(), block_tokens=request.log.block_tokens)
    return simulated(request, read)


def simulated(request: SimulationRequest, read: ReadLog | None) -> SimulationAnswer:
    """The same with the log at hand (`request.log` is not looked at)."""
    check_request(
        PlanRequest(
            workload=request.workload, architecture=request.architecture, cluster=request.cluster, slo=request.slo
        )
    )
    hardware = catalog.chip(request.cluster.chip)
    cluster = request.cluster.model_copy(update={"chip": hardware.id})
    model = _model(request)
    rejections = check(request.plan, request.workload, model, cluster, hardware)
    if rejections:
        raise InvalidDescription(f"the plan is illegal: {'; '.join(one.text for one in rejections)}")
    result = simulate(
        request.plan,
        request.workload,
        model,
        cluster,
        hardware,
        requests=request.requests,
        warmup_requests=request.warmup_requests,
        seed=request.seed,
        routing=request.routing,
        slo=request.slo,
        log=None if read is None else read.log,
    )
    if read is not None:
        result = result.model_copy(update={"assumptions": (*result.assumptions, *read.notes)})
    return SimulationAnswer(plan=request.plan, workload=request.workload, cluster=cluster, result=result)


def _model(request: SimulationRequest) -> ModelArchitecture:
    if request.architecture is not None:
        return request.architecture
    if request.workload.model is None:
        raise InvalidDescription("no model is named", hint="state workload.model or architecture")
    return catalog.architecture(request.workload.model)
