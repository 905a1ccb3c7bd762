"""WorkloadSpec: what is computed, apart from how it is laid out."""

from typing import Literal, Self

from pydantic import Field, model_validator

from projector.specs.fine_tuning import Adapter
from projector.specs.plan import ComputeDtype, Phase
from projector.specs.record import MOST_SEQUENCES, MOST_TOKENS, Record
from projector.specs.sequence_lengths import SequenceLengths

# beyond them figures overflow and no engine lives: a request in eleven days, one a nanosecond, all tokens to one of
# more expert ranks than any fleet has
LEAST_RATE_PER_S, MOST_RATE_PER_S = 1e-6, 1e9
MOST_IMBALANCE = 1e5
Arrivals = Literal["closed", "poisson", "deterministic"]


class WorkloadSpec(Record):
    """Model, phase, sizes and precision of one job. What is None is unknown and must be inferred or assumed aloud.

    Training: global_batch sequences of seq_len tokens a step.
    Serving: requests of input_len prompt and output_len new tokens in the mean, `concurrency` of them in flight over
    the fleet (a closed loop) or request_rate_per_s arriving whether or not others are done (an open one, at random
    unless `arrivals` says otherwise); with a rate, concurrency is the most that may run.
    """

    phase: Phase = "training"
    model: str | None = Field(None, description="catalogue name of the model; None: unknown")
    seq_len: int | None = Field(None, ge=1, le=MOST_TOKENS, description="tokens a training sequence")
    global_batch: int | None = Field(
        None, ge=1, le=MOST_SEQUENCES, description="sequences a training step over all devices"
    )
    input_len: int | None = Field(None, ge=1, le=MOST_TOKENS, description="prompt tokens a request")
    output_len: int | None = Field(None, ge=1, le=MOST_TOKENS, description="generated tokens a request")
    concurrency: int | None = Field(
        None, ge=1, le=MOST_SEQUENCES, description="requests in flight over the whole fleet"
    )
    request_rate_per_s: float | None = Field(
        None, ge=LEAST_RATE_PER_S, le=MOST_RATE_PER_S, description="requests that arrive a second over the fleet"
    )
    arrivals: Arrivals | None = Field(
        None, description="closed: a new request follows a finished one; poisson, deterministic: at request_rate_per_s"
    )
    length_spread_frac: float | None = Field(
        None, ge=0, lt=1, description="lengths are uniform within this share around their means; None: all alike"
    )
    prefix_hit_frac: float | None = Field(
        None, ge=0, lt=1, description="share of prompt tokens whose keys and values a cache holds; None: none"
    )
    draft_acceptance_frac: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="chance that a drafted token is accepted, given those before it; None: the drafter's",
    )
    expert_imbalance: float | None = Field(
        None, ge=1, le=MOST_IMBALANCE, description="tokens of the busiest expert rank over the mean; None: the stack's"
    )
    requests_per_slot: float | None = Field(
        None,
        ge=1,
        le=MOST_SEQUENCES,
        description="a run of so many requests for each in flight, all seats taken at once, and means over the "
        "whole run; None: steady state",
    )
    engine: str | None = Field(
        None, description='serving: engine software and its release, e.g. "vllm 0.19"; None: none in particular'
    )
    precision: ComputeDtype = "bf16"
    adapter: Adapter | None = Field(
        None, description="training: low-rank adapters on frozen weights (LoRA, QLoRA); None: all weights are trained"
    )
    lengths: SequenceLengths | None = Field(
        None, description="training: documents shorter than the rows, packed or padded; None: a row is one document"
    )

    @property
    def sequence_tokens(self) -> int | None:
        """Tokens of the longest sequence: seq_len, or input_len + output_len; None where a size is unknown."""
        if self.phase == "training":
            return self.seq_len
        if self.input_len is None or self.output_len is None:
            return None
        return self.input_len + self.output_len

    @model_validator(mode="after")
    def _keys_match_phase(self) -> Self:
        training_only = {
            "seq_len": self.seq_len,
            "global_batch": self.global_batch,
            "adapter": self.adapter,
            "lengths": self.lengths,
        }
        serving_only = {
            "input_len": self.input_len,
            "output_len": self.output_len,
            "concurrency": self.concurrency,
            "request_rate_per_s": self.request_rate_per_s,
            "arrivals": self.arrivals,
            "length_spread_frac": self.length_spread_frac,
            "prefix_hit_frac": self.prefix_hit_frac,
            "draft_acceptance_frac": self.draft_acceptance_frac,
            "expert_imbalance": self.expert_imbalance,
            "requests_per_slot": self.requests_per_slot,
            "engine": self.engine,
        }
        foreign = serving_only if self.phase == "training" else training_only
        given = [key for key, value in foreign.items() if value is not None]
        if given:
            raise ValueError(f"{', '.join(given)} has no meaning in a {self.phase} workload")
        return self

    @model_validator(mode="after")
    def _arrivals_agree(self) -> Self:
        open_loop = self.request_rate_per_s is not None
        if open_loop and self.arrivals == "closed":
            raise ValueError(
                "request_rate_per_s has no meaning with closed arrivals; they are poisson or deterministic"
            )
        if not open_loop and self.arrivals in ("poisson", "deterministic"):
            raise ValueError(f"{self.arrivals} arrivals come at a rate: state request_rate_per_s")
        if open_loop and self.requests_per_slot is not None:
            raise ValueError("requests_per_slot is of a closed loop; requests that arrive at a rate have no slots")
        return self

    @model_validator(mode="after")
    def _documents_fit_their_rows(self) -> Self:
        if self.lengths is not None and self.seq_len is not None and self.lengths.mean_tokens > self.seq_len:
            mean = f"{self.lengths.mean_tokens:g}"
            raise ValueError(f"documents of {mean} tokens in the mean do not fit rows of seq_len {self.seq_len}")
        return self
