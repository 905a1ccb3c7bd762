"""HardwareProfile: one chip's datasheet with a source for every figure, and its calibration apart."""

from typing import Literal, Self

from pydantic import Field, model_validator

from projector.specs.plan import ComputeDtype
from projector.specs.record import Record

FabricKind = Literal["switch", "torus", "mesh", "pcie"]
ChipKind = Literal["gpu", "tpu", "trainium"]


class Figure(Record):
    """One datasheet figure in base SI, with where and when it was read."""

    value: float = Field(gt=0)
    source: str
    retrieved: str = Field(description="ISO 8601 date")
    unverified: bool = False


class Fabric(Record):
    """Links between the chips of one tightly coupled domain.

    bytes_per_s_one_way is the sum over a chip's links in one direction; None where no source states it.
    switch: a crossbar, every chip reaches every other at its full rate
    torus: torus_dimensions 2 or 3, links_per_chip = 2 a dimension; an axis wraps around where its size is a multiple
        of wrap_multiple; other axes are lines
    mesh: one link to each of the other chips of the domain
    pcie: through switches and host bridges of one host, priced like a switch with a lower link efficiency
    bridge_bytes_per_s_one_way: a faster link that joins chips 2k and 2k + 1 (NVLink bridge); larger groups cross the
        fabric.
    """

    kind: FabricKind
    name: str
    bytes_per_s_one_way: Figure | None = None
    bridge_bytes_per_s_one_way: Figure | None = None
    links_per_chip: int | None = Field(None, ge=1)
    torus_dimensions: Literal[2, 3] | None = None
    wrap_multiple: int | None = Field(None, ge=1, description="an axis wraps when its size is a multiple of this")
    max_domain_chips: int = Field(ge=1)
    latency_s: float = Field(gt=0, description="alpha of one hop or one switch crossing")


class ScaleOut(Record):
    """The network between domains (NIC, DCN), per chip and direction."""

    name: str
    bytes_per_s_one_way: Figure | None = None
    latency_s: float = Field(gt=0)


class HostLink(Record):
    """The link between a chip and the memory of its host (PCIe, NVLink-C2C), per chip and direction."""

    name: str
    bytes_per_s_one_way: Figure


# A ring over n domains gets 1 / (1 + SCALE_LOSS log2 n) of a link: more switch levels, more stragglers to wait for.
SCALE_LOSS = 0.15
# At which sizes `attention_efficiency_frac` is stated.
REFERENCE_KEYS, REFERENCE_HEAD = 4096.0, 128.0


class Calibration(Record):
    """Efficiencies the model multiplies peaks with; measured or assumed, never datasheet.

    Fused attention reaches attention_efficiency_frac of the peak with heads of 128 features and queries that see 4,096
    keys in the mean (8,192 causal tokens). Its rate follows keys / (keys + attention_half_keys) (tiles cut by the mask,
    start and end of each kernel) and width / (width + attention_half_width) (exponentials beside products, of which a
    narrow head has fewer a score). A matrix unit that is attention_lanes wide works on whole multiples of it instead.

    `fitted` names the values chosen in one fit on published training steps (engine_hbm_factor: on published serving
    points), with how many of this chip bear on each (0:
    only such of chips that share its silicon); `assumed` those that nobody measured on this chip; the others rest on
    the measurements `source` names.
    """

    gemm_efficiency_frac: float = Field(gt=0, le=1, description="large bf16 GEMM over peak")
    attention_efficiency_frac: float = Field(gt=0, le=1)
    sustained_frac: float = Field(
        1.0, gt=0, le=1, description="arithmetic rate inside a whole step over that of the same kernel alone"
    )
    narrow_gemm_frac: float = Field(
        1.0, gt=0, le=1, description="efficiency of GEMMs of 8 bit and less over that of 16-bit ones, each of its peak"
    )
    flash2_frac: float = Field(
        1.0, gt=0, le=1, description="rate of FlashAttention-2 kernels over attention_efficiency_frac"
    )
    attention_half_keys: float = Field(
        0.0, ge=0, description="keys a query sees at which fused attention reaches half of its rate"
    )
    attention_half_width: float = Field(
        0.0, ge=0, description="features of a head at which fused attention reaches half of its rate"
    )
    attention_lanes: int = Field(1, ge=1, description="features of a head are padded to a multiple of this")
    hbm_efficiency_frac: float = Field(gt=0, le=1)
    engine_hbm_factor: float = Field(
        1.0, gt=0, le=1.25, description="HBM rate in the steps of serving engines over hbm_efficiency_frac"
    )
    scale_loss: float = Field(
        SCALE_LOSS, ge=0, description="loss of a ring's bandwidth with every doubling of the domains it joins"
    )
    contention_frac: float = Field(
        0.0, ge=0, le=1, description="slow-down of compute a second of communication hidden beside it"
    )
    tp_contention_frac: float = Field(
        0.0, ge=0, le=1, description="the same for tensor-parallel communication hidden in products of its own layer"
    )
    link_efficiency_frac: float = Field(gt=0, le=1)
    gemm_half_size_flop: float = Field(gt=0, description="a GEMM of this size reaches half of its efficiency")
    kernel_launch_s: float = Field(ge=0, description="host cost of one launch when nothing hides it")
    kernel_floor_s: float = Field(2e-6, ge=0, description="device time no kernel goes below")
    source: str
    fitted: dict[str, int] = Field(default_factory=dict, description="fitted value -> published rows of this chip")
    assumed: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _named_are_fields(self) -> Self:
        values = set(type(self).model_fields) - {"source", "fitted", "assumed"}
        for name, named in (("fitted", set(self.fitted)), ("assumed", set(self.assumed))):
            if named - values:
                raise ValueError(f"{name} names {sorted(named - values)}, which are no calibration values")
        if set(self.fitted) & set(self.assumed):
            raise ValueError(f"{sorted(set(self.fitted) & set(self.assumed))} are named both fitted and assumed")
        return self


class HardwareProfile(Record):
    """One chip. All figures are per chip; an axis multiplies to chips * devices_per_chip devices."""

    id: str
    vendor: str
    kind: ChipKind
    aliases: tuple[str, ...] = ()
    devices_per_chip: int = Field(1, ge=1)
    chips_per_node: int = Field(ge=1)
    peak_flop_per_s: dict[ComputeDtype, Figure] = Field(
        description="dense peak a dtype; a dtype left out is not offered"
    )
    hbm_bytes: Figure
    reported_hbm_bytes: Figure | None = Field(
        None, description="memory the runtime counts on the chip: datasheets call 2^30 bytes a GB"
    )
    hbm_bytes_per_s: Figure
    intra: Fabric
    inter: ScaleOut
    host: HostLink | None = Field(None, description="link to host memory; None: no source states its rate")
    price_usd_per_chip_hour: Figure | None = None
    tdp_w: Figure | None = None
    sources: dict[str, str] = Field(
        default_factory=dict, description="where plain counts and latencies come from, by path ('intra.latency_s')"
    )
    calibration: Calibration
    note: str = Field("", description="what a reader of the figures has to know")

    def figures(self) -> dict[str, Figure | None]:
        """Every datasheet figure by its path in the chip file; None where no source states it."""
        found: dict[str, Figure | None] = {
            f"peak_flop_per_s.{dtype}": peak for dtype, peak in self.peak_flop_per_s.items()
        }
        found["hbm_bytes"] = self.hbm_bytes
        if self.reported_hbm_bytes is not None:
            found["reported_hbm_bytes"] = self.reported_hbm_bytes
        found["hbm_bytes_per_s"] = self.hbm_bytes_per_s
        found["intra.bytes_per_s_one_way"] = self.intra.bytes_per_s_one_way
        if self.intra.bridge_bytes_per_s_one_way is not None:
            found["intra.bridge_bytes_per_s_one_way"] = self.intra.bridge_bytes_per_s_one_way
        found["inter.bytes_per_s_one_way"] = self.inter.bytes_per_s_one_way
        if self.host is not None:
            found["host.bytes_per_s_one_way"] = self.host.bytes_per_s_one_way
        found["price_usd_per_chip_hour"] = self.price_usd_per_chip_hour
        found["tdp_w"] = self.tdp_w
        return found
