"""The operator graph of a training step."""

from dataclasses import dataclass, replace

import numpy as np

from projector.graph.adapters import with_adapters
from projector.graph.backward import backward
from projector.graph.columns import BLOCK_SCALED, DTYPE_BYTES, Column, Switch, lookup
from projector.graph.context import Context, context_parallel
from projector.graph.documents import row_pairs
from projector.graph.groups import Degrees
from projector.graph.layer import forward
from projector.graph.offload import offloaded_activations, offloaded_inputs
from projector.graph.operator import Operator
from projector.graph.optimizer import Update
from projector.graph.recompute_modules import chosen_modules, with_modules
from projector.graph.recomputed import recompute, recompute_mode
from projector.graph.scope import AttentionWork, Scope
from projector.graph.sync import data_parallel, pipeline_sends
from projector.specs.architecture import ModelArchitecture
from projector.specs.fine_tuning import Adapter
from projector.specs.plan import RecomputeModule
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.sequence_lengths import SequenceLengths
from projector.specs.software import Software


@dataclass(frozen=True)
class TrainingGraph:
    """Operators of one step and what they were built from. `forward` is the part that owns weights and activations.

    recompute_layers  layers of a stage that the mode holds for, 0: all
    modules           modules that selective recompute repeats, with the plans that name each; by_module: plans that
                      name any
    overlaps_micro_batches   plans in which a second micro-batch is under way beside each
    """

    operators: tuple[Operator, ...]
    forward: tuple[Operator, ...]
    scope: Scope
    degrees: Degrees
    context: Context
    update: Update
    offloads_activations: Switch
    recompute_mode: Column
    recompute_layers: Column
    modules: dict[RecomputeModule, Switch]
    by_module: Switch
    virtual_stages: Column
    micro_batches: Column
    overlaps_micro_batches: Switch

    def forward_alone(self) -> "TrainingGraph":
        """The graph without what follows the forward pass."""
        return replace(self, operators=tuple(operator for operator in self.operators if operator.run == "forward"))


def training_graph(
    batch: PlanBatch,
    model: ModelArchitecture,
    seq_len: int,
    math_dtype: AnyColumn,
    software: Software,
    adapter: Adapter | None = None,
    lengths: SequenceLengths | None = None,
) -> TrainingGraph:
    """Operators of one optimizer step for every plan, columns of shape [len(batch)].

    One micro-batch is micro_batch sequences of seq_len tokens, over cp. GEMMs run in math_dtype: fp8, int8 and fp4
    narrow their operands; attention, head and everything between stay in 16 bit (fp32 stays fp32).
    adapter: only low-rank adapters are trained (`projector.graph.adapters`); None: all weights.
    lengths: of the documents in the rows (`projector.graph.documents`); None: a row is one document.
    """
    degrees = Degrees.of(batch)
    context, update = _context(batch, degrees), Update.of(batch)
    scope = training_scope(batch, degrees, model, seq_len, math_dtype, software, lengths)
    virtual_stages = np.where(batch.schedule == "interleaved", batch.vp, 1).astype(np.float64)
    mode = recompute_mode(batch.recompute)
    modules, by_module = chosen_modules(batch.recompute_modules), batch.recompute_modules != ""
    ahead = tuple(with_modules(forward(scope, training=True), scope, modules, by_module))
    if adapter is not None:
        ahead = tuple(with_adapters(ahead, scope, adapter))
    operators = (
        *ahead,
        *recompute(ahead, scope, mode, by_module),
        *backward(ahead, scope, degrees),
        *offloaded_inputs(scope, mode),
        *context_parallel(scope, context),
        *offloaded_activations(ahead, scope, mode, batch.offload_activations.astype(bool)),
        *data_parallel(ahead, scope, degrees, update),
        *pipeline_sends(scope, virtual_stages, ("forward", "backward")),
    )
    return TrainingGraph(
        operators=operators,
        forward=ahead,
        scope=scope,
        degrees=degrees,
        context=context,
        update=update,
        offloads_activations=batch.offload_activations.astype(bool),
        recompute_mode=mode,
        recompute_layers=batch.recompute_layers.astype(np.float64),
        modules=modules,
        by_module=by_module,
        micro_batches=batch.grad_accum.astype(np.float64),
        overlaps_micro_batches=overlaps_micro_batches(batch, model),
        virtual_stages=virtual_stages,
    )


def _context(batch: PlanBatch, degrees: Degrees) -> Context:
    several = degrees.cp > 1
    full = batch.recompute == "full"
    core = chosen_modules(batch.recompute_modules).get("core_attn", np.zeros(len(batch), dtype=np.bool_))
    return Context(
        cp=degrees.cp,
        ring=several & (batch.cp_kind == "ring"),
        gathers=several & (batch.cp_kind == "all_gather"),
        trades=several & (batch.cp_kind == "all_to_all"),
        again=(full | core) * 1.0,
    )


def overlaps_micro_batches(batch: PlanBatch, model: ModelArchitecture) -> Switch:
    """Plans that hide the exchange with experts behind another micro-batch: where both exist."""
    overlaps: Switch = batch.overlap_ep.astype(bool) & (batch.grad_accum > 1) & (batch.ep > 1) & model.is_moe
    return overlaps


def training_scope(
    batch: PlanBatch,
    degrees: Degrees,
    model: ModelArchitecture,
    seq_len: int,
    math_dtype: AnyColumn,
    software: Software,
    lengths: SequenceLengths | None = None,
) -> Scope:
    """The columns a layer's training operators depend on."""
    sequences = batch.micro_batch.astype(np.float64)
    tokens = sequences * seq_len / degrees.cp
    context = _context(batch, degrees)
    # traded for heads: all keys of a cp-th of the heads
    keys = sequences * seq_len / np.where(context.trades, degrees.cp, 1.0)

    def attention(of: ModelArchitecture) -> tuple[AttentionWork, ...]:
        window_pairs = row_pairs(seq_len, documents, of.window, chunked=of.chunked_window)
        return (
            AttentionWork(
                queries=tokens,
                full_pairs=sequences * row_pairs(seq_len, documents, None) / degrees.cp,
                window_pairs=sequences * window_pairs / degrees.cp,
                full_keys=keys,
                window_keys=keys,
                kv_bytes=act_bytes,
                rounds=context.rounds(),
                shaped=True,
            ),
        )

    element = lookup(math_dtype, DTYPE_BYTES)
    scaled = np.isin(math_dtype, BLOCK_SCALED)
    auto, gathers = batch.expert_dispatch == "auto", batch.expert_dispatch == "all_gather"
    act_bytes = np.maximum(element, 2.0)
    # kernels that write the score matrix write all of it, whatever is masked
    documents = lengths if software.attention == "fused" else None
    return Scope(
        model=model,
        software=software,
        tokens=tokens,
        head_tokens=tokens,
        tp=degrees.tp,
        pp=degrees.pp,
        sp=batch.sp.astype(bool) & (degrees.tp > 1),
        ep=degrees.ep,
        etp=degrees.etp,
        act_bytes=act_bytes,
        linear_bytes=element,
        weight_bytes=element,
        quantised=element < 2.0,
        one_copy=np.where(auto, software.expert_dispatch == "token", batch.expert_dispatch == "deepep"),
        block_scaled=scaled if scaled.any() else None,
        gathers_tokens=gathers if gathers.any() else None,
        attention=attention(model),
    ).with_sorts(attention)
