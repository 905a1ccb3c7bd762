"""Closed loop: how a rank's running requests share its steps between prefill and decoding."""

from dataclasses import dataclass

import numpy as np

from projector.graph.columns import Column


@dataclass(frozen=True)
class Loop:
    """A rank's steady state (columns).

    prompts           prompts that share a mixed step
    prefill_steps     mixed steps from a prompt's first chance to run to its first token, those of others included (R)
    decode_steps      steps a request decodes (Z)
    decoding          requests decoding beside a given decoding one, itself included
    beside_prefill    requests decoding while a given one prefills
    mixed_frac        share of its decode steps that carry somebody's prefill chunk
    """

    prompts: Column
    prefill_steps: Column
    decode_steps: Column
    decoding: Column
    beside_prefill: Column
    mixed_frac: Column


def closed_loop(
    running: Column,
    chunks: Column,
    fit_in_chunk: Column,
    output_len: Column | float,
    length_spread_frac: float = 0.0,
) -> Loop:
    """c requests that alternate between one prefill server and Z = output_len - 1 decode steps.

    Time is counted in steps: a mixed step, however long, gives every decoding request its token as a pure one does, so
    that no more requests come back during it. The server takes chunks / fit_in_chunk steps a prompt where whole
    prompts share a step, and chunks steps where they do not; a prompt is there for R = chunks + `waiting` steps.
    Seen by a decoding request (c - 1) chunks / prompts / (R + Z) of the steps are mixed.

    Prompts of a mixed step: with returns spread evenly one, until a step must take more; with returns at random (see
    `return_variability`) l / (1 - exp(-l)) for l prompts a step, the mean of a Poisson count that is not 0.
    Left out: preemption, requests that keep step with each other because they started together.
    """
    z = np.zeros_like(running) + np.maximum(output_len - 1.0, 0.0)
    fit = np.maximum(fit_in_chunk, 1.0)
    service = chunks / fit
    prefill = chunks + waiting(running, service, chunks, z, length_spread_frac * z)
    random = return_variability(running, service, chunks + z, length_spread_frac * z)
    cycle = prefill + z
    others = np.maximum(running - 1, 0.0)
    a_step = np.maximum(running / cycle, 1e-9)
    together = (1 - random) * np.maximum(a_step, 1.0) + random * a_step / -np.expm1(-a_step)
    prompts = np.clip(together, 1.0, np.minimum(fit, np.maximum(running, 1.0)))
    return Loop(
        prompts=prompts,
        prefill_steps=prefill,
        decode_steps=z,
        decoding=1 + others * z / cycle,
        beside_prefill=others * z / cycle,
        mixed_frac=np.minimum(others * chunks / prompts / cycle, 1.0),
    )


def return_variability(customers: Column, service: Column, away: Column, spread: Column) -> Column:
    """Squared coefficient of variation of the returns to the server: 0 evenly spaced, 1 at random (Poisson).

    Requests of one length come back in the order and at the distance in which they left. Where visits away are uniform
    within +- spread, their standard deviation spread / sqrt(3) is compared with the mean distance between two returns,
    max(away, c service) / c: once it is as large, the order is lost after one round.
    """
    gap = np.maximum(away, customers * service) / customers
    found: Column = np.minimum((spread / np.sqrt(3.0) / gap) ** 2, 1.0)
    return found


def waiting(customers: Column, service: Column, visit: Column, away: Column, spread: Column) -> Column:
    """Mean time c customers wait for a server that takes `service` for each, beyond a visit of their own.

    Diffusion approximation of the machine-repair model (Iglehart, J. Appl. Prob. 2 (1965)) for service of constant
    length: the backlog drifts towards B = c service - visit - away with a variance s^2 and is never below 0, so its
    mean is that of a normal distribution cut off there.

        W = B + s h(-B / s),  h: hazard rate of the standard normal distribution
        s^2 = (1 - rho) p + rho min(p, spread^2 / 3),  p = v rho service (visit + away) / 2

    with rho = c service / (visit + away) or 1, and v the `return_variability` of times away uniform within +- spread.
    A busy server spaces its customers evenly: near saturation only the jitter of one time away disturbs them.
    Limits: 0 for one customer; max(B, 0) without spread (exact); rho service / (2 (1 - rho)) for many that load the
    server lightly and return at random (M/D/1); B where it saturates. Units: those of the arguments.
    """
    surplus = customers * service - visit - away
    load = np.minimum(customers * service / (visit + away), 1.0)
    others = np.maximum(customers - 1, 0.0) / customers
    random = return_variability(customers, service, visit + away, spread)
    poisson = random * others * load * service * (visit + away) / 2
    deviation = np.sqrt((1 - load) * poisson + load * np.minimum(poisson, spread**2 / 3))
    even = np.maximum(surplus, 0.0)
    some = np.maximum(deviation, 1e-9 * (visit + away))
    found: Column = np.where(deviation > 0, np.maximum(surplus + some * normal_hazard(-surplus / some), even), even)
    return found


def normal_hazard(x: Column) -> Column:
    """Density over tail probability of the standard normal distribution, within 1.2 %.

    Above 0 Boyd's bound of Mills' ratio (1959), exact at 0 and infinity; below it the tail as a logistic function.
    """
    right = np.maximum(x, 0.0)
    above = ((np.pi - 1) * right + np.sqrt(right**2 + 2 * np.pi)) / np.pi
    left = np.maximum(-x, 0.0)
    density = np.exp(-(left**2) / 2) / np.sqrt(2 * np.pi)
    below = density / (0.5 + 0.5 * np.tanh(np.sqrt(2 / np.pi) * (left + 0.044715 * left**3)))
    found: Column = np.where(x >= 0, above, below)
    return found


def first_round(prompts: Column, together: Column, step_s: Column, chunks: Column) -> Column:
    """Mean seconds to the first token of n `prompts` that arrive at once and are served first come, first served.

    Groups of k = `together` take `chunks` steps of `step_s` each; the i-th group is done after i of them:

        T = chunks step_s sum_i i n_i / n,  n_i = k but for the last group, which holds what is left
    """
    groups = np.ceil(prompts / together - 1e-9)
    ordinals = together * groups * (groups - 1) / 2 + (prompts - together * (groups - 1)) * groups
    found: Column = chunks * step_s * ordinals / prompts
    return found
