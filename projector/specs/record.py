"""The base of every record that crosses HTTP, YAML or the database."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Frozen, strict about unknown keys, without NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
