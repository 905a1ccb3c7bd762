"""StepWork: what one step of a serving engine works on."""

from dataclasses import dataclass, replace

from projector.graph.columns import Column


@dataclass(frozen=True)
class StepWork:
    """What one step of one attention rank works on (columns).

    decoding        requests that decode, `context` tokens behind each
    prompts         prompts whose chunk is in the step (0 in a pure decode step)
    chunk           prompt tokens of each, prompt: their whole length, chunks: how many chunks a prompt is cut into
    cached          prompt tokens that a prefix cache holds: they are read and not computed
    rows_each       rows of each decoding request: its last token, and the drafted ones that are verified with it
    """

    decoding: Column
    context: Column
    prompts: Column
    chunk: Column
    prompt: Column
    chunks: Column
    cached: Column | float = 0.0
    rows_each: Column | float = 1.0

    @property
    def decoded_rows(self) -> Column:
        """Rows of decoding requests."""
        return self.decoding * self.rows_each

    @property
    def tokens(self) -> Column:
        """Rows that pass the layers."""
        return self.decoded_rows + self.prompts * self.chunk

    def split(self, parts: Column) -> "StepWork":
        """One of so many equal parts of the step: fewer requests, and of prompts fewer rows of each."""
        return replace(self, decoding=self.decoding / parts, prompts=self.prompts / parts)
