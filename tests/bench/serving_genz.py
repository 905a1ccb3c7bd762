"""GenZ's answers: python serving_genz.py SOURCE QUESTIONS (in an environment that has what GenZ imports).

GenZ models one pass: a decode step of the whole batch at its mean context, and the prefill of one prompt. Beside
requests that decode, others prefill: TPOT = decode + (batch - 1) / osl prefill, which is our term, not GenZ's. TTFT is
its prefill. Chips by their datasheets, efficiencies 1, its default.
"""

import contextlib
import io
import sys
import time
import warnings

from projector_child import questions_of, refusal, tell, tell_memory

# dense bf16 TFLOP/s, GB of HBM, GB/s of HBM, GB/s one way of NVLink
CHIPS = {
    "h100_sxm": (989, 80, 3350, 450),
    "h200_sxm": (989, 141, 4800, 450),
    "b200_sxm": (2250, 180, 8000, 900),
    "b300_sxm": (2250, 288, 8000, 900),
    "gb200": (2500, 186, 8000, 900),
    "gb300": (2500, 288, 8000, 900),
}
# its own names of the same architectures
KNOWN = {
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/meta-llama-3.1-8b",
    "meta-llama/Llama-3.1-70B": "meta-llama/meta-llama-3.1-70b",
    "deepseek-ai/DeepSeek-R1": "deepseek-ai/DeepSeek-V3-Base",
    "deepseek-ai/DeepSeek-V3": "deepseek-ai/DeepSeek-V3-Base",
}
BITS = {"fp8": "fp8", "fp8_block": "fp8", "nvfp4": "fp4"}


def answer(genz, question):
    """(TTFT ms, TPOT ms)."""
    if question["mode"] != "agg":
        raise ValueError("it has no pools")
    if question["attention_dp"] > 1:
        raise ValueError("it has no attention data parallelism")
    if question["model_path"] not in KNOWN:
        raise ValueError("a model it does not know")
    tp, ep = question["tp"], question["moe_ep"]
    flop, memory, bandwidth, link = CHIPS[question["system"]]
    shared = {
        "model": KNOWN[question["model_path"]],
        "system_name": {"Flops": flop, "Memory_size": memory, "Memory_BW": bandwidth, "ICN": link, "real_values": True},
        "bits": BITS[question["moe_quant"]],
        "tensor_parallel": tp // ep,
        "expert_parallel": ep,
        "parallelism_hierarchy": f"TP{{{tp // ep}}}_EP{{{ep}}}_PP{{1}}",
    }
    batch, isl, osl = question["batch"], question["isl"], question["osl"]
    step = genz.decode_moddeling(batch_size=batch, Bb=1, input_tokens=isl, output_tokens=osl // 2, **shared)
    prompt = genz.prefill_moddeling(batch_size=1, input_tokens=isl, **shared)
    prefill_ms = prompt["Latency"]
    return prefill_ms, step["Latency"] + (batch - 1) / osl * prefill_ms


def main(source: str, file: str) -> None:
    """Answer every question, with the processor time it took."""
    warnings.simplefilter("ignore")
    sys.path.insert(0, source)
    import GenZ

    for question in questions_of(file):
        start = time.process_time()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                ttft_ms, tpot_ms = answer(GenZ, question)
            tell(id=question["id"], ttft_ms=ttft_ms, tpot_ms=tpot_ms, how="", cpu_s=time.process_time() - start)
        except Exception as error:
            tell(id=question["id"], refused=refusal(error).splitlines()[0][:90], cpu_s=time.process_time() - start)
    tell_memory()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
