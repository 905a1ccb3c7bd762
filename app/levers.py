"""What may be tried of each lever, the same for the service and the command line."""

from app.schemas_levers import InertField, LeversAnswer, LeversRequest
from projector import catalog
from projector.admissible import admissible_fields, inert_reasons
from projector.errors import InvalidDescription


def levers_of(request: LeversRequest) -> LeversAnswer:
    """The choices. UnknownName for a model or chip nobody knows, InvalidDescription where none is named or the plan is
    of another phase."""
    workload, plan = request.workload, request.plan
    if request.architecture is None and workload.model is None:
        raise InvalidDescription("no model is named", hint="state workload.model or architecture")
    if plan is not None and plan.phase != workload.phase:
        raise InvalidDescription(f"a {plan.phase} plan for a {workload.phase} workload", hint="state one phase in both")
    model = request.architecture or catalog.architecture(workload.model or "")
    hardware = catalog.chip(request.cluster.chip)
    cluster = request.cluster.model_copy(update={"chip": hardware.id})
    inert = None
    if plan is not None:
        reasons = inert_reasons(plan, model, cluster, hardware, workload)
        inert = tuple(InertField(field=field, because=because) for field, because in reasons.items())
    return LeversAnswer(
        phase=workload.phase,
        model=model.name,
        chip=hardware.id,
        chips=cluster.chips,
        fields=admissible_fields(model, cluster, hardware, workload),
        inert_in_plan=inert,
    )
