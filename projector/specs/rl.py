"""A step of reinforcement learning on generated responses, and the two plans it is laid out by."""

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from projector.specs.plan import Dtype, ParallelismPlan
from projector.specs.record import MOST_SEQUENCES, MOST_TOKENS, Record
from projector.specs.sequence_lengths import SequenceLengths
from projector.specs.workload import WorkloadSpec


class RlStep(Record):
    """What one step computes, for GRPO (arXiv:2402.03300), PPO (arXiv:1707.06347) and their kin.

    Engines generate `samples` responses to each of `prompts` prompts; the trainer runs forward passes over all of them
    and then `updates` optimizer steps on an equal share each; the new weights go to the engines.

    row_tokens, rows   rows the trainer works on, as `SequenceLengths`: sequences packed into them, or padded to them
    longest_response   the cut-off of a response; None: all responses are as long as the mean
    old_log_probs      the trainer computes the log-probabilities of the policy that generated
    reference          and those of a frozen reference policy of the same size
    reward_model       and rewards by a model of the same size (False: rewards are rules, which cost nothing here)
    critic             a value model of the same size runs forward and is trained too (PPO)
    """

    prompts: int = Field(ge=1, le=MOST_SEQUENCES, description="distinct prompts a step")
    samples: int = Field(1, ge=1, le=MOST_SEQUENCES, description="responses to each prompt")
    prompt_tokens: float = Field(gt=0, le=MOST_TOKENS, description="mean length of a prompt")
    response_tokens: float = Field(ge=1, le=MOST_TOKENS, description="mean length of a response")
    longest_response: float | None = Field(None, ge=1, le=MOST_TOKENS, description="cut-off of a response")
    updates: int = Field(1, ge=1, le=MOST_SEQUENCES, description="optimizer steps on the responses of a step")
    row_tokens: int = Field(ge=1, le=MOST_TOKENS, description="tokens of a row the trainer works on")
    rows: Literal["packed", "padded"] = Field("packed", description="how sequences fill those rows")
    old_log_probs: bool = True
    reference: bool = True
    reward_model: bool = False
    critic: bool = False
    precision: Dtype = "bf16"

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        if self.longest_response is not None and self.longest_response < self.response_tokens:
            raise ValueError(
                f"longest_response {self.longest_response:g} is below response_tokens {self.response_tokens:g}"
            )
        if self.sequence_tokens > self.row_tokens:
            raise ValueError(f"sequences of {self.sequence_tokens:g} tokens do not fit rows of {self.row_tokens}")
        if self.responses % self.updates:
            raise ValueError(f"updates {self.updates} does not divide the {self.responses} responses of a step")
        return self

    @property
    def responses(self) -> int:
        """Responses a step."""
        return self.prompts * self.samples

    @property
    def sequence_tokens(self) -> float:
        """Mean tokens of a prompt with its response."""
        return self.prompt_tokens + self.response_tokens

    @property
    def tokens(self) -> float:
        """Tokens of all prompts and responses."""
        return self.responses * self.sequence_tokens

    @property
    def forward_passes(self) -> int:
        """Passes over all sequences that train nothing."""
        return sum((self.old_log_probs, self.reference, self.reward_model, self.critic))

    @property
    def trained_models(self) -> int:
        """Models an update trains."""
        return 2 if self.critic else 1

    def row_count(self, responses: int) -> int:
        """Rows so many sequences fill."""
        if self.rows == "padded":
            return responses
        return math.ceil(responses * self.sequence_tokens / self.row_tokens)

    def micro_batches(self, plan: ParallelismPlan, responses: int) -> int:
        """Micro-batches a data rank of the plan needs for so many sequences; the last may be short of rows."""
        return math.ceil(self.row_count(responses) / (plan.dp * plan.micro_batch))

    def rows_of(self, plan: ParallelismPlan) -> WorkloadSpec:
        """The plan's optimizer step as a training workload of its own."""
        lengths = SequenceLengths(rows=self.rows, mean_tokens=self.sequence_tokens)
        return WorkloadSpec(
            seq_len=self.row_tokens,
            global_batch=plan.dp * plan.micro_batch * plan.grad_accum,
            precision=self.precision,
            lengths=lengths,
        )


class RlPlan(Record):
    """How a step is laid out: the trainer by one plan, the engines that generate by another.

    placement "colocated": both use all devices, one after the other, and the states of the one wait in host memory;
    "separate": each has devices of its own.
    steps_off_policy   how many steps the engines may be ahead of the trainer: 0 means that each waits for the other,
                       1 and more that separate pools work at once
    """

    training: ParallelismPlan
    rollout: ParallelismPlan
    placement: Literal["colocated", "separate"] = "colocated"
    steps_off_policy: int = Field(0, ge=0, le=MOST_SEQUENCES)

    @model_validator(mode="after")
    def _plans_agree(self) -> Self:
        if (self.training.phase, self.rollout.phase) != ("training", "serving"):
            raise ValueError("an RL plan has a training plan and, for the rollout, a serving plan")
        if self.placement == "separate":
            return self
        if self.steps_off_policy:
            raise ValueError("colocated phases cannot run at once: steps_off_policy needs placement separate")
        if self.training.devices != self.rollout.devices:
            raise ValueError(
                f"colocated plans occupy the same devices, not {self.training.devices} and {self.rollout.devices}"
            )
        return self

    @property
    def devices(self) -> int:
        """Devices of the whole job."""
        both = self.training.devices + self.rollout.devices
        return both if self.placement == "separate" else self.training.devices
