"""Kernels, compilation, and the host that launches them."""

import re

from agents.remedies.facts import Facts
from agents.remedies.rule import Judged, RemedyRule, at_least

WORTH_FRAC = 0.05  # of the step: below it a remedy for this cause gains less than runs differ by


def _graphs(facts: Facts) -> Judged:
    if re.search(r"graphs? (full|piecewise|on|true)|cuda graph (full|mlp|attn)", facts.text):
        return Judged("depends", "graphs are on: check which parts are captured, and the pool they keep")
    return at_least("share of time the device waits for the host", facts.observed.host_frac, WORTH_FRAC)


def _host(facts: Facts) -> Judged:
    waits = facts.observed.host_frac
    busy = facts.observed.duty_cycle_frac
    return at_least(
        "share of time without work", waits if waits is not None else 1 - busy if busy else None, WORTH_FRAC
    )


LAUNCH: tuple[RemedyRule, ...] = (
    RemedyRule(
        "cuda_graph",
        "Capture the step in graphs, so that it is launched once",
        ("launch_bound",),
        "the device waits for launches for more than 5 % of the time and shapes repeat",
        "shapes change every step, or memory is full: each captured size keeps a pool of its own",
        0.7,
        0.15,
        "flag",
        "memory for the pools of graphs; start-up time; no host code inside the captured part",
        ("launch-bound-work-and-cuda-graphs",),
        judge=_graphs,
    ),
    RemedyRule(
        "host",
        "Take work off the host between steps: schedule ahead, sample on the device, one process a task",
        ("launch_bound", "host_idle"),
        "the device idles while the host schedules, samples, collates or collects garbage",
        "the device is busy all the time",
        0.6,
        0.2,
        "config",
        "results arrive one step later where scheduling runs ahead; more processes to operate",
        ("launch-bound-work-and-cuda-graphs", "garbage-collection-and-host-jitter"),
        judge=_host,
    ),
    RemedyRule(
        "compile",
        "Compile the model, so that small kernels are fused",
        ("launch_bound", "hbm_bandwidth", "compute_throughput"),
        "element-wise kernels and launches take more than 5 % of the step",
        "shapes change often (each compiles anew), or the hot kernels are fused already",
        0.5,
        0.2,
        "flag",
        "minutes of compilation at start and after every new shape; harder debugging",
        ("launch-bound-work-and-cuda-graphs", "memory-bound-training-steps"),
    ),
    RemedyRule(
        "kernels",
        "Replace the slow kernel: tuned tiles, a fused or grouped form, another attention backend",
        ("compute_throughput", "hbm_bandwidth"),
        "one kernel family takes a large share and runs far below the roofline of its shapes",
        "the step waits for links or the host: a faster kernel then waits longer",
        0.4,
        0.3,
        "config",
        "numerics differ in the last digits; tuning holds for one chip, shape and release",
        ("attention-kernels-in-decode", "grouped-gemm-tokens-per-expert", "tile-and-wave-quantisation"),
    ),
    RemedyRule(
        "data",
        "Feed the device: more loader workers, prefetch, preprocessing ahead of time",
        ("host_idle",),
        "the device waits for input between steps",
        "input is ready before it is asked for",
        0.9,
        0.3,
        "config",
        "host memory and cores; order of samples may change",
        ("input-stalls-and-host-copies",),
    ),
)
