"""Signs that numbers show by first-principles arithmetic; they outweigh words. Every sign says its inequality."""

from collections.abc import Iterator
from dataclasses import replace
from math import log2

import numpy as np

from agents.remedies.cue import Cue
from agents.remedies.facts import Facts
from agents.remedies.symptom import CUES, NEGLIGIBLE, Sign
from agents.wording import percent
from projector.graph.scope import kv_bytes_per_token

BY_SIGN: dict[str, Cue] = {cue.sign: cue for cue in CUES}

NEAR_FULL_FRAC = 0.95  # above it allocators retry and compilers recompute: memory is a cliff, not a slope
FULL_OF_WHOLE_FRAC = 0.93  # the same, of a chip's whole memory: a runtime keeps some for itself
LOW_MFU_FRAC = 0.10  # below it arithmetic is not what the step waits for
BYTES_A_TRAINED_PARAMETER = 16  # bf16 weight and gradient, fp32 weight and two moments: mixed-precision Adam
REACHED_FRAC = 0.5  # of peak arithmetic and of a link, by large products and transfers
LEAST_BUBBLE_FRAC = 0.15
HABIT_WEIGHT = 0.15
PROMPT_HEAVY = 4.0  # prompt tokens a new one, from which prefill takes most arithmetic of any batch


def number_signs(facts: Facts) -> tuple[Sign, ...]:
    """Everything the numbers of a job show."""
    worked_out = (_tensor(facts), _sharding(facts), _pipeline(facts), _experts(facts), _traffic(facts))
    arithmetic = (replace(sign, stated_by="arithmetic") for signs in worked_out for sign in signs)
    return (*_memory(facts), *_shares(facts), *_phases(facts), *_low_mfu(facts), *arithmetic, *_habits(facts))


def _sign(name: str, weight: float, claim: str, share: float | None = None) -> Sign:
    return Sign(BY_SIGN[name], weight, claim, share, stated_by="numbers")


def _memory(facts: Facts) -> Iterator[Sign]:
    seen, whole = facts.observed, facts.memory_gb
    if seen.out_of_memory:
        yield _sign("out of memory", 4.0, "The run is stated to be out of memory.")
    peak, limit = seen.peak_memory_gb, seen.memory_limit_gb
    if peak is not None and limit is not None and peak / limit > NEAR_FULL_FRAC:
        yield _sign("near-full memory", 3.5, f"Peak memory {peak:g} GB is {percent(peak / limit)} of {limit:g} GB.")
    elif peak is not None and limit is None and whole is not None and peak / whole > FULL_OF_WHOLE_FRAC:
        yield _sign("near-full memory", 2.5, f"Peak memory {peak:g} GB is {percent(peak / whole)} of the chip's.")
    heads, tp = facts.get("kv_heads"), facts.degree("tp")
    separate = facts.degree("attention_dp") > 1 or "dp attention" in facts.text or "attention dp" in facts.text
    if facts.setting == "serving" and heads is not None and not facts.is_mla and tp > heads:
        yield _sign(
            "replicated key-value cache", log2(tp / heads), f"tp {tp:g} > {heads:g} KV heads: {tp / heads:g} copies."
        )
    if facts.setting == "serving" and facts.is_mla and tp > 1 and not separate:
        yield _sign(
            "replicated key-value cache", 0.5 * log2(tp), f"Latent attention under tp {tp:g} keeps {tp:g} equal caches."
        )


def _shares(facts: Facts) -> Iterator[Sign]:
    seen = facts.observed
    for name, value, least, weight, what in (
        ("exposed communication", seen.exposed_communication_frac, 0.10, 5.0, "of the step is exposed communication"),
        ("idle device", seen.idle_frac, 0.15, 4.0, "of the time the device is idle"),
        ("pipeline bubble", seen.bubble_frac, 0.10, 5.0, "of the step is pipeline bubble"),
        ("kernel launches", seen.host_frac, 0.10, 5.0, "of the time the device waits for the host"),
        ("recompute", seen.recompute_frac, 0.15, 4.0, "of the step recomputes activations"),
    ):
        if value is not None and value > least:
            yield _sign(name, min(4.0, max(1.5, weight * value)), f"{percent(value)} {what}.", value)
    exposed = seen.exposed_communication_frac
    if exposed is not None and exposed < NEGLIGIBLE:
        claim = f"Only {percent(exposed)} of the step is exposed communication."
        yield _sign("exposed communication", -2.0, claim, exposed)
    if seen.duty_cycle_frac is not None and seen.duty_cycle_frac < 0.6:
        idle = 1 - seen.duty_cycle_frac
        yield _sign(
            "idle device", 2.0 + idle, f"The device works for {percent(seen.duty_cycle_frac)} of the time.", idle
        )
    useful = seen.useful_token_frac
    if useful is not None and useful < 0.85:
        yield _sign("padding", 2.0 + 3 * (1 - useful), f"{percent(1 - useful)} of the tokens are padding.", 1 - useful)
    if seen.expert_imbalance is not None and seen.expert_imbalance > 1.3:
        share = 1 - 1 / seen.expert_imbalance
        yield _sign(
            "expert imbalance", 2.0 + share, f"Busiest expert rank: {seen.expert_imbalance:g} x the mean.", share
        )
    if seen.shared_prefix_frac is not None and seen.shared_prefix_frac > 0.2:
        share = seen.shared_prefix_frac
        yield _sign("repeated prefixes", 2.0 + share, f"{percent(share)} of prompt tokens are shared.", share)


def _tensor(facts: Facts) -> Iterator[Sign]:
    tp, node = facts.degree("tp"), facts.chips_per_node
    if tp > 1 and facts.link == "pcie":
        yield _sign("no fast link inside the node", 2.5, f"tp {tp:g} over PCIe: no fast links.")
    if tp > 1 and not facts.is_tpu and node is not None and tp > node:
        yield _sign("slow link between nodes", 2.5, f"tp {tp:g} > {node:g} chips a node: all-reduces leave the node.")
    whole = facts.memory_gb
    if tp > 1 and facts.params is not None and whole is not None and not facts.is_mla:
        need = 2 if facts.setting == "serving" else BYTES_A_TRAINED_PARAMETER
        parts = 1 if facts.setting == "serving" else max(1.0, (facts.chips or tp) / tp)
        size = need * facts.params / parts / 1e9
        if size < 0.4 * whole and facts.setting == "serving" and not facts.is_moe:
            yield _sign(
                "small collectives", 1.0, f"Weights of {size:.0f} GB fit one chip of {whole:.0f} GB, tp is {tp:g}."
            )
        if size < 0.4 * whole and facts.setting != "serving":
            yield _sign("over-partitioned phases", 1.2, f"{size:.0f} GB a chip without tp < 40 % of {whole:.0f} GB.")


def _sharding(facts: Facts) -> Iterator[Sign]:
    if facts.setting == "serving":
        return
    sharded = facts.get("fsdp") or facts.get("zero") == 3 or _says_full_sharding(facts)
    tokens = facts.tokens_per_chip
    if facts.get("zero") == 3 and facts.params is not None and facts.memory_gb is not None:
        weights_gb = 2 * facts.params / 1e9
        if "lora" in facts.text and weights_gb < 0.7 * facts.memory_gb:
            yield _sign("parameter gathers", 3.0, f"Frozen weights of {weights_gb:.0f} GB fit a chip, and are sharded.")
    if not sharded or facts.params is None or facts.active is None or tokens is None or facts.chip is None:
        return
    gathers = 3.0 * (facts.get("grad_accum") or facts.get("microbatches") or 1.0)
    across = (facts.chips or 1) > facts.chip.intra.max_domain_chips and not facts.is_tpu
    link = facts.chip.inter.bytes_per_s_one_way if across else facts.chip.intra.bytes_per_s_one_way
    split = facts.degree("tp") * facts.degree("pp") * (facts.degree("ep") if facts.is_moe else 1.0)
    if link is None:
        return
    traffic_s = gathers * 2 * facts.params / split / (REACHED_FRAC * link.value)
    work_s = 6 * facts.active * tokens / (REACHED_FRAC * facts.chip.peak_flop_per_s["bf16"].value)
    ratio = traffic_s / work_s
    if facts.observed.step_time_s is not None and traffic_s > facts.observed.step_time_s:
        return  # the measured step is shorter: not all weights are gathered so often
    if ratio > 0.5:
        claim = f"Gathers of sharded weights take {traffic_s:.2g} s a step, arithmetic {work_s:.2g} s: {ratio:.1f} x."
        yield _sign("parameter gathers", min(3.0, 1.0 + 0.5 * ratio), claim, 1 - 1 / (1 + ratio))


def _says_full_sharding(facts: Facts) -> bool:
    return any(word in facts.text for word in ("fsdp", "full shard", "zero 3", "zero3", "zero-3"))


def _pipeline(facts: Facts) -> Iterator[Sign]:
    pp, rounds = facts.degree("pp"), facts.get("microbatches") or facts.get("grad_accum")
    if pp <= 1 or rounds is None or facts.setting == "serving":
        return
    bubble = (pp - 1) / (rounds * max(1.0, facts.degree("vp")) + pp - 1)
    if bubble > LEAST_BUBBLE_FRAC:
        claim = f"pp {pp:g} with {rounds:g} micro-batches idles (pp - 1) / (m vp + pp - 1) = {percent(bubble)}."
        yield _sign("pipeline bubble", 1.5 + 3 * bubble, claim, bubble)


def _phases(facts: Facts) -> Iterator[Sign]:
    times = facts.observed.phases
    if times is None:
        return
    sync, step = times.weight_sync_s, facts.observed.step_time_s
    known = [time for time in (times.generation_s, times.update_s, times.log_probabilities_s, sync) if time]
    whole = step or sum(known)
    if not whole:
        return
    if sync and (times.sync_assembly_s or len(known) == 1 or sync / whole > 0.15):
        share = min(1.0, sync / whole) if len(known) > 1 or step else None
        part = (times.sync_assembly_s or 0.0) / sync
        split = f", {percent(part)} of it building tensors" if part else ""
        name = "weights assembled for sync" if part >= 0.5 else "weight sync"
        yield _sign(name, 4.0 if part else 3.0, f"Weight sync takes {sync:g} s{split}.", share)
    passes = (times.log_probabilities_s or 0.0) + (times.update_s or 0.0)
    if len(known) > 1 and passes / whole > 0.5:
        yield _sign("log-probability passes", 2.5, f"Passes without generation take {percent(passes / whole)}.")
    if len(known) > 1 and times.generation_s is not None and times.generation_s / whole > 0.5:
        share = times.generation_s / whole
        yield _sign("rollouts dominate", 2.5, f"Generation takes {percent(share)} of the step.", share)


def _traffic(facts: Facts) -> Iterator[Sign]:
    """What the lengths and the number of requests say of serving."""
    given, new, users = facts.get("input_len"), facts.get("output_len"), facts.get("concurrency")
    if facts.setting != "serving" or given is None or new is None:
        return
    if given >= PROMPT_HEAVY * new:
        yield _sign("prefill in the way", 1.2, f"Prompts of {given:g} tokens against {new:g} new ones.")
    model, whole = facts.model, facts.memory_gb
    if users is None or model is None or whole is None or not facts.chips:
        return
    a_token = float(kv_bytes_per_token(model, np.ones(1), np.array(["bf16"]))[0]) * model.layers
    need_gb = a_token * users * (given + new / 2) / 1e9
    if need_gb > whole * facts.chips:
        claim = f"{users:g} requests of {given + new:g} tokens need {need_gb:.0f} GB of keys and values"
        yield _sign("key-value cache", 3.0, f"{claim}, all chips have {whole * facts.chips:.0f} GB.")


def _experts(facts: Facts) -> Iterator[Sign]:
    ep, node = facts.degree("ep"), facts.chips_per_node
    if facts.is_moe and ep > 1 and not facts.is_tpu and node is not None and ep > node and facts.link != "nvlink":
        yield _sign("expert exchange", 1.5, f"ep {ep:g} > {node:g} chips a node: the exchange leaves the node.")


def _low_mfu(facts: Facts) -> Iterator[Sign]:
    mfu = facts.observed.mfu_frac
    if facts.setting != "serving" and mfu is not None and mfu < LOW_MFU_FRAC:
        yield _sign("small batches of work", 0.8, f"MFU is {percent(mfu)}.")


def _habits(facts: Facts) -> Iterator[Sign]:
    """What such runs mostly wait for; it decides only where nothing else is stated."""
    several = (facts.chips or facts.get("nodes") or 1.0) > 1
    if facts.setting in ("training", "fine-tuning") and several:
        yield _habit("strong scaling")
    if facts.setting == "serving":
        yield _habit("bandwidth of decoding")


def _habit(name: str) -> Sign:
    return Sign(BY_SIGN[name], HABIT_WEIGHT, stated_by="habit")
