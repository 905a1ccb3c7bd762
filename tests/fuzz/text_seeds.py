"""Seeds that are text: traces of Kineto and of the JAX viewer, execution traces, summaries, rules."""

import json
from typing import Any, Final

from tests.unit.execution_trace import et_examples as et
from tests.unit.traces.trace_examples import (
    Event,
    annotation,
    device_annotation,
    document,
    external,
    kernel,
    launch,
    memcpy,
    memset,
    op,
    trace_of,
)
from traces.stored.document import document_of
from traces.summary import summarise

_COLLECTIVE: Final = {
    "Collective name": "allreduce",
    "In msg nelems": 4096,
    "Out msg nelems": 4096,
    "Group size": 2,
    "dtype": "BFloat16",
    "Process Group Name": "0",
    "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1]",
    "Seq": 3,
}
_OUTER: Final = {
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_000_000_000, "numSms": 132}],
    "distributedInfo": {
        "rank": 0,
        "world_size": 2,
        "backend": "nccl",
        "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]}],
    },
    "record_shapes": 1,
    "traceName": "rank0.json",
    "baseTimeNanoseconds": 1_712_195_000_000_000_000,
}


def _steps() -> tuple[Event, ...]:
    shapes = {"Input Dims": [[4, 8], [8, 16]], "Input type": ["float", "float"], "Record function id": 7}
    return (
        annotation("ProfilerStep#1", 0, 100),
        annotation("ProfilerStep#2", 100, 100),
        op("aten::mm", 1, 9, **external(1), **shapes),
        launch(1, 2, **external(1)),
        op("c10d::allreduce_", 12, 9, **external(2)),
        launch(2, 13),
        launch(3, 110),
        kernel("nvjet_tst_128x64", 10, 40, correlation=1, **external(1)),
        kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 40.125, 30, stream=20, correlation=2, **_COLLECTIVE),
        kernel("void flash_fwd_kernel<64>(Params)", 120, 50, correlation=3),
        memcpy(80, 5, bytes=4096),
        memset(90, 1, bytes=64),
        device_annotation("ProfilerStep#1", 10, 80),
        annotation("execute_3_context_1(sq5sk5)_generation_2", 150, 20),
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "ts": 3,
            "pid": 1,
            "tid": 1,
            "args": {"Device Type": 1, "Device Id": 0, "Total Allocated": 1 << 20},
        },
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 1, "tid": 1, "ts": 2},
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "python"}},
        {"ph": "X", "cat": "python_function", "name": "main.py(1): main", "pid": 1, "tid": 1, "ts": 0, "dur": 200},
    )


def kineto_seeds() -> tuple[bytes, ...]:
    whole = json.dumps(document(*_steps(), **_OUTER), indent=2).encode()
    old = {"ph": "X", "name": "volta_sgemm", "pid": 0, "tid": "stream 7", "ts": 5, "dur": 9}
    old_host = {**old, "cat": "Operator", "name": "aten::mm", "tid": "1", "pid": "7", "args": {"external id": 3}}
    of_2021 = [{**old, "cat": "Kernel", "args": {"external id": 3, "correlation": 1}}, old_host]
    odd = b'{"traceEvents": [\n{"ph": "X", "cat": "kernel", "name": "C:\\qml\\a", "ts": 1, "dur": NaN},\n'
    odd += b'{"ph": "X", "cat": "kernel", "name": "say "hi"", "ts": "1712195495505582.988", "dur": "1.5"},\n'
    return (
        whole,
        json.dumps(document(*_steps()[:8])).encode(),
        json.dumps(of_2021).encode(),
        odd + json.dumps(kernel("last\xff", 3, 4)).encode("latin-1", "replace") + b'\n],\n"traceName": "x"}',
        json.dumps({"traceEvents": [kernel("k", 1, 2), {"args": {"a": [[1]]}, **op("aten::mm", 1, 2)}]}).encode(),
        whole[:700],
    )


def jax_chrome_seeds() -> tuple[bytes, ...]:
    def name(pid: int, what: str, text: str, tid: int = 0) -> dict[str, Any]:
        return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": text}}

    fusion = {
        "hlo_category": "convolution fusion",
        "model_flops": "1000",
        "bytes_accessed": "64",
        "long_name": "%f = f32[]",
    }
    tpu = [
        name(3, "process_name", "/device:TPU:0 (pid 3)"),
        name(3, "thread_name", "Steps", 1),
        name(3, "thread_name", "XLA Ops", 2),
        {"ph": "X", "pid": 3, "tid": 1, "name": "4", "ts": 0, "dur": 1.0},
        {"ph": "X", "pid": 3, "tid": 2, "name": "fusion.1", "ts": 0, "dur": 0.600123, "args": fusion},
        {
            "ph": "X",
            "pid": 3,
            "tid": 2,
            "name": "all-reduce.1",
            "ts": 0.7,
            "dur": 0.2,
            "args": {"hlo_category": "all-reduce"},
        },
        {},
    ]
    gpu = [
        name(1, "process_name", "/device:GPU:0"),
        name(1, "thread_name", "Stream #3(Kernel)", 3),
        {
            "ph": "X",
            "pid": 1,
            "tid": 3,
            "name": "loop_fusion",
            "ts": 1,
            "dur": 2,
            "args": {"correlation_id": 1, "hlo_op": "f.1"},
        },
        name(2, "process_name", "/host:CPU"),
        name(2, "thread_name", "tf_XLAEigen/1", 9),
        {
            "ph": "X",
            "pid": 2,
            "tid": 9,
            "name": "dot.3",
            "ts": 1,
            "dur": 5,
            "args": {"hlo_op": "dot.3", "hlo_module": "jit_f"},
        },
    ]
    return tuple(
        json.dumps({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}).encode()
        for events in (tpu, gpu, tpu + gpu)
    )


def chakra_json_seeds() -> tuple[bytes, ...]:
    one = {"Id": 4, "Name": "gemm", "NodeType": 4, "ctrlDeps": [3], "data_deps": [], "runtime": 28, "is_cpu_op": False}
    timed = {**one, "start_time_micros": 7, "stream": 3}
    spelled = {"id": "5", "name": "all", "type": "COMM_COLL_NODE", "startTimeMicros": "9", "durationMicros": "28"}
    collective = {**spelled, "isCpuOp": False, "comm_type": 0, "commSize": 64, "pg_name": "2"}
    operator = et.node(3, "aten::mm", et.tensor([4, 8]), et.tensor([8, 16]), ts=5182289779064.439, inclusive_dur=45.425)
    ran = {**operator, "id": 900, "name": "nvjet_tst", "cat": "kernel", "stream": 7, "ctrl_deps": operator["id"]}
    return (
        json.dumps({"workload_graph": [timed, collective], "ngpus": 8}, indent=2).encode(),
        json.dumps({"workload_graph": [one]}).encode(),
        et.document(operator, ran, et.node(4, "aten::never_seen", et.tensor([4]))),
    )


def execution_trace_seeds() -> tuple[bytes, ...]:
    group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "ranks": [0, 1], "group_size": 2}
    none: et.Operand = ("GenericList[]", [], [])
    inputs = (et.tensors([64]), et.number(7), ("Tuple[String,String]", [[], []], ["0", "default_pg"]), et.number(0))
    tail = (et.text("allreduce"), none, none, et.number(0), et.number(1), et.number(2))
    nodes = (
        et.groups_node(group),
        et.node(7, "aten::mm", et.tensor([4, 8]), et.tensor([8, 16]), strides=[[8, 1], [16, 1]]),
        et.node(8, "aten::cat", et.tensors([4], [5]), et.integers(1, 2)),
        et.node(9, "record_param_comms", *inputs, *tail, outputs=(et.tensors([64]),)),
    )
    old = json.loads(et.document(schema="1.0.1").decode() or "{}")
    old["nodes"] = [et.old_node(7, "aten::mm", et.tensor([4, 8])), et.old_node(8, "aten::relu", et.tensor([4]))]
    return et.document(*nodes, pid=100), json.dumps(old).encode(), et.document(*nodes)[:-60]


def summary_seeds() -> tuple[bytes, ...]:
    summary = summarise([trace_of(*_steps(), **_OUTER)])
    host = summarise([trace_of(op("aten::mm", 0, 5), op("aten::add", 7, 1))])
    return tuple(
        document_of(one, redacted=redacted).model_dump_json().encode()
        for one, redacted in ((summary, False), (host, True))
    )


def rules_seeds() -> tuple[bytes, ...]:
    whole = """# rules of our own
[[rule]]
table = "kind"
meaning = "gemm"
id = "ours"
pattern = '^acme_(mm|gemm)[a-z0-9_]{0,30}$'
examples = ["acme_mm_128", 'acme_gemm']
not_examples = ["acme_conv"]
source = "our compiler"

[[rule]]
table = "host_communication"
meaning = "all_reduce"
id = "host-sum"
pattern = 'acme::sum'
examples = ["acme::sum_all"]
"""
    return whole.encode(), whole.partition('[[rule]]\ntable = "host')[0].encode(), b'rule = [{id = "a"}]'
