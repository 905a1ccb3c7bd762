"""The note on adapters and the projector give the same numbers."""

import numpy as np
import pytest

from knowledge_base.note import NOTES_FOLDER, read_notes, recompute
from projector.catalog import architecture, chip
from projector.cost.memory import stage_parameters
from projector.cost.stages import stages
from projector.graph.operator import Operator
from projector.graph.training_graph import TrainingGraph, training_graph
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.fine_tuning import Adapter
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import CURRENT
from projector.specs.workload import WorkloadSpec

NOTE = next(note for note in read_notes(NOTES_FOLDER) if note.id == "adapter-and-fine-tuning-layouts")
WORKED = recompute(NOTE)
MODEL, ADAPTER = architecture("llama-3.1-8b"), Adapter(rank=16)


def graph_of(plan: ParallelismPlan) -> TrainingGraph:
    batch = PlanBatch.from_plans([plan])
    return training_graph(batch, MODEL, 4096, batch.compute_dtype, CURRENT, ADAPTER)


def test_rank_16_on_all_linear_layers_has_as_many_parameters() -> None:
    one = np.ones(1)
    trained = [operator for operator in graph_of(ParallelismPlan()).forward if operator.frozen_bytes is None]
    found = stage_parameters(trained, stages(MODEL, one, one, one, 0 * one).whole, 0 * one)
    assert float(sum(found)[0]) == pytest.approx(NOTE.variables["adapter_parameters"].value, rel=0.005)


@pytest.mark.parametrize(("adapter", "worked"), [(None, "full_gb"), (ADAPTER, "adapter_gb")])
def test_states_take_as_many_bytes(adapter: Adapter | None, worked: str) -> None:
    hardware, plan = chip("h100-sxm"), ParallelismPlan(zero_stage=0)
    work = WorkloadSpec(seq_len=4096, global_batch=1, adapter=adapter)
    software = CURRENT.model_copy(update={"gradient_bytes": 2})
    memory = project(plan, work, MODEL, ClusterSpec(chip=hardware.id, chips=1), hardware, software=software).memory
    assert memory is not None
    states = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes
    assert states / 1e9 == pytest.approx(WORKED[worked], rel=0.01)


def test_full_sharding_gathers_frozen_weights_twice_a_micro_batch() -> None:
    def gathered(operator: Operator) -> float:
        collective = operator.collective
        if collective is None or collective.axis != "fsdp" or collective.kind != "all_gather":
            return 0.0
        layers = MODEL.layers if operator.place not in ("embedding", "head") else 1
        return layers * float(collective.payload_bytes[0])

    graph = graph_of(ParallelismPlan(dp=8, fsdp=8, zero_stage=3))
    assert sum(map(gathered, graph.operators)) / 1e9 == pytest.approx(WORKED["gathered_gb"], rel=0.02)
