"""The current layout as TPU trainers write it: axes of a device mesh, in their many spellings."""

from collections import Counter
from collections.abc import Mapping

from agents.findings import Assumption
from agents.request import PlanRequest
from projector.errors import InvalidDescription, UnknownName
from projector.specs.constraints import Constraints
from projector.specs.plan import MESH_AXES, ParallelismPlan

# MaxText, Paxml and the experiment plans of PROMPTS (MLSys 2026, appendix A) call one axis by several names.
SPELLINGS: Mapping[str, str] = {
    **{axis: axis for axis in MESH_AXES},
    "replicas": "replica",
    "dp": "data",
    "batch": "data",
    "sequence": "seq",
    "context": "seq",
    "cp": "seq",
    "mdl": "model",
    "tensor": "model",
    "tp": "model",
}
# a mesh of these four axes has none for pipeline stages and for experts
FIXED = {"pp": 1, "ep": 1}


def with_mesh(request: PlanRequest) -> tuple[PlanRequest, tuple[Assumption, ...]]:
    """The request with current_plan in place of current_mesh, kept to the axes such a mesh has, and what that assumes.

    An axis without a degree (null) is not in use. UnknownName for an axis nobody has; InvalidDescription for one that
    is named twice, beside a current_plan, or beside fixed stages or experts.
    """
    mesh = request.current_mesh
    if mesh is None:
        return request, ()
    if request.current_plan is not None:
        raise InvalidDescription("current_plan and current_mesh are both given", hint="leave one of them out")
    degrees = _degrees(mesh)
    axes = {"dp": degrees["replica"] * degrees["data"], "cp": degrees["seq"], "tp": degrees["model"]}
    plan = ParallelismPlan.model_validate(axes)
    assumption = Assumption(
        field="current_plan.fsdp",
        value="1",
        reason="a mesh does not say whether weights are sharded over data; they are taken as whole on every data rank",
        matters="sharded weights take less memory and are gathered in every layer; state current_plan to say so",
    )
    update = {"current_plan": plan, "current_mesh": None, "constraints": _kept_to_mesh(request.constraints)}
    return request.model_copy(update=update), (assumption,)


def _degrees(mesh: Mapping[str, int | None]) -> Counter[str]:
    degrees = Counter(dict.fromkeys(MESH_AXES, 1))
    seen: dict[str, str] = {}
    for name, degree in mesh.items():
        axis = SPELLINGS.get(name.lower())
        if axis is None:
            raise UnknownName("mesh axis", name, SPELLINGS)
        if axis in seen:
            raise InvalidDescription(f"current_mesh names one axis twice: {seen[axis]} and {name} both mean {axis}")
        seen[axis] = name
        degrees[axis] = 1 if degree is None else degree
    return degrees


def _kept_to_mesh(constraints: Constraints) -> Constraints:
    for field, value in FIXED.items():
        if constraints.fixed.get(field, value) != value or field in constraints.bounds:
            raise InvalidDescription(
                f"constraints name {field}, for which current_mesh has no axis", hint="state current_plan instead"
            )
    return constraints.model_copy(update={"fixed": {**constraints.fixed, **FIXED}})
