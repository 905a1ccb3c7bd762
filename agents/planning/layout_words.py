"""Axes of a layout in words."""

AXES = {
    "tp": "tensor parallelism",
    "cp": "context parallelism",
    "pp": "pipeline parallelism",
    "ep": "expert parallelism",
    "fsdp": "weight sharding",
    "dp": "data parallelism",
}
