"""What the trace of one rank implies about its hardware, mesh, phase and model, with confidence and basis."""

from traces.facts import Facts
from traces.implied_types import Implied, ModelShapes
from traces.infer_dtype import dtype, weight_dtype
from traces.infer_hardware import chip_name, devices_per_host, hbm_bytes
from traces.infer_job import framework, phase, transformer_lm
from traces.infer_mesh import Mesh, mesh
from traces.infer_model import model_shapes


def imply_rank(facts: Facts) -> tuple[Implied, Mesh]:
    """Findings of one rank; None stands where its trace does not say.

    Shapes are read only of what is, or may be, a transformer language model.
    """
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
            fsdp=found.fsdp,
            pp=found.pp,
            cp=found.cp,
            ep=found.ep,
            sp=found.sp,
            unresolved=found.unresolved,
            phase=kind_of_job,
            is_transformer_lm=transformer,
            shapes=model_shapes(facts) if is_transformer else ModelShapes(),
            dtype=dtype(facts),
            weight_dtype=weight_dtype(facts),
            framework=framework(facts),
        ),
        found,
    )
