"""The base of every record that crosses HTTP, YAML or the database."""

from typing import Final

from pydantic import BaseModel, ConfigDict

# beyond any machine and job that exists; products of two of them still fit 64-bit columns
MOST_DEVICES: Final = 2**20
MOST_SEQUENCES: Final = 2**24
MOST_TOKENS: Final = 2**26
MOST_WIDTH: Final = 2**24


class Record(BaseModel):
    """Frozen, strict about unknown keys, without NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
