"""project() and project_many(): what a plan costs on a cluster. A single plan is a batch of one."""

import numpy as np

from projector.batch_projection import Assumption, ProjectionBatch
from projector.breakdown import Projection
from projector.cost.device import Device
from projector.project_input import assumptions, check, math_dtypes, sizes
from projector.serving import Load
from projector.serving_modes import project_engines
from projector.serving_stacks import serving_stack
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ServingStack
from projector.specs.software import CURRENT, Software
from projector.specs.workload import WorkloadSpec
from projector.training import project_training


def project(
    plan: ParallelismPlan,
    workload: WorkloadSpec,
    architecture: ModelArchitecture,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    *,
    software: Software = CURRENT,
    stack: ServingStack | None = None,
) -> Projection:
    """The projection of one plan. Arguments and errors as in `project_many`."""
    batch = PlanBatch.from_plans([plan])
    return project_many(batch, workload, architecture, cluster, hardware, software=software, stack=stack)[0]


def project_many(
    batch: PlanBatch,
    workload: WorkloadSpec,
    architecture: ModelArchitecture,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    *,
    software: Software = CURRENT,
    stack: ServingStack | None = None,
    all_seats_taken: bool = False,
) -> ProjectionBatch:
    """Projections of every plan of the batch for one workload on one cluster.

    `software` says which generation of kernels runs (training only), `stack` which engine serves (serving
    only; None: the workload's `engine`).
    all_seats_taken: a serving workload may leave its load open, and every plan then has as many requests in flight as
    it has seats (max_num_seqs of every engine), so that the load is one of the plan's choices.
    Whatever the model substitutes or takes for granted is listed in the projections' assumptions.

    InvalidDescription when the description is incomplete or contradicts itself: a size of the workload is missing, the
    cluster is not made of this chip, a plan is of another phase, does not occupy the cluster's devices or does not
    consume the global batch, or needs something the model does not cover. A plan that does not fit is no error: it is
    projected, and `fits` and `rejections` say so. Legality beyond that is the business of `projector.legality`.
    """
    check(batch, workload, cluster, hardware)
    math_dtype, replaced = math_dtypes(batch, Device.of(hardware))
    assumed = (*replaced, *assumptions(batch, workload, architecture, cluster, hardware, software))
    if workload.phase == "training":
        seq_len, _ = sizes(workload, "seq_len", "global_batch")
        return project_training(
            batch,
            architecture,
            seq_len,
            math_dtype,
            cluster,
            hardware,
            software,
            assumed,
            adapter=workload.adapter,
            lengths=workload.lengths,
        )
    seats = (batch.max_num_seqs * batch.replicas).astype(np.float64) if all_seats_taken else None
    if seats is not None and workload.concurrency is None and workload.request_rate_per_s is None:
        assumed = (*assumed, Assumption("no load is stated: every seat of every engine (max_num_seqs) is taken"))
    if stack is None:
        named = serving_stack(workload.engine)
        stack = named.stack
        assumed = (*assumed, Assumption(named.remark)) if named.remark else assumed
    return project_engines(
        batch, architecture, Load.of(workload, seats), math_dtype, cluster, hardware, assumed, stack=stack
    )
