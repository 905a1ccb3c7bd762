"""Requests that contradict themselves: refused with the two values that clash, before anything is computed."""

from math import prod

from agents.planning.resolve_workload import TRAFFIC
from agents.request import PlanRequest
from agents.wording import listed
from projector import catalog
from projector.errors import InvalidDescription
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.objective import named_objective
from projector.specs.plan import Phase

DEVICE_AXES = ("dp", "tp", "pp", "cp")


def check_request(request: PlanRequest) -> None:
    """InvalidDescription when two parts of the request cannot both hold, UnknownName for a name in no catalogue."""
    _check_phases(request)
    _check_model(request)
    for name in request.hardware:
        catalog.chip(name)
    if request.cluster is not None:
        _check_devices(request, request.cluster)
    _check_constraints(request.constraints)


def nothing_to_plan(request: PlanRequest) -> InvalidDescription:
    """The refusal of a request without a trace that names no model or no cluster: nothing else could supply them."""
    missing = []
    if request.architecture is None and (request.workload is None or request.workload.model is None):
        missing.append("workload.model (or architecture)")
    if request.cluster is None:
        missing.append("cluster.chip and cluster.chips")
    models = ", ".join(model.name for model in catalog.architectures()[:5])
    return InvalidDescription(
        f"nothing to plan: there is no trace, and the request lacks {listed(missing)}",
        hint=f"send a profiler trace, or name a model (such as {models}) and a cluster",
    )


def stated_phase(request: PlanRequest) -> tuple[Phase, str] | None:
    """The phase some part of the request states, and which part. Defaults that nobody wrote state nothing."""
    phases = _stated_phases(request)
    if not phases:
        return None
    where, phase = next(iter(phases.items()))
    return phase, where


def _stated_phases(request: PlanRequest) -> dict[str, Phase]:
    found: dict[str, Phase] = {}
    workload, current = request.workload, request.current_plan
    serving_keys = {"input_len", "output_len", "concurrency", *TRAFFIC}
    if workload is not None and "phase" in workload.model_fields_set:
        found["workload.phase"] = workload.phase
    elif workload is not None and workload.model_fields_set & {"seq_len", "global_batch"}:
        found["workload"] = "training"
    elif workload is not None and workload.model_fields_set & serving_keys:
        found["workload"] = "serving"
    if current is not None and "phase" in current.model_fields_set:
        found["current_plan.phase"] = current.phase
    if request.objective is not None:
        phases = named_objective(request.objective).phases
        if len(phases) == 1:
            found["objective"] = phases[0]
    if any(limit is not None for limit in request.slo.model_dump().values()):
        found["slo"] = "serving"
    return found


def _check_phases(request: PlanRequest) -> None:
    phases = _stated_phases(request)
    if len(set(phases.values())) > 1:
        clash = ", ".join(f"{where} says {phase}" for where, phase in phases.items())
        raise InvalidDescription(f"the request names two phases: {clash}", hint="state one phase everywhere")


def _check_model(request: PlanRequest) -> None:
    name = request.workload.model if request.workload else None
    if request.architecture is not None and name is not None and name != request.architecture.name:
        raise InvalidDescription(
            f"workload.model is {name!r} and architecture describes {request.architecture.name!r}",
            hint="give one of the two, or the same name in both",
        )
    model = request.architecture or (catalog.architecture(name) if name is not None else None)
    imbalance = request.observed.expert_imbalance if request.observed is not None else None
    if model is not None and not model.is_moe and imbalance is not None and imbalance > 1:
        raise InvalidDescription(
            f"observed.expert_imbalance is {imbalance:g} and {model.name} has no experts", hint="leave one of them out"
        )


def _check_devices(request: PlanRequest, cluster: ClusterSpec) -> None:
    chip = catalog.chip(cluster.chip)
    devices = cluster.chips * chip.devices_per_chip
    plan = request.current_plan
    if plan is not None and plan.devices != devices:
        raise InvalidDescription(
            f"current_plan occupies {plan.devices} devices, the cluster has {devices} "
            f"({cluster.chips} chips x {chip.devices_per_chip} devices a chip)",
            hint="dp * cp * tp * pp plus a prefill pool must equal the device count; leave current_plan "
            "out when the job moves elsewhere",
        )


def check_fixed_axes(constraints: Constraints, devices: int) -> None:
    """InvalidDescription when the axes that are fixed cannot multiply to the device count."""
    fixed = {axis: value for axis, value in constraints.fixed.items() if axis in DEVICE_AXES and isinstance(value, int)}
    product = prod(fixed.values())
    if product < 1 or devices % product or (len(fixed) == len(DEVICE_AXES) and product != devices):
        listed = " * ".join(f"{axis} {value}" for axis, value in fixed.items())
        total = f" = {product}" if len(fixed) > 1 else ""
        raise InvalidDescription(
            f"constraints.fixed asks for {listed}{total}, which does not divide {devices} devices",
            hint="the device count is fixed by the cluster; free one axis",
        )


def _check_constraints(constraints: Constraints) -> None:
    for name, value in constraints.fixed.items():
        limits = constraints.bounds.get(name)
        if limits is None or not isinstance(value, int):
            continue
        if (limits.low is not None and value < limits.low) or (limits.high is not None and value > limits.high):
            raise InvalidDescription(
                f"constraints.fixed sets {name} = {value}, outside constraints.bounds "
                f"[{limits.low if limits.low is not None else '-'}, {limits.high if limits.high is not None else '-'}]"
            )
