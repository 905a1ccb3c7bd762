"""Memory that the kernels of an exchange with experts keep."""

import numpy as np

from projector.graph.columns import Column
from projector.graph.scope import Scope
from projector.specs.plan_batch import PlanBatch

# Places for every token a rank may send and receive, and both again: one exchange fills them while another is read.
LOW_LATENCY_BUFFERS = 4.0


def low_latency_bytes(batch: PlanBatch, scope: Scope) -> Column:
    """Bytes of the buffers of DeepEP's low-latency kernels on a rank, shape [n]; 0 where tokens go another way.

        4 experts rows features 2 bytes

    rows: the most tokens a rank decodes, drafted ones included. A place for each of them at every expert, whether it is
    sent there or not, so that nobody has to ask first: DeepEP's own size hint (csrc/config.hpp).
    """
    model = scope.model
    sends = (batch.expert_dispatch == "deepep") & (scope.ep > 1) & (scope.ep * scope.etp > scope.tp)
    if not model.is_moe or not sends.any():
        return scope.zero
    rows = np.ceil(batch.max_num_seqs / batch.attention_dp) * (1 + batch.speculative_tokens)
    held: Column = sends * LOW_LATENCY_BUFFERS * model.experts * rows * model.expert_features * 2.0
    return held
