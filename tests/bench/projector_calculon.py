"""Calculon's answers, run by the Python that has its packages: SOURCE QUESTIONS, JSON lines on stdout.

SOURCE QUESTIONS search: in place of answers what its own search takes for the plans of the questions.

Its shipped system files and their efficiency curves as they are; for a chip without a file the one of its family with
the memory size and bandwidth of the chip's datasheet. Ranks are placed as Megatron places them: tensor parallelism
innermost, then data, then pipeline. The capacity check is lifted and made here, so that what does not fit is told with
its time as ours is. Only the standard library and Calculon are imported.
"""

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from projector_child import questions_of, refusal, tell, tell_memory

# chip -> (file, whether memory size and bandwidth are put in)
SYSTEMS = {
    "a100-80-sxm": ("a100_80g.json", False),
    "a100-40-sxm": ("a100_80g.json", True),
    "h100-sxm": ("h100_80g_nvl8.json", False),
    "h100-sxm-96gb-hbm2e(500w)": ("h100_80g_nvl8.json", True),
    "h200": ("h100_80g_nvl8.json", True),
}
DTYPES = {"bf16": "float16", "fp16": "float16", "fp8": "float8"}
RECOMPUTE = {"none": "none", "selective": "attn_only", "full": "full"}
NODE = 8
# a capacity, in GiB, that no plan reaches
UNLIMITED_GIB = 10**9


class Unknown(Exception):
    """The question asks for something Calculon has no field for."""


def execution(question: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Calculon's execution fields for one plan, and what stands in for something it lacks."""
    refused = [name for name, is_on in _lacks(question).items() if is_on]
    if refused:
        raise Unknown(f"no field for {', '.join(refused)}")
    tp, pp, dp = question["tp"], question["pp"], question["dp"]
    sharded = question["fsdp"] > 1
    overlapped = question["overlap_tp"] and tp > 1
    fields = {
        "num_procs": tp * pp * dp,
        "tensor_par": tp,
        "pipeline_par": pp,
        "data_par": dp,
        "tensor_par_net": int(tp > NODE),
        "data_par_net": int(tp * dp > NODE),
        "pipeline_par_net": int(tp * dp * pp > NODE),
        "batch_size": question["global_batch"],
        "microbatch_size": question["micro_batch"],
        "datatype": DTYPES[question["dtype"]],
        "fused_activation": False,  # as in its own files for Megatron-LM
        "attention_type": "multihead",
        "activation_recompute": RECOMPUTE[question["recompute"]],
        "pipeline_interleaving": question["vp"],
        "optimizer_sharding": dp > 1 and (sharded or question["zero_stage"] > 0),
        "tensor_par_comm_type": "rs_ag" if question["sp"] else "ar",
        "tensor_par_overlap": "ring" if overlapped else "none",
        "seq_par_ag_redo": question["sp"] and question["recompute"] != "full",
        "data_par_overlap": dp > 1 and (sharded or question["overlap_data"]),
        "weight_offload": False,
        "activations_offload": False,
        "optimizer_offload": False,
        "training": True,
    }
    stand_ins = {
        "a gated MLP as a plain one of 1.5 times the width": question["gated"],
        "grouped keys and values as one for each head": question["kv_heads"] < question["heads"],
        "sharded weights as a sharded optimizer with overlapped exchange": sharded,
    }
    return fields, [name for name, is_used in stand_ins.items() if is_used]


def application(question: dict[str, Any]) -> dict[str, int]:
    """Calculon's description of the model."""
    return {
        "hidden": question["hidden"],
        "feedforward": question["mlp_width"] * 3 // 2 if question["gated"] else question["mlp_width"],
        "seq_size": question["seq_len"],
        "attn_heads": question["heads"],
        "attn_size": question["head_dim"],
        "num_blocks": question["layers"],
    }


def _lacks(question: dict[str, Any]) -> dict[str, bool]:
    return {
        **{name.replace("_", " "): True for name in question["beyond"]},
        "context parallelism": question["cp"] > 1,
        "expert parallelism": question["ep"] > 1,
        f"dtype {question['dtype']}": question["dtype"] not in DTYPES,
        f"recompute {question['recompute']}": question["recompute"] not in RECOMPUTE,
        f"schedule {question['schedule']}": question["schedule"] not in ("1f1b", "interleaved"),
    }


def system_of(question: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The system file of a chip, its datasheet's memory put in where the file is a relative's."""
    name, derived = SYSTEMS[question["chip"]]
    values: dict[str, Any] = json.loads((folder / name).read_text())
    if derived:
        values["mem1"] |= {"GiB": question["hbm_bytes"] / 2**30, "GBps": question["hbm_bytes_per_s"] / 1e9}
    return values


def search(questions: list[dict[str, Any]], source: Path) -> None:
    """The CPU seconds of the loop of its `llm-all-executions` over these plans, of one model and chip."""
    from calculon.llm import Llm  # type: ignore[import-not-found]
    from calculon.llm.all_executions import AllExecutions  # type: ignore[import-not-found]
    from calculon.system import System  # type: ignore[import-not-found]

    system = System(system_of(questions[0], source / "systems"))
    plans = [tuple(execution(one)[0][name] for name in Llm.Execution.fields()) for one in questions]
    before = time.process_time()
    good = AllExecutions.search(Llm.Application(application(questions[0])), system, plans)
    tell(plans=len(plans), good=len(good), cpu_s=time.process_time() - before)


def answers(questions: list[dict[str, Any]], source: Path) -> None:
    """A line for each question. Its debug records, which its own search builds and drops, are switched off."""
    from calculon.llm import Llm
    from calculon.system import System

    log = logging.Logger("calculon", logging.CRITICAL)
    systems: dict[str, tuple[Any, float]] = {}
    for question in questions:
        if question["chip"] not in systems:
            values = system_of(question, source / "systems")
            capacity = values["mem1"]["GiB"] * 2**30
            values["mem1"]["GiB"] = UNLIMITED_GIB
            systems[question["chip"]] = System(values), capacity
        system, capacity = systems[question["chip"]]
        answer: dict[str, Any] = {}
        before = time.process_time()
        try:
            fields, stand_ins = execution(question)
            model = Llm(Llm.Application(application(question)), log)
            model.compile(system, Llm.Execution.from_json(fields))
            model.run(system)
            bytes_ = model.get_mem_tier1_cap_req()
            answer = {"time_s": model.get_total_time(), "bytes": bytes_, "fits": bytes_ <= capacity}
            answer["stand_ins"] = stand_ins
        except Exception as error:
            answer = {"refused": refusal(error)}
        answer["cpu_s"] = time.process_time() - before
        tell(row=question["row"], tokens=question["tokens"], **answer)


def main(source: str, asked: str, task: str = "answers") -> None:
    """Answer every question of a file, or search over their plans."""
    sys.path.insert(0, source)
    import calculon  # type: ignore[import-not-found]  # noqa: F401

    questions = questions_of(asked)
    (search if task == "search" else answers)(questions, Path(source))
    tell_memory()


if __name__ == "__main__":
    main(*sys.argv[1:])
