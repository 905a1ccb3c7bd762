"""Admission: when an engine takes a waiting request in, and what it costs where the KV pool then overflows.

Running requests grow by a token a step, so that a pool that is full at their mean length is a steady state: each
request that ends frees input + output tokens, the next one takes its input at once, and its output is what all grow by
until the next one ends. Three ways to keep to it, by engine (`ServingStack.admission`):

    mean     as many run as the pool holds at mean length, the rest waits: engines that estimate how much of the output
             is still to come (SGLang's new_token_ratio), or whose max_num_seqs is set to it
    reserve  room for the whole output is kept from the start (TensorRT-LLM's guaranteed-no-evict): no request is ever
             preempted, and fewer run
    greedy   a request starts as soon as its prompt fits (vLLM); when the pool overflows the youngest is preempted, its
             blocks are freed and its prompt is computed again
"""

import numpy as np

from projector.batch_projection import Assumption
from projector.graph.columns import Column, Switch
from projector.specs.serving_stack import ServingStack


def held_tokens(input_len: float, output_len: float, stack: ServingStack, length_spread_frac: float = 0.0) -> float:
    """Tokens of the KV pool that a running request keeps from others in the mean.

    Long answers are met the more often the longer they run: E[o^2] / E[o], as in `projector.serving_load.Load.context`.
    """
    met = output_len * (1 + length_spread_frac**2 / 3)
    return input_len + met * (1.0 if stack.admission == "reserve" else 0.5)


def recomputed_prompts(
    own_input: float, output_len: float, held: Column, wanted: Column, stack: ServingStack
) -> Column:
    """Prompts a request has computed beyond its own, shape [n]; 0 unless the engine is greedy and its pool is full.

        min(floor((input + output) / input) - 1, seats wanted beyond those the pool holds)

    A request that ends frees room for so many prompts; before the next one ends the others' growth takes it all back,
    and all but one of the new ones are preempted. None where prompts are longer than answers, nor where max_num_seqs
    (`wanted`: that, or fewer where fewer are in flight) keeps more from starting.
    Left out: tokens preempted requests had made, which are computed again with their prompts; blocks of theirs that
    nobody took meanwhile and that a prefix cache finds.
    """
    if stack.admission != "greedy":
        return np.zeros_like(held)
    surplus = np.floor((own_input + output_len) / own_input) - 1.0
    return np.clip(wanted - np.maximum(held, 1.0), 0.0, surplus)


def admission_assumptions(full: Switch, again: Column) -> tuple[Assumption, ...]:
    """What happens where the KV pool is full (`full`), with so many prompts a request computed `again`."""
    if not full.any():
        return ()
    return (
        Assumption("the KV pool is full: requests wait for others to end, and none is preempted", full & (again == 0)),
        Assumption("the KV pool is full: prompts are preempted and computed again", full & (again > 0)),
    )
