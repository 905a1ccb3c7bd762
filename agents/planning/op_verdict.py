"""The verdict from an operator table: which group of work leads the step, and what the rows leave open.

  1. The headline gives the hypothesis: the device waits, talks, copies or runs kernels for most of the step.
  2. The group whose identified rows take most of the step overturns it, if they take a twentieth of the step: removing
     less than that whole would gain less than 5 %, so it cannot be the bottleneck.
  3. Idle time is measured to the full, it cannot hide among rows: it leads only where the headline says so, or where it
     outweighs every group and all time that no row explains.
Where more time is in rows that decide nothing than the verdict leads by, that time could overturn it.
"""

from typing import Final, Literal

from agents.planning.op_level import OpLevel
from agents.wording import percent

Group = Literal["compute", "memory", "communication", "waiting"]

MATERIAL_FRAC: Final = 0.05
GROUP_WORDS: Final[dict[Group, str]] = {
    "compute": "bound by the core",
    "memory": "bound by HBM",
    "communication": "collectives that wait for links or peers",
    "waiting": "idle time",
}


def groups_of_rows(ops: OpLevel, idle: float) -> dict[Group, float]:
    """Share of the step in each group: identified rows with a known limit, and idle time with waits for the host."""
    return {
        "compute": ops.share("arithmetic"),
        "memory": ops.share("memory"),
        "communication": ops.share("communication") + ops.unlisted,
        "waiting": idle + ops.share("host"),
    }


def undecided_of(ops: OpLevel) -> float:
    """Share of the step in rows that decide nothing, and in no row at all."""
    return ops.share("unattributed") + ops.share("unresolved") + ops.missing


def leading_group(ops: OpLevel, groups: dict[Group, float], hypothesis: Group) -> Group:
    """The group that leads, by the three steps of this module."""
    seen = _largest_seen(groups)
    idle = groups["waiting"]
    if idle >= groups[seen] and (hypothesis == "waiting" or idle > undecided_of(ops)):
        return "waiting"
    return seen if groups[seen] >= MATERIAL_FRAC else hypothesis


def row_doubts(ops: OpLevel, groups: dict[Group, float], leader: Group, margin: float) -> list[str]:
    """Why the rows may be wrong about the leader, as sentences."""
    doubts = []
    seen = _largest_seen(groups)
    if leader != "waiting" and groups[seen] < MATERIAL_FRAC:
        doubts.append(
            f"the identified operators show no limit that takes {percent(MATERIAL_FRAC)} of the step (the largest is "
            f"{percent(groups[seen])}, {GROUP_WORDS[seen]}): the headline decides"
        )
    undecided = undecided_of(ops)
    if undecided > margin:
        doubts.append(
            f"{percent(undecided)} of the step is in operators that the profile does not identify or gives no limit "
            "of; they decide nothing here and could overturn the verdict"
        )
    moved = ops.memory_collectives
    if leader == "memory" and groups["communication"] + moved >= groups["memory"] - moved:
        doubts.append(
            f"{percent(moved)} of the step is in collectives labelled HBM-bound; if links limit them the class is "
            "communication"
        )
    return doubts


def _largest_seen(groups: dict[Group, float]) -> Group:
    seen: tuple[Group, ...] = ("compute", "memory", "communication")
    return max(seen, key=lambda name: groups[name])
