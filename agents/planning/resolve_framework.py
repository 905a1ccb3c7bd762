"""The framework a request names: of a training job a stack that bounds its plans, of a serving job its engine."""

from agents.frameworks import framework_named
from agents.planning.origins import Origins
from agents.request import PlanRequest
from projector.errors import InvalidDescription
from projector.serving_stacks import serving_stack
from projector.specs.plan import Phase
from projector.specs.workload import WorkloadSpec


def resolve_framework(request: PlanRequest, phase: Phase, origins: Origins) -> tuple[PlanRequest, str | None]:
    """(the request, in serving with the framework as its workload's engine; in training the stack's own name or None).

    UnknownName for a stack or an engine nobody knows, InvalidDescription where workload.engine is another one.
    """
    name = request.framework
    if name is None:
        return request, None
    if phase == "training":
        framework = framework_named(name)
        origins.stated("framework", framework.name, "request.framework")
        return request, framework.name
    engine = serving_stack(name).stack.engine
    workload = request.workload or WorkloadSpec(phase=phase)
    if workload.engine is None:
        return request.model_copy(update={"workload": workload.model_copy(update={"engine": name})}), None
    if serving_stack(workload.engine).stack.engine != engine:
        raise InvalidDescription(
            f"framework is {name!r} and workload.engine is {workload.engine!r}", hint="give one of the two"
        )
    return request, None
