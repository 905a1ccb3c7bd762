"""A current layout given as a TPU mesh: spellings, axes not in use, and what is refused."""

import pytest

from agents.planning.mesh_input import with_mesh
from agents.request import PlanRequest
from projector.errors import InvalidDescription, UnknownName


def layout(mesh: dict[str, int | None]) -> tuple[int, int, int]:
    request, _ = with_mesh(PlanRequest(current_mesh=mesh))
    assert request.current_plan is not None
    return request.current_plan.dp, request.current_plan.cp, request.current_plan.tp


@pytest.mark.parametrize(
    "mesh",
    [
        {"replica": 2, "data": 3, "seq": 5, "model": 7},
        {"model": 7, "seq": 5, "data": 3, "replica": 2},
        {"Replicas": 2, "batch": 3, "sequence": 5, "mdl": 7},
        {"replica": 2, "dp": 3, "context": 5, "tensor": 7},
    ],
)
def test_order_and_spelling_do_not_matter(mesh: dict[str, int | None]) -> None:
    assert layout(mesh) == (6, 5, 7)


def test_an_axis_without_a_degree_is_not_in_use() -> None:
    assert layout({"data": 4, "model": None}) == (4, 1, 1)


def test_plans_keep_to_the_axes_a_mesh_has() -> None:
    request, (assumption,) = with_mesh(PlanRequest(current_mesh={"data": 4}))
    assert request.constraints.fixed == {"pp": 1, "ep": 1}
    assert assumption.field == "current_plan.fsdp"


def test_a_request_without_a_mesh_stays_as_it_is() -> None:
    request = PlanRequest()
    assert with_mesh(request) == (request, ())


def test_an_axis_nobody_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="modle") as refused:
        with_mesh(PlanRequest(current_mesh={"modle": 2}))
    assert "model" in refused.value.nearest


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"current_mesh": {"mdl": 2, "model": 2}}, "names one axis twice"),
        ({"current_mesh": {"data": 2}, "current_plan": {"dp": 2}}, "both given"),
        ({"current_mesh": {"data": 2}, "constraints": {"fixed": {"pp": 2}}}, "no axis"),
        ({"current_mesh": {"data": 2}, "constraints": {"bounds": {"ep": {"high": 4}}}}, "no axis"),
    ],
)
def test_contradictions_are_refused(keys: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidDescription, match=why):
        with_mesh(PlanRequest.model_validate(keys))
