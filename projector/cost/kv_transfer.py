"""Keys and values of a prompt on their way from a prefill pool to a decode pool: time on the wire, and what shows."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from projector.cost.serving_memory import kv_bytes_per_request
from projector.cost.stages import stages
from projector.errors import InvalidDescription
from projector.graph.columns import Column, lookup
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import PlanBatch


@dataclass(frozen=True)
class Library:
    """How one library moves keys and values.

    efficiency_frac   of the link's rate a long transfer reaches; latency_s: what the shortest takes
    sends             whole prompts when their prefill is done, each chunk when it is computed, or each layer of a chunk
    """

    efficiency_frac: float
    latency_s: float
    sends: Literal["prompt", "chunk", "layer"]


# Mooncake's own measurement in vLLM, Qwen3-8B between two nodes of 8 NICs (kvcache-ai.github.io/Mooncake, vLLM V1
# support benchmark): 20 MB in 0.54 ms, 4.5 GB in 31.65 ms, 71 % of 200 GB/s; a rate with 0.4 ms before it meets all
# nine of its sizes within 15 %. SGLang hands it each chunk of a prompt as soon as it is computed.
# NIXL: vLLM's connector reads the whole prompt when its prefill is done, so that nothing hides it. No measured rate is
# at hand: Mooncake's is assumed, with twice its latency for the notice that has to come first.
# MoRI-IO: vLLM's connector writes layer by layer. Rate and latency as for Mooncake, assumed.
LIBRARIES: dict[str, Library] = {
    "auto": Library(0.71, 0.8e-3, "prompt"),
    "nixl": Library(0.71, 0.8e-3, "prompt"),
    "mooncake": Library(0.71, 0.4e-3, "chunk"),
    "mori": Library(0.71, 0.4e-3, "layer"),
}


@dataclass(frozen=True)
class Transfer:
    """Seconds of one prompt (columns): the busiest link is taken, messages it is cut into, latency beside them."""

    wire_s: Column
    messages: Column
    latency_s: Column

    def exposed_s(self, prefill_s: Column) -> Column:
        """What the transfer adds behind a prefill of `prefill_s`, of which each message starts with its part done.

        latency + max(wire / n, wire - (1 - 1/n) prefill): the last message cannot start before the prefill ends, and
        the link cannot be done before it has carried everything.
        """
        last = self.wire_s / self.messages
        behind = self.wire_s - (1 - 1 / self.messages) * prefill_s
        shown: Column = self.latency_s + np.maximum(last, behind)
        return shown


def transfer(
    batch: PlanBatch,
    model: ModelArchitecture,
    tokens: float,
    chunks: Column,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
) -> Transfer:
    """The transfer of a prompt of `tokens` tokens, prefilled in `chunks` chunks, columns of shape [len(batch)].

        wire = bytes / (efficiency rate) + messages alpha

    Ranks send side by side, each over its own link, to the rank of the other pool that keeps the same heads and
    layers. Where the pools are cut differently the coarser cut decides: `bytes` are what one rank of an engine with
    min(tp) ranks and min(pp) stages keeps of the prompt, in kv_cache_dtype. Latents, which every rank of a tensor group
    keeps alike, cross once a stage; the fast links hand them on. The link is that of the fast domain where both pools
    lie inside one (NVL72, one node), else the scale-out network, at the share of one device.
    Left out: other traffic on the link, paging (small blocks waste messages), prompts that meet at one rank.
    InvalidDescription where no source states the rate of the link.
    """
    pp = np.minimum(batch.pp, batch.prefill_pp).astype(np.float64)
    tp = np.minimum(batch.tp, batch.prefill_tp).astype(np.float64)
    one = np.ones(len(batch))
    of = stages(model, pp, one, one, 0 * one)
    kept = [kv_bytes_per_request(model, tp, batch.kv_cache_dtype, stage, tokens) for stage in (of.first, of.middle)]
    rate, alpha_s = link_between_pools(cluster, hardware)
    efficiency, latency_s = (
        lookup(batch.kv_transfer, {name: getattr(library, figure) for name, library in LIBRARIES.items()})
        for figure in ("efficiency_frac", "latency_s")
    )
    messages = np.ones(len(batch))
    for name, library in LIBRARIES.items():
        parts = {"prompt": one, "chunk": chunks, "layer": chunks * np.ceil(model.layers / pp)}[library.sends]
        messages = np.where(batch.kv_transfer == name, parts, messages)
    wire_s = np.maximum(*kept) / (efficiency * rate) + messages * alpha_s
    return Transfer(wire_s=wire_s, messages=messages, latency_s=latency_s)


def link_between_pools(cluster: ClusterSpec, hardware: HardwareProfile) -> tuple[float, float]:
    """(bytes/s one way of one device, seconds of one message) between a prefill and a decode rank.

    Chips of a full mesh have a link to each other one, those of a torus several to each neighbour: of these one. Behind
    a switch a chip has its whole rate.
    """
    fabric, devices = hardware.intra, hardware.devices_per_chip
    inside = cluster.chips <= fabric.max_domain_chips
    figure = fabric.bytes_per_s_one_way if inside else hardware.inter.bytes_per_s_one_way
    if figure is None:
        raise InvalidDescription(
            f"{hardware.id} states no bandwidth {'between its chips' if inside else 'between domains'}, and keys and "
            "values cross there from the prefill pool to the decode pool",
            hint="plan without a prefill pool, or add the figure to the chip's file",
        )
    if not inside:
        return figure.value / devices, hardware.inter.latency_s
    links = {"mesh": max(fabric.max_domain_chips - 1, 1), "torus": fabric.links_per_chip or 1}.get(fabric.kind, 1)
    return figure.value / links / devices, fabric.latency_s
