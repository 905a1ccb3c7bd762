"""Rows of measured serving points as their files print them: what ran, under what load, and what was measured.

Two forms are read: lines of JSON with `phase` serving (`agents.evaluation.serving_lines`), and the CSV of in-flight
points that aiconfigurator ships (`agents.evaluation.serving_csv`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Load = Literal["closed", "static", "queued", "offered", "unknown"]
Statistic = Literal["mean", "median", "not stated"]


@dataclass(frozen=True)
class StatedEngine:
    """The layout of one engine: devices = attention_dp * tp * pp; experts over ep * etp of attention_dp * tp."""

    tp: int
    pp: int = 1
    attention_dp: int = 1
    ep: int = 1
    etp: int = 1


@dataclass(frozen=True)
class StatedPools:
    """Prefill and decode pools of a disaggregated row: engines of each, and how they are laid out."""

    prefill: StatedEngine
    prefill_engines: int
    decode: StatedEngine
    decode_engines: int


@dataclass(frozen=True)
class ServingMeasured:
    """What a row prints, in base SI; None: not printed. ttft_is, tpot_is: which statistic of the requests."""

    ttft_s: float | None = None
    ttft_is: Statistic = "mean"
    tpot_s: float | None = None
    tpot_is: Statistic = "mean"
    output_tokens_per_s_per_chip: float | None = None
    request_per_s: float | None = None


@dataclass(frozen=True)
class ServingRow:
    """One measured point. What is None is not printed.

    arch             the model in the terms of its config.json; None: by name alone
    weights          precision of weights as printed, kv that of keys and values
    load             closed: `concurrency` requests in flight; static: one batch of `concurrency` at once; queued: all
                     requests wait at the start; offered: requests arrive at a rate the row does not vary
    random_range     lengths are drawn between this share of input_len and output_len and all of them
    in_process       measured without an HTTP server between client and engine
    hbm_frac         share of HBM the engine was told to take, free_frac: of what its weights leave
    wait_steps       mean decode steps a new request waits to be looked at, beside the one under way
    repeats          id of an earlier row that prints the same measured point
    speculation      drafting that the row's file does not name but its rows imply; None: nothing implied
    """

    id: str
    file: str
    source: str
    family: str
    model: str
    arch: Mapping[str, object] | None
    engine: str
    release: str
    chip: str
    chips: int
    weights: str
    experts: str | None
    kv: str | None
    load: Load
    input_len: float | None
    output_len: float | None
    concurrency: int | None
    random_range: float | None
    layout: StatedEngine
    replicas: int
    pools: StatedPools | None
    max_num_seqs: int | None
    max_batched_tokens: int | None
    dataset: str | None
    in_process: bool
    measured: ServingMeasured
    assumed: tuple[str, ...] = ()
    repeats: str | None = None
    speculation: str | None = None
    hbm_frac: float | None = None
    free_frac: float | None = None
    wait_steps: float | None = None
    ineligible: str | None = None

    @property
    def group(self) -> str:
        """(family, chip): what is left out together."""
        return f"{self.family}|{self.chip}"

    @property
    def mode(self) -> str:
        """How its figures group beside model, chip and engine."""
        return "disaggregated" if self.pools is not None else self.load
