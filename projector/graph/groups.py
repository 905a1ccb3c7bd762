"""Process groups: which ranks talk to each other, as (stride, size) of the device order.

Devices are numbered with tensor parallelism innermost, then context, then data parallelism (the weight-sharding group
inside it, replicas outside), pipeline stages outermost:

    rank = tp_rank + tp * (cp_rank + cp * (shard_rank + fsdp * (replica_rank + replicas * stage)))

so TP rides the fastest links and pipeline traffic, the smallest, the slowest. Experts use the same devices in another
order: etp innermost, ep next, and what is left of dp * cp * tp outside. This is the order of Megatron-Core
(tp-cp-ep-dp-pp) and of torchtitan and MaxText meshes; other orders are not modelled.
"""

from dataclasses import dataclass

import numpy as np

from projector.graph.columns import Column, largest_divisor_at_most
from projector.graph.operator import GroupName
from projector.specs.plan_batch import PlanBatch


@dataclass(frozen=True)
class Group:
    """Ranks stride apart, `size` of them; both columns of shape [n]."""

    stride: Column
    size: Column


@dataclass(frozen=True)
class Degrees:
    """The degrees of a batch as float columns, and the sharding groups that follow from them.

    shard           devices one copy of the dense weights is shared out over besides tp and pp: fsdp * cp when fsdp > 1
                    (or zero_stage 3 has cp alone to shard over), because FSDP, MaxText and Megatron all shard over the
                    context group too
    state           devices the optimizer state is shared out over: `shard`, or with zero_stage 1 or 2 optimizer_shard,
                    dp * cp where that is left open
    expert_shard, expert_state   the same for expert weights, which ep * etp has shared out already
    copies          devices of a pipeline that hold each weight: 2 with DualPipe. They exchange gradients and share the
                    optimizer state like ranks of data parallelism
    """

    dp: Column
    fsdp: Column
    tp: Column
    pp: Column
    cp: Column
    ep: Column
    etp: Column
    shard: Column
    state: Column
    expert_data: Column
    expert_shard: Column
    expert_state: Column
    zero_stage: Column
    copies: Column

    @classmethod
    def of(cls, batch: PlanBatch) -> "Degrees":
        """The degrees of every plan of the batch."""
        dp, fsdp, tp, pp, cp, ep, etp, zero = (
            getattr(batch, field).astype(np.float64)
            for field in ("dp", "fsdp", "tp", "pp", "cp", "ep", "etp", "zero_stage")
        )
        expert_data = dp * cp * tp / (ep * etp)
        sharded, chosen = (fsdp > 1) | ((zero == 3) & (dp == 1) & (cp > 1)), batch.optimizer_shard.astype(np.float64)
        copies = np.where((batch.schedule == "dualpipe") & (pp % 2 == 0), 2.0, 1.0)
        state = np.where(chosen > 0, chosen, dp * cp * copies)
        shard = np.where(sharded, fsdp * cp, 1.0)
        expert_shard = np.where(sharded, largest_divisor_at_most(expert_data, fsdp * cp * tp / (ep * etp)), 1.0)
        return cls(
            dp=dp,
            fsdp=fsdp,
            tp=tp,
            pp=pp,
            cp=cp,
            ep=ep,
            etp=etp,
            zero_stage=zero,
            copies=copies,
            shard=shard,
            state=np.where(sharded, shard, np.where(zero >= 1, state, 1.0)),
            expert_data=expert_data,
            expert_shard=expert_shard,
            expert_state=np.where(
                sharded, expert_shard, np.where(zero >= 1, largest_divisor_at_most(expert_data * copies, state), 1.0)
            ),
        )

    @property
    def devices(self) -> Column:
        """Devices a plan occupies."""
        return self.dp * self.cp * self.tp * self.pp


def groups(degrees: Degrees) -> dict[GroupName, Group]:
    """Every process group of the plans.

    shard holds one copy of the weights, replica joins equal shards of different copies, data is all ranks that hold
    the same weights when nothing is sharded (dp * cp). state shares one copy of the optimizer state of weights that are
    whole, state_replica joins the equal parts of different copies.
    """
    d, one = degrees, np.ones_like(degrees.tp)
    experts = d.ep * d.etp
    return {
        "tp": Group(one, d.tp),
        "cp": Group(d.tp, d.cp),
        "etp": Group(one, d.etp),
        "ep": Group(d.etp, d.ep),
        "shard": Group(d.tp, d.shard),
        "replica": Group(d.tp * d.shard, d.dp * d.cp * d.copies / d.shard),
        "data": Group(d.tp, d.dp * d.cp),
        "state": Group(d.tp, np.where(d.shard > 1, 1.0, d.state)),
        "state_replica": Group(d.tp * d.state, np.where(d.shard > 1, 1.0, d.dp * d.cp * d.copies / d.state)),
        "expert_state": Group(experts, np.where(d.expert_shard > 1, 1.0, d.expert_state)),
        "expert_state_replica": Group(
            experts * d.expert_state, np.where(d.expert_shard > 1, 1.0, d.expert_data * d.copies / d.expert_state)
        ),
        "expert_shard": Group(experts, d.expert_shard),
        "expert_replica": Group(experts * d.expert_shard, d.expert_data * d.copies / d.expert_shard),
        "pp": Group(d.dp * d.cp * d.tp, d.pp),
    }
