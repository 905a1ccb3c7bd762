"""Closed loop: how a rank's running requests share its steps between prefill and decoding."""

from dataclasses import dataclass

import numpy as np

from projector.graph.columns import Column


@dataclass(frozen=True)
class Loop:
    """A rank's steady state (columns).

    prompts           prompts that share a mixed step
    service_steps     mixed steps a prompt occupies the prefill server for (S)
    decode_steps      steps a request decodes (Z)
    decoding          requests decoding beside a given decoding one, itself included
    beside_prefill    requests decoding while a given one prefills
    mixed_frac        share of its decode steps that carry somebody's prefill chunk
    """

    prompts: Column
    service_steps: Column
    decode_steps: Column
    decoding: Column
    beside_prefill: Column
    mixed_frac: Column


def closed_loop(running: Column, chunks: Column, fit_in_chunk: Column, output_len: float) -> Loop:
    """c requests that alternate between one prefill server and Z = output_len - 1 decode steps.

    A prompt of `chunks` chunks takes S = chunks / prompts mixed steps; `fit_in_chunk` whole prompts fit one step, and
    as many share it as arrive in one. In steps the server is busy c S of a cycle of R + Z, with R from `response`.
    Seen by a decoding request (c - 1) S / (R + Z) of the steps are mixed.
    Left out: spread of lengths and arrivals (tails), preemption.
    """
    z = np.full_like(running, max(output_len - 1.0, 0.0))
    prompts = np.clip(running / max(output_len, 1.0), 1.0, np.maximum(fit_in_chunk, 1.0))
    service = chunks / prompts
    cycle = np.maximum(response(running, service, z), chunks) + z
    others = np.maximum(running - 1, 0.0)
    return Loop(
        prompts=prompts,
        service_steps=service,
        decode_steps=z,
        decoding=1 + others * z / cycle,
        beside_prefill=others * z / cycle,
        mixed_frac=np.minimum(others * service / cycle, 1.0),
    )


def response(customers: Column, service: Column, away: Column) -> Column:
    """Mean response of one server to c customers who are away for `away` between visits of mean length `service`.

    Mean-value analysis in Schweitzer's form, R = S (1 + (c - 1)/c Q) with Q = c R / (R + Z), is a quadratic:

        R = (c S - Z + sqrt((c S - Z)^2 + 4 S Z)) / 2

    R = S for one customer, c S - Z where the server saturates. Units: those of the arguments.
    """
    surplus = customers * service - away
    found: Column = (surplus + np.sqrt(surplus**2 + 4 * service * away)) / 2
    return found
