"""What is worth writing into a file of each format: words of its own, one a line, for the fuzzer's dictionary."""

from typing import Final

_EVENTS: Final = r"""
"ph": "X"
"ph": "M"
"ph": "i"
"cat": "kernel"
"cat": "cpu_op"
"cat": "cuda_runtime"
"ts":
"dur":
"cat": "gpu_memcpy"
"cat": "user_annotation"
"args": {
"External id":
"correlation":
"Collective name":
"Process Group Ranks": "[0, 1]"
"Input Dims": [[
"traceEvents": [
"distributedInfo": {
]}
"name":
"deviceProperties": [
\ud800
\q
NaN
1712195495505582.988
ProfilerStep#
ncclDevKernel_
aten::mm
"""

_LISTED: Final[dict[str, str]] = {
    "kineto": _EVENTS,
    "jax_chrome": _EVENTS
    + r"""
process_name
thread_name
/device:TPU:0
/host:CPU
XLA Ops
Steps
hlo_category
model_flops
bytes_accessed
all-gather-start
all-gather-done
while
tf_XLAEigen/
""",
    "xplane": r"""
/device:TPU:0
/device:GPU:0
/host:CPU
XLA Ops
Async XLA Ops
Steps
hlo_category
all-reduce
while
send
recv-done
flops
bytes_accessed
memory_access_breakdown
device_offset_ps
group_id
""",
    "nsys": r"""
CUPTI_ACTIVITY_KIND_KERNEL
CUPTI_ACTIVITY_KIND_MEMCPY_V2
StringIds
NVTX_EVENTS
EXPORT_SCHEMA_VERSION
3.25.0
globalPid
demangledName
CREATE TABLE
INTEGER PRIMARY KEY
WITHOUT ROWID
GENERATED ALWAYS AS
""",
    "chakra": r"""
0.0.4
schema
comm_type
comm_size
pg_name
is_cpu_op
involved_dim
## process_group:init ##
stream
""",
    "chakra_json": r"""
"workload_graph": [
"nodes": [
"schema": "
"start_time_micros":
"inclusive_dur":
""",
    "execution_trace": r"""
"nodes": [
"schema": "1.1.1
"attrs": [
"rf_id"
"ctrl_deps"
record_param_comms
Tensor(float)
GenericList[
## process_group:init ##
"shapes": [
"values": [
""",
    "archive": "ustar\nPK\x03\x04\nPK\x01\x02\nPK\x05\x06\npath=",
    "summary": r"""
"shardwise_summary": 1
"ranks":
"window_ns":
""",
    "rules": r"""
[[rule]]
table = 
meaning = 
pattern = 
examples = [
"kind"
"gemm"
{0,30}
(?=
(?:
|
'''
""",
    "job": _EVENTS,
}

WORDS: Final = {name: tuple(word for word in listed.split("\n") if word) for name, listed in _LISTED.items()}
"""Words by target; a target that is not here has none."""
