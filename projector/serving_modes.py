"""Serving plans of both modes in one batch: with a prefill pool and without."""

from dataclasses import replace

import numpy as np

from projector.batch_merge import interleaved
from projector.batch_projection import Assumption, ProjectionBatch
from projector.disaggregated import project_disaggregated
from projector.graph.columns import Switch
from projector.serving import Load, project_serving
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ANY_ENGINE, ServingStack


def project_engines(
    batch: PlanBatch,
    model: ModelArchitecture,
    load: Load,
    math_dtype: AnyColumn,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    assumptions: tuple[Assumption, ...],
    *,
    stack: ServingStack = ANY_ENGINE,
) -> ProjectionBatch:
    """Every plan by the model of its mode, in the order of the batch. Arguments as in `project_serving`."""
    pooled = batch.prefill_replicas > 0
    parts = [(mask, project) for mask, project in ((~pooled, project_serving), (pooled, project_disaggregated))
             if mask.any()]  # fmt: skip
    found = [
        project(
            batch.take(mask),
            model,
            _load_of(load, mask),
            math_dtype[mask],
            cluster,
            hardware,
            tuple(_of(assumption, mask) for assumption in assumptions),
            stack=stack,
        )
        for mask, project in parts
    ]
    if len(found) == 1:
        return found[0]
    return interleaved([(np.flatnonzero(mask), part) for (mask, _), part in zip(parts, found, strict=True)], batch)


def _of(assumption: Assumption, mask: Switch) -> Assumption:
    return assumption if assumption.plans is None else Assumption(assumption.text, assumption.plans[mask])


def _load_of(load: Load, mask: Switch) -> Load:
    """The traffic of some of the plans, where it is stated a plan."""
    if not isinstance(load.concurrency, np.ndarray):
        return load
    return replace(load, concurrency=load.concurrency[mask])
