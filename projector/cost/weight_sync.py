"""Weights from a trainer to the engines that generate, once a step of reinforcement learning."""

import numpy as np

from projector.cost.collectives import collective_time_s
from projector.cost.routes import routes
from projector.graph.columns import Column
from projector.graph.groups import Degrees, Group
from projector.graph.operator import Collective
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import PlanBatch

WEIGHT_BYTES = 2.0
# What hosts take to assemble tensors for engines on the same devices: seconds, and seconds a byte. A line through three
# published hand-overs of NeMo RL (30B 17.2 s and 235B 40.2 s, pull request 3294; 70B 14 to 26 s, issue 959); a 72B of
# another trainer took 28.8 s, of which 1.2 s on the wire (verl issue 7060).
ASSEMBLY_S, ASSEMBLY_S_PER_BYTE = 14.0, 5.6e-11
# Tensors are handed over in pieces of about so many bytes, each a collective of its own.
PIECE_BYTES = 1e9


def weight_sync_s(
    batch: PlanBatch, model: ModelArchitecture, cluster: ClusterSpec, hardware: HardwareProfile, *, apart: bool
) -> Column:
    """Seconds until every engine has the new weights, shape [n].

    The devices that hold one copy gather it whole in 16 bit, piece by piece, and each engine rank takes its part of
    what stands on its device: how trainers hand over weights whose layout differs from the engines'. Engines on devices
    of their own (apart) get the pieces once more in a broadcast over the whole machine, as long as a gather over it. On
    shared devices hosts assemble the tensors, which takes longer than any wire (ASSEMBLY_S).
    Left out: changes of dtype or layout on arrival; host time where engines stand apart, of which reports differ by a
    factor of thirty.
    """
    degrees = Degrees.of(batch)
    one = np.ones_like(degrees.tp)
    holders = degrees.tp * degrees.pp * np.maximum(degrees.shard, degrees.ep * degrees.etp / degrees.tp)
    payload = one * model.parameters * WEIGHT_BYTES
    messages = np.ceil(payload / PIECE_BYTES)
    gathered = Collective("all_gather", "data", "dp", payload, messages=messages)
    devices = float(cluster.chips * hardware.devices_per_chip)
    spans = {"holders": np.clip(holders, 1.0, devices), "machine": one * devices}
    times = {
        name: collective_time_s(gathered, routes({"data": Group(one, span)}, cluster, hardware))
        for name, span in spans.items()
    }
    assembly_s = one * ASSEMBLY_S + payload * ASSEMBLY_S_PER_BYTE
    return times["holders"] + times["machine"] if apart else np.maximum(times["holders"], assembly_s)
