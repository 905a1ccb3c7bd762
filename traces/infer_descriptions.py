"""Which parallelism axes a process group spans, by the description its trainer registered it under."""

import re
from typing import Final, Literal

from projector.breakdown import Axis
from traces.rules.rule import LONGEST_NAME

Degree = Literal["tp", "dp", "fsdp", "replicate", "pp", "cp", "ep"]
"""dp is all data parallelism: fsdp ranks share the weights, replicate of those repeat them; dp = fsdp * replicate."""

# Words of Megatron-LM (TENSOR_MODEL_PARALLEL_GROUP), of DeviceMesh dimensions as torchtitan names them (mesh_dp_shard),
# and of vLLM (tp:0). The first that is found decides; () is a group that spans something else.
_SPANS: Final[tuple[tuple[tuple[Degree, ...], str], ...]] = (
    ((), r"embedding|hierarchical|partial|hybrid_dp|remat|optimizer_instance|weight_gradient"),
    ((), r"expert_(?:tensor|data)|efsdp|etp(?:$|[_:0-9])|_(?:mod|in)_ep"),
    (("ep",), r"(?:^|[_:])ep(?:$|[_:0-9])|expert"),
    (("tp", "dp", "cp"), r"tensor_and_data\w{0,30}with_cp"),
    (("tp", "dp"), r"tensor_and_data"),
    (("tp", "cp"), r"tensor_and_context|(?:^|[_:])tp_cp(?:$|[_:0-9])"),
    (("tp", "pp"), r"^model_parallel"),
    (("dp", "cp"), r"data_parallel\w{0,30}with_cp|(?:^|[_:])dp_cp(?:$|[_:0-9])|mesh_loss"),
    (("fsdp", "cp"), r"dp_shard_cp"),
    ((), r"_and_|with_cp"),
    (("replicate",), r"dp_replicate"),
    (("fsdp",), r"dp_shard|fsdp"),
    (("tp",), r"(?:^|[_:])tp(?:$|[_:0-9])|tensor_model_parallel|tensor_parallel"),
    (("pp",), r"(?:^|[_:])pp(?:$|[_:0-9])|pipeline"),
    (("cp",), r"(?:^|[_:])cp(?:$|[_:0-9])|context_parallel"),
    (("dp",), r"(?:^|[_:])dp(?:$|[_:0-9])|data_parallel|mesh_batch"),
)
_PATTERNS: Final = tuple((spans, re.compile(pattern, re.IGNORECASE)) for spans, pattern in _SPANS)


def spanned(description: str) -> tuple[Degree, ...]:
    """Axes a group of that description spans; () where it names none, or something that is no product of them."""
    return next((spans for spans, pattern in _PATTERNS if pattern.search(description, 0, LONGEST_NAME)), ())


def described_axis(description: str) -> Axis | None:
    """The one axis a description names; None where it names none or several."""
    spans = spanned(description)
    if len(spans) != 1:
        return None
    return "dp" if spans[0] == "replicate" else spans[0]
