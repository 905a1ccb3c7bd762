"""What is asked of a simulation, and the answer."""

from pydantic import Field

from agents.request_logs import BLOCK_TOKENS
from projector.simulation.fleet import Routing
from projector.simulation.statistics import SimulationResult
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.record import MOST_TOKENS, Record
from projector.specs.slo import Slo
from projector.specs.workload import WorkloadSpec

# of one answer of the service: seconds of one core
MOST_REQUESTS = 20_000


class RecordedLog(Record):
    """A recorded request log: its text, and prompt tokens a hash of it stands for."""

    text: str = Field(description="JSONL as Mooncake's traces, or CSV with a header; as large as a request may be")
    block_tokens: int = Field(BLOCK_TOKENS, ge=1, le=MOST_TOKENS, description="tokens a hash of a JSONL log stands for")


class SimulationRequest(Record):
    """One plan under one traffic. With a log the workload needs its phase and model alone."""

    workload: WorkloadSpec
    architecture: ModelArchitecture | None = Field(None, description="an own model, in place of workload.model")
    cluster: ClusterSpec
    plan: ParallelismPlan
    requests: int | None = Field(None, ge=1, le=MOST_REQUESTS, description="requests measured; None: 2,000")
    warmup_requests: int | None = Field(
        None, ge=0, le=MOST_REQUESTS, description="requests simulated before; None: by the kind of arrivals"
    )
    seed: int = Field(0, ge=0, lt=2**32, description="the same seed gives the same answer to the last bit")
    routing: Routing = Field("least_loaded", description="which engine a request goes to")
    slo: Slo = Slo()
    log: RecordedLog | None = Field(None, description="recorded requests, in place of drawn ones")


class SimulationAnswer(Record):
    """A plan with what its requests saw."""

    plan: ParallelismPlan
    workload: WorkloadSpec
    cluster: ClusterSpec
    result: SimulationResult
