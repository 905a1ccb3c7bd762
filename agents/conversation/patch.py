"""A request with the facts of a message: the next plan is made from it."""

from collections.abc import Sequence
from math import prod
from typing import Any

from agents.conversation.records import Fact
from agents.findings import PlanResult
from agents.request import PlanRequest
from projector import catalog
from projector.errors import InvalidDescription

MACHINE = ("chip", "chips", "devices", "nodes", "topology")


def with_facts(request: PlanRequest, result: PlanResult, facts: Sequence[Fact]) -> PlanRequest:
    """The request as it would have been written with these facts.

    Another machine drops the current layout, which does not fill it. InvalidDescription for facts that contradict the
    request or each other, and where they speak of a machine of which nothing is known; else whatever the records raise.
    """
    document = request.model_dump(mode="json", exclude_unset=True)
    machine = {fact.path[1]: fact.value for fact in facts if fact.path[0] == "cluster"}
    for fact in facts:
        if fact.path[0] != "cluster":
            _set(document, fact)
    if machine:
        known = document.get("cluster") or _seen_cluster(result)
        cluster = _cluster(known, machine)
        if known is None or any(cluster[key] != _same_name(known.get(key)) for key in cluster):
            document["cluster"] = cluster
            document.pop("current_plan", None)
            document.pop("current_mesh", None)
    return PlanRequest.model_validate(document)


def _same_name(value: Any) -> Any:
    """A chip by its catalogue id, as a stated machine names it."""
    return catalog.chip(value).id if isinstance(value, str) else value


def _set(document: dict[str, Any], fact: Fact) -> None:
    part = document
    for key in fact.path[:-1]:
        part = part.setdefault(key, {})
        if not isinstance(part, dict):
            raise InvalidDescription(f"{fact.text}: the request has another kind of value at {key}")
    part[fact.path[-1]] = fact.value
    if fact.path[:2] == ("constraints", "fixed"):
        document["constraints"].get("bounds", {}).pop(fact.path[2], None)
    if fact.path[:2] == ("constraints", "bounds"):
        document["constraints"].get("fixed", {}).pop(fact.path[2], None)


def _seen_cluster(result: PlanResult) -> dict[str, Any] | None:
    """The machine a trace showed: what the proposals are projected on."""
    projections = [one.projections[0] for one in result.proposals] or ([result.current] if result.current else [])
    return {"chip": projections[0].chip, "chips": projections[0].chips} if projections else None


def _cluster(cluster: dict[str, Any] | None, machine: dict[str, Any]) -> dict[str, Any]:
    chip = machine.get("chip") or (cluster or {}).get("chip")
    if chip is None:
        raise InvalidDescription("the machine is not known", hint="name its chip and how many there are")
    profile = catalog.chip(chip)
    counts = {
        "chips": machine.get("chips"),
        "devices": _whole(machine.get("devices"), profile.devices_per_chip),
        "nodes": None if machine.get("nodes") is None else machine["nodes"] * profile.chips_per_node,
        "topology": None if machine.get("topology") is None else prod(machine["topology"]),
    }
    stated = {name: count for name, count in counts.items() if count is not None}
    if len(set(stated.values())) > 1:
        raise InvalidDescription(f"these are not as many chips: {stated}", hint="state one of them")
    chips = next(iter(stated.values()), (cluster or {}).get("chips"))
    if chips is None:
        raise InvalidDescription("how many chips there are is not known", hint="state the number of chips")
    found: dict[str, Any] = {"chip": profile.id, "chips": chips}
    if machine.get("topology") is not None:
        found["topology"] = list(machine["topology"])
    return found


def _whole(devices: int | None, per_chip: int) -> int | None:
    if devices is None:
        return None
    if devices % per_chip:
        raise InvalidDescription(f"{devices} devices are no whole number of chips, at {per_chip} devices a chip")
    return devices // per_chip
