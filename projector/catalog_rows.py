"""The catalogue as rows for people: every figure with unit, source, date and whether anybody re-read it.

What is not known is listed as unknown, never left out silently. Models that are refused: `projector.refused_models`.
"""

from collections.abc import Iterator
from typing import Literal

from projector.catalog import architectures, chips
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import Calibration, ChipKind, FabricKind, HardwareProfile
from projector.specs.layer_sort import LayerSort
from projector.specs.record import Record
from projector.specs.recurrence import Recurrence

__all__ = ["ChipRow", "CountRow", "EfficiencyRow", "FigureRow", "ModelRow", "chip_rows", "model_rows"]


class FigureRow(Record):
    """One datasheet figure of a chip, base SI; `path` is its place in the chip file."""

    path: str
    value: float
    unit: str
    source: str
    retrieved: str
    unverified: bool


class CountRow(Record):
    """One plain count or latency of a chip."""

    path: str
    value: float
    unit: str
    source: str


class EfficiencyRow(Record):
    """One calibration value; `assumed` where nobody measured it on this chip."""

    name: str
    value: float
    unit: str
    assumed: bool


class ChipRow(Record):
    """One chip. `unverified`: some figure was recalled and not re-read; `unknown`: paths no source states."""

    id: str
    vendor: str
    kind: ChipKind
    aliases: tuple[str, ...]
    devices_per_chip: int
    fabric: FabricKind
    fabric_name: str
    network_name: str
    figures: tuple[FigureRow, ...]
    counts: tuple[CountRow, ...]
    calibration: tuple[EfficiencyRow, ...]
    calibration_source: str
    unknown: tuple[str, ...]
    unverified: bool
    note: str


class ModelRow(Record):
    """One model. parameters_basis: whether the count was held against one its publisher states, or is derived only.

    deviation_frac = parameters / published_parameters - 1. sorts: layers by sort where they differ in more than windows
    and experts; heads and sizes beside them are what sorts leave unsaid.
    """

    name: str
    hf_id: str | None
    kind: Literal["dense", "mixture of experts"]
    attention: Literal["multi-head", "grouped-query", "multi-query", "latent"]
    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    experts: int
    experts_per_token: int
    sliding_window: int | None
    sliding_layers: int
    max_positions: int | None
    sorts: tuple[LayerSort, ...]
    recurrence: Recurrence | None
    index_topk: int
    encoder_parameters: int | None
    parameters: int
    active_parameters: int
    parameters_basis: Literal["published", "derived"]
    published_parameters: float | None
    published_parameters_source: str | None
    deviation_frac: float | None
    source: str
    retrieved: str | None
    unverified: bool
    note: str


def chip_rows() -> tuple[ChipRow, ...]:
    """Every chip, by id."""
    return tuple(_chip_row(profile) for profile in chips())


def model_rows() -> tuple[ModelRow, ...]:
    """Every model that is modelled, by name."""
    return tuple(_model_row(model) for model in architectures())


def _chip_row(profile: HardwareProfile) -> ChipRow:
    figures = profile.figures()
    stated = {path: figure for path, figure in figures.items() if figure is not None}
    return ChipRow(
        id=profile.id,
        vendor=profile.vendor,
        kind=profile.kind,
        aliases=profile.aliases,
        devices_per_chip=profile.devices_per_chip,
        fabric=profile.intra.kind,
        fabric_name=profile.intra.name,
        network_name=profile.inter.name,
        figures=tuple(FigureRow(path=path, unit=_unit(path), **figure.model_dump()) for path, figure in stated.items()),
        counts=tuple(_counts(profile)),
        calibration=tuple(_efficiencies(profile.calibration)),
        calibration_source=profile.calibration.source,
        unknown=tuple(path for path in figures if path not in stated),
        unverified=any(figure.unverified for figure in stated.values()),
        note=profile.note,
    )


def _unit(path: str) -> str:
    units = {
        "peak_flop_per_s": "FLOP/s",
        "hbm_bytes": "bytes",
        "reported_hbm_bytes": "bytes",
        "hbm_bytes_per_s": "bytes/s",
        "price_usd_per_chip_hour": "USD a chip and hour",
        "tdp_w": "W",
    }
    return "bytes/s one way" if path.endswith("one_way") else units[path.split(".")[0]]


def _counts(profile: HardwareProfile) -> Iterator[CountRow]:
    values: dict[str, tuple[float | None, str]] = {
        "chips_per_node": (profile.chips_per_node, "chips"),
        "intra.links_per_chip": (profile.intra.links_per_chip, "links"),
        "intra.wrap_multiple": (profile.intra.wrap_multiple, "chips"),
        "intra.max_domain_chips": (profile.intra.max_domain_chips, "chips"),
        "intra.latency_s": (profile.intra.latency_s, "s"),
        "inter.latency_s": (profile.inter.latency_s, "s"),
    }
    for path, (value, unit) in values.items():
        if value is not None:
            yield CountRow(path=path, value=value, unit=unit, source=profile.sources.get(path, "not stated"))


def _efficiencies(calibration: Calibration) -> Iterator[EfficiencyRow]:
    units = {"_frac": "fraction", "_flop": "FLOP", "_s": "s"}
    for name in type(calibration).model_fields:
        unit = next((unit for suffix, unit in units.items() if name.endswith(suffix)), None)
        if unit is not None:
            assumed = name in calibration.assumed
            yield EfficiencyRow(name=name, value=getattr(calibration, name), unit=unit, assumed=assumed)


def _model_row(model: ModelArchitecture) -> ModelRow:
    published = model.published_parameters
    fields = {name: getattr(model, name) for name in ModelRow.model_fields if name in type(model).model_fields}
    return ModelRow(
        **fields,
        kind="mixture of experts" if model.is_moe else "dense",
        attention=_attention(model),
        parameters=model.parameters,
        active_parameters=model.active_parameters,
        parameters_basis="derived" if published is None else "published",
        deviation_frac=None if published is None else model.parameters / published - 1,
    )


def _attention(model: ModelArchitecture) -> Literal["multi-head", "grouped-query", "multi-query", "latent"]:
    if model.is_mla:
        return "latent"
    if model.kv_heads == model.heads:
        return "multi-head"
    return "multi-query" if model.kv_heads == 1 else "grouped-query"
