"""Transport: how much of a ratio that was measured under the current plan holds under another one, 0 to 1.

A ratio r that holds to t corrects a term by r^t. With d(x) = |log2(x' / x)|, the doublings a degree moved:

    whole step     W exp(-(T (d(tp) + d(cp) + d(ep)) + M d(micro_batch) + P d(pp) + R [recompute differs])),
                                                                         0 where the compute dtype differs
    gemm           exp(-(S d(tp) + B (d(micro_batch) + d(cp)))),         0 where the compute dtype differs
    moe            exp(-(S (d(ep) + d(etp)) + B d(micro_batch))),        0 where the compute dtype differs
    attention      exp(-(S (d(tp) + d(cp)) + B d(micro_batch)))
    other kinds    1: their time follows bytes, whatever the shape
    compute whole  as gemm, and exp(-R) where recompute differs: another mix of kinds
    flow           exp(-G d(size of its group)) over the same tier of links by the same means, 0 otherwise
    bubble         exp(-G (d(pp) + d(vp))),                              0 in another schedule

The current plan itself keeps every ratio in full. Each degree moves shapes or groups away from those measured; degrees
whose kernels stay as they are move nothing.

W, T, M, P, R were fitted to pairs of measured runs of one sweep, one of them taken as a trace of which only the length
is known: 20,326 pairs in 168 sweeps of 17 (model, chip) groups (vTrain, InternEvo, BLOOM, torchtitan, Megatron-MoE).
They are the middle of what two states of the model want, every sweep or every source weighing the same; the error is
flat around them. T of cp and ep is that of tp.
No published sweep states the parts of a step. S and G were chosen where the model stands in for the machine: plans of
four models projected with another software preset (14, fitted to measured runs), another chip calibration or slower
links, twelve of each taken as the trace. S of 0, 0.1, 0.2, 0.4 and 0.8 leaves a mean error of 5.1, 5.4, 5.7, 6.4 and
7.4 % of neighbours with another tp, cp or ep (13.4 % as modelled); where small GEMMs lose more than modelled 0.2 is
best. G between 0 and 1 moves it by 0.3 %. B is S: a change of shape alike.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from projector.anchor.anchor import ComputePart
from projector.breakdown import Axis
from projector.cost.routes import routes
from projector.graph.groups import Degrees as Groups
from projector.graph.groups import groups
from projector.graph.operator import GroupName
from projector.scaling.term import Column, Move
from projector.scaling.traffic import Flow
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import PlanBatch

WHOLE_STEP = 0.7
TENSOR_A_DOUBLING = 0.5
MICRO_BATCH_A_DOUBLING = 0.35
PIPELINE_A_DOUBLING = 0.3
SHAPE_A_DOUBLING = 0.1
ROWS_A_DOUBLING = 0.1
RECOMPUTE_CHANGED = 0.5
GROUP_A_DOUBLING = 0.5
FLOW_GROUP: dict[Flow, GroupName] = {"tp": "tp", "cp": "cp", "data": "data", "pp": "pp", "ep": "ep"}
# fields that say by what means a flow travels: other messages, another algorithm
OTHER_MEANS: dict[Flow, tuple[str, ...]] = {
    "tp": ("sp",), "cp": ("cp_kind",), "data": ("zero_stage",), "pp": (), "ep": ("expert_dispatch",),
}  # fmt: skip
FLOW_AXES: dict[Flow, tuple[Axis, ...]] = {
    "tp": ("tp",), "cp": ("cp",), "data": ("dp", "fsdp"), "pp": ("pp",), "ep": ("ep",),
}  # fmt: skip


@dataclass(frozen=True)
class Transport:
    """Columns of shape [n]. across: whether a flow leaves its domain, under each plan and under the current one.

    in_full: as if nothing but other links or another means of travel took anything of a ratio: how far it might hold.
    """

    move: Move
    across: dict[Flow, tuple[Column, bool]]
    in_full: bool = False

    @classmethod
    def of(cls, move: Move, cluster: ClusterSpec, hardware: HardwareProfile) -> "Transport":
        """From the current plan to every plan of the move."""
        after, before = (_across(plans, cluster, hardware) for plans in (move.after.plans, move.before.plans))
        return cls(move, {flow: (after[flow], bool(before[flow][0])) for flow in FLOW_GROUP})

    def of_one(self, index: int) -> "Transport":
        """To one plan of the batch."""
        plans = self.move.after.plans.take(np.array([index]))
        across = {flow: (after[[index]], before) for flow, (after, before) in self.across.items()}
        return replace(self, move=Move.of(self.move.current, plans), across=across)

    def wholly(self) -> "Transport":
        """Every ratio in full, wherever it holds at all."""
        return replace(self, in_full=True)

    def whole(self) -> Column:
        """Of the step as one number."""
        degrees = self._moved("tp") + self._moved("cp") + self._moved("ep")
        falls = TENSOR_A_DOUBLING * degrees + MICRO_BATCH_A_DOUBLING * self._moved("micro_batch")
        falls = falls + PIPELINE_A_DOUBLING * self._moved("pp") + self._recompute()
        return self._kept(WHOLE_STEP * np.exp(-falls) * self._same_dtype(), everywhere=True)

    def compute(self, part: ComputePart) -> Column:
        """Of a part of compute."""
        rows = ROWS_A_DOUBLING * self._moved("micro_batch")
        tensor = SHAPE_A_DOUBLING * self._moved("tp")
        context_rows = ROWS_A_DOUBLING * self._moved("cp")
        if part == "other":
            return np.ones(len(self.move.after.plans))
        if part == "attention":
            return self._kept(np.exp(-(tensor + SHAPE_A_DOUBLING * self._moved("cp") + rows)), everywhere=True)
        if part == "moe":
            experts = SHAPE_A_DOUBLING * (self._moved("ep") + self._moved("etp"))
            return self._kept(np.exp(-(experts + rows)) * self._same_dtype(), everywhere=True)
        mixed = self._recompute() if part == "compute" else 0.0
        return self._kept(np.exp(-(tensor + rows + context_rows + mixed)) * self._same_dtype(), everywhere=True)

    def flow(self, flow: Flow) -> Column:
        """Of a flow of communication."""
        sizes = {
            "tp": self._moved("tp"),
            "cp": self._moved("cp"),
            "data": np.abs(np.log2(self.move.after.replicas / self.move.before.replicas)),
            "pp": self._moved("pp"),
            "ep": self._moved("ep"),
        }
        after, before = self.across[flow]
        alike = (after == before) & self._same(*OTHER_MEANS[flow])
        return self._kept(np.exp(-GROUP_A_DOUBLING * sizes[flow]) * alike)

    def bubble(self) -> Column:
        """Of the pipeline bubble."""
        falls = GROUP_A_DOUBLING * (self._moved("pp") + self._moved("vp"))
        return self._kept(np.exp(-falls) * self._same("schedule"))

    def only_current(self) -> Column:
        """Of what holds for no other plan."""
        return self.move.unchanged.astype(np.float64)

    def _kept(self, held: Column, *, everywhere: bool = False) -> Column:
        """everywhere: what is measured may have a cause that every plan shares, a chip that is throttled."""
        return np.where(self.move.unchanged | (self.in_full & ((held > 0) | everywhere)), 1.0, held)

    def _moved(self, field: str) -> Column:
        after = self.move.after.plans.columns[field].astype(np.float64)
        return np.abs(np.log2(after / float(getattr(self.move.current, field))))

    def _recompute(self) -> Column:
        same = self._same("recompute", "recompute_modules", "recompute_layers")
        return RECOMPUTE_CHANGED * (~same).astype(np.float64)

    def _same(self, *fields: str) -> NDArray[np.bool_]:
        same = np.ones(len(self.move.after.plans), dtype=bool)
        for field in fields:
            same &= ~self.move.changed(field)
        return same

    def _same_dtype(self) -> Column:
        return self._same("compute_dtype").astype(np.float64)


def _across(plans: PlanBatch, cluster: ClusterSpec, hardware: HardwareProfile) -> dict[Flow, Column]:
    """1 where the ranks of a flow lie in more than one domain, else 0."""
    found = routes(groups(Groups.of(plans)), cluster, hardware)
    return {flow: (found[name].outer > 1).astype(np.float64) for flow, name in FLOW_GROUP.items()}
