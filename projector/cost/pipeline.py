"""Pipeline: from the time of a micro-batch on each stage to the time of a step."""

from dataclasses import dataclass

import numpy as np

from projector.graph.columns import Column, Switch


@dataclass(frozen=True)
class PipelineTime:
    """Seconds of the pipelined part of a step, and the part of it the slowest stage waits."""

    total_s: Column
    bubble_s: Column
    last_is_slowest: Switch


def pipeline_time(
    middle_s: Column, last_s: Column, all_stages_s: Column, micro_batches: Column, virtual_stages: Column
) -> PipelineTime:
    """A step of m micro-batches over stages of unequal length, forward and backward together.

        T = m t_max + (sum_i t_i - t_max) / v

    t_i is the time of one micro-batch on stage i: the slowest stage is never idle once filled, and the others' times
    are paid once to fill and drain, a v-th of it when each device holds v chunks. With p equal stages this is
    (m + (p - 1) / v) t, the bubble fraction (p - 1) / (v m) of Narayanan et al. 2021 (arXiv:2104.04473, section 2.2).
    Against an event simulation of both schedules (test_pipeline_simulation.py) it is exact for equal stages and where
    the last one is slowest, and at most an eighth too long where an early one is.
    Left out: sends that delay the fill, chunks of unequal size, zero-bubble schedules.
    """
    slowest_s = np.maximum(middle_s, last_s)
    bubble_s = np.maximum(all_stages_s - slowest_s, 0.0) / virtual_stages
    return PipelineTime(micro_batches * slowest_s + bubble_s, bubble_s, last_s > middle_s)
