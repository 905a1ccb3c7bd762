"""llm-analysis' answers, run by the Python that has its packages: SOURCE QUESTIONS FLOP MEMORY, JSON lines on stdout.

Its shipped GPU files; for a chip without one the file of its family with the memory size and bandwidth of the chip's
datasheet. FLOP and MEMORY are the two efficiencies it leaves to its user: 1 and 1 are its defaults (a lower bound, it
says), 0.5 and 0.9 what its README suggests for training where nothing was measured. It is called as its README shows,
through the class; logging is off. Only the standard library and llm-analysis are imported.
"""

import logging
import sys
import time
from dataclasses import replace
from typing import Any

from projector_child import questions_of, refusal, tell, tell_memory

# chip -> (its name, whether memory size and bandwidth are put in)
GPUS = {
    "a100-80-sxm": ("a100-sxm-80gb", False),
    "a100-40-sxm": ("a100-sxm-40gb", False),
    "h100-sxm": ("h100-sxm-80gb", False),
    "h100-sxm-96gb-hbm2e(500w)": ("h100-sxm-80gb", True),
    "h200": ("h100-sxm-80gb", True),
}
DTYPES = {"bf16": "w16a16e16", "fp16": "w16a16e16", "fp8": "w8a8e16"}
RECOMPUTE = {"none": 0, "selective": 1, "full": 4}


class Unknown(Exception):
    """The question asks for something llm-analysis has no field for."""


def model_fields(question: dict[str, Any]) -> dict[str, Any]:
    """Fields of its ModelConfig."""
    return {
        "name": "row",
        "num_layers": question["layers"],
        "n_head": question["heads"],
        "hidden_dim": question["hidden"],
        "vocab_size": question["vocabulary"],
        "max_seq_len": question["seq_len"],
        "num_key_value_heads": question["kv_heads"],
        "ffn_embed_dim": question["mlp_width"],
        "mlp_gated_linear_units": question["gated"],
    }


def parallelism_fields(question: dict[str, Any]) -> tuple[dict[str, int], int]:
    """Fields of its ParallelismConfig, and its ZeRO stage. Data ranks that share nothing are replicas in its terms."""
    lacks = {
        **{name.replace("_", " "): True for name in question["beyond"]},
        "context parallelism": question["cp"] > 1,
        "expert parallelism": question["ep"] > 1,
        "heads that do not make up the hidden size": question["heads"] * question["head_dim"] != question["hidden"],
        f"dtype {question['dtype']}": question["dtype"] not in DTYPES,
        f"recompute {question['recompute']}": question["recompute"] not in RECOMPUTE,
    }
    refused = [name for name, is_on in lacks.items() if is_on]
    if refused:
        raise Unknown(f"no field for {', '.join(refused)}")
    dp, stage = question["dp"], question["zero_stage"]
    shared = question["fsdp"] if stage == 3 else dp if stage else 1
    return {
        "tp_size": question["tp"],
        "pp_size": question["pp"],
        "dp_size": shared,
        "rdp_size": dp // shared,
        "sp_size": question["tp"] if question["sp"] else 1,
    }, stage


def main(source: str, asked: str, flop: str, memory: str) -> None:
    """Answer every question of a file."""
    sys.path.insert(0, source)
    logging.disable(logging.CRITICAL)
    from llm_analysis.analysis import (  # type: ignore[import-not-found]
        ActivationRecomputation,
        DSZeRO,
        LLMAnalysis,
    )
    from llm_analysis.config import (  # type: ignore[import-not-found]
        ModelConfig,
        ParallelismConfig,
        get_dtype_config_by_name,
        get_gpu_config_by_name,
    )

    questions = questions_of(asked)
    for question in questions:
        answer: dict[str, Any] = {}
        before = time.process_time()
        try:
            name, derived = GPUS[question["chip"]]
            gpu = get_gpu_config_by_name(name)
            if derived:
                size, rate = question["hbm_bytes"] / 1e9, question["hbm_bytes_per_s"] / 1e9
                gpu = replace(gpu, mem_per_GPU_in_GB=size, hbm_bandwidth_in_GB_per_sec=rate)
            degrees, stage = parallelism_fields(question)
            told = LLMAnalysis(
                ModelConfig(**model_fields(question)),
                gpu,
                get_dtype_config_by_name(DTYPES[question["dtype"]]),
                ParallelismConfig(**degrees),
                flops_efficiency=float(flop),
                hbm_memory_efficiency=float(memory),
            ).training(
                batch_size_per_gpu=question["micro_batch"],
                gradient_accumulation_steps=question["grad_accum"],
                global_batch_size=question["global_batch"],
                seq_len=question["seq_len"],
                activation_recomputation=ActivationRecomputation(RECOMPUTE[question["recompute"]]),
                ds_zero=DSZeRO(stage),
            )
            bytes_ = told["estimated_peak_memory_per_gpu"]
            fits = bytes_ <= gpu.mem_per_GPU_in_GB * 2**30  # it counts a GB of capacity as 2^30 bytes
            answer = {"time_s": told["latency_per_iter"], "bytes": bytes_, "fits": fits, "stand_ins": []}
        except Exception as error:
            answer = {"refused": refusal(error)}
        answer["cpu_s"] = time.process_time() - before
        tell(row=question["row"], tokens=question["tokens"], **answer)
    tell_memory()


if __name__ == "__main__":
    main(*sys.argv[1:])
