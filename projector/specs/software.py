"""Software: what the training stack runs, where it changes cost or memory by more than a tuning detail."""

from typing import Literal

from pydantic import Field

from projector.specs.record import Record


class Software(Record):
    """Kernel generation of a framework. The default is a current stack: fused attention, no dropout.

    attention "unfused" writes the score matrix to memory (Megatron-LM and DeepSpeed up to 2022);
    dropout True keeps the dropout masks for the backward pass (GPT-2 and GPT-3 recipes);
    expert_dispatch "token" sends one copy of a token to a domain, which forwards it to the experts there (as DeepEP
    does), "expert" one copy to every expert wherever it is;
    expert_overlap True hides that exchange behind the compute of another micro-batch (DualPipe);
    host_factor multiplies the host's launch time: eager modules, element-wise kernels that are not fused, loss scaling.
    """

    attention: Literal["fused", "unfused"] = Field("fused", description="whether the score matrix reaches memory")
    dropout: bool = Field(False, description="whether dropout masks are applied and kept")
    expert_dispatch: Literal["token", "expert"] = Field("token", description="what crosses the network to experts")
    expert_overlap: bool = Field(False, description="whether compute hides the exchange of tokens with experts")
    host_factor: float = Field(1.0, gt=0, description="launch time beside that of a current stack")


CURRENT = Software()
# Engines send decoding tokens straight to every expert: hops matter more than bytes (DeepEP, low-latency kernels).
SERVING = Software(expert_dispatch="expert")
# host_factor: one number fitted on 1,260 single-node runs of vTrain (Megatron of 2022 on A100, 60 us a launch).
MEGATRON_2022 = Software(attention="unfused", dropout=True, host_factor=12.0)
