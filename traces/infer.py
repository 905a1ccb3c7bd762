"""What the traces of one job imply about its hardware, mesh, phase and model, with confidence and basis."""

from collections.abc import Sequence

from traces.facts import Facts
from traces.infer_dtype import dtype, weight_dtype
from traces.infer_hardware import chip_name, devices_per_host, hbm_bytes
from traces.infer_job import framework, phase, transformer_lm
from traces.infer_mesh import Mesh, mesh
from traces.infer_model import model_shapes
from traces.summary_types import Implied, ModelShapes


def imply(all_facts: Sequence[Facts]) -> tuple[Implied, Mesh]:
    """Findings from the trace that shows most, ranks of a job being alike; None stands where it does not say.

    Shapes are read only of what is, or may be, a transformer language model.
    """
    facts = max(all_facts, key=lambda one: len(one.trace))
    trace = facts.trace
    transformer = transformer_lm(facts)
    kind_of_job = phase(facts, transformer)
    found = mesh(facts, kind_of_job)
    is_transformer = transformer is not None and transformer.value
    return (
        Implied(
            chip_name=chip_name(trace.metadata, trace.device_index),
            devices_per_host=devices_per_host(trace.metadata),
            hbm_bytes=hbm_bytes(trace.metadata, trace.device_index),
            world_size=found.world_size,
            groups=found.groups,
            tp=found.tp,
            dp=found.dp,
            pp=found.pp,
            ep=found.ep,
            phase=kind_of_job,
            is_transformer_lm=transformer,
            shapes=model_shapes(facts) if is_transformer else ModelShapes(),
            dtype=dtype(facts),
            weight_dtype=weight_dtype(facts),
            framework=framework(facts),
        ),
        found,
    )
