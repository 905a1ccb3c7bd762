"""aiconfigurator's answers: python serving_aiconfigurator.py QUESTIONS (in an environment that has aiconfigurator).

Each question goes to its own `cli_estimate`, with the measured tables of the question's backend; where those lack the
operator or the number format, once more in its hybrid mode (tables, completed by its own empirical model). Models are
named as its bundled configurations are: it must not ask a hub.
"""

import logging
import sys
import time

from projector_child import questions_of, refusal, tell, tell_memory

# names of the measurements -> names of its bundled configurations of the same architecture
BUNDLED = {
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "zhipuai/GLM-5": "zai-org/GLM-5",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-ai/DeepSeek-R1",
    "nvidia/Qwen3-32B-NVFP4": "Qwen/Qwen3-32B",
}
MODES = ("SILICON", "HYBRID")
POOL_KEYS = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size", "batch_size", "num_workers")


def arguments_of(question):
    """The keyword arguments of `cli_estimate`; ValueError for a point whose pools the file does not state."""
    found = {
        "mode": question["mode"],
        "backend_name": question["backend"],
        "isl": question["isl"],
        "osl": question["osl"],
        "gemm_quant_mode": question["gemm_quant"],
        "moe_quant_mode": question["moe_quant"],
    }
    if question["mode"] == "agg":
        return found | {
            "batch_size": question["batch"],
            "tp_size": question["tp"],
            "pp_size": question["pp"],
            "attention_dp_size": question["attention_dp"],
            "moe_tp_size": question["moe_tp"],
            "moe_ep_size": question["moe_ep"],
        }
    names = [f"{pool}_{key}" for pool in ("prefill", "decode") for key in POOL_KEYS]
    pools = {name: question["pools"].get(name) for name in names}
    open_keys = [key for key in pools if pools[key] is None and not key.endswith("attention_dp_size")]
    if open_keys:
        raise ValueError("the sizes of the pools are not stated")
    return found | {key: value or 1 for key, value in pools.items()}


def answer(estimate, question):
    """(TTFT ms, TPOT ms, mode) of the first mode that has an answer; the error of the last otherwise."""
    model = BUNDLED.get(question["model_path"], question["model_path"])
    keywords = arguments_of(question)
    for mode in MODES:
        try:
            found = estimate(model, question["system"], database_mode=mode, **keywords)
            return found.ttft, found.tpot, mode
        except Exception as error:
            fault = error
    raise fault


def main(file: str) -> None:
    """Answer every question, with the processor time it took."""
    logging.disable(logging.CRITICAL)
    from aiconfigurator.cli.api import cli_estimate

    for question in questions_of(file):
        start = time.process_time()
        try:
            ttft_ms, tpot_ms, mode = answer(cli_estimate, question)
            tell(id=question["id"], ttft_ms=ttft_ms, tpot_ms=tpot_ms, how=mode, cpu_s=time.process_time() - start)
        except Exception as error:
            tell(id=question["id"], refused=refusal(error).splitlines()[0][:90], cpu_s=time.process_time() - start)
    tell_memory()


if __name__ == "__main__":
    main(sys.argv[1])
