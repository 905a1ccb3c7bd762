"""Settings: the one way to configure the service, from SHARDWISE_* environment variables."""

import os
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import InvalidSettings
from projector.errors import UnknownName

PREFIX = "SHARDWISE_"
DATABASE_SCHEMES = ("sqlite+aiosqlite://", "postgresql+asyncpg://")
# read by `make check-samples` and `make local-llm`, no settings
READ_BY_CHECKS = frozenset({"SHARDWISE_SHARED", "SHARDWISE_LOCAL_LLM"})


class Settings(BaseSettings):
    """Where state lives, where the service listens, and what it refuses."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    data_dir: Path = Field(
        Path(".shardwise"),
        description="folder of database, uploaded traces, added notes, recorded outcomes and knowledge store",
    )
    database_url: str | None = Field(None, description="SQLAlchemy URL; None: SQLite in data_dir")
    chroma_host: str | None = Field(None, description="host of a Chroma server; None: embedded store in data_dir")
    chroma_port: int = Field(8000, ge=1, le=65535, description="port of the Chroma server")
    host: str = Field("127.0.0.1", description="address the service binds to")
    port: int = Field(8421, ge=1, le=65535, description="port the service binds to")
    max_upload_bytes: int = Field(1_000_000_000, ge=1, description="trace bytes of one request, as sent (compressed)")
    max_decompressed_bytes: int = Field(8_000_000_000, ge=1, description="bytes of one trace after decompression")
    max_events: int = Field(20_000_000, ge=1, description="events of one trace")
    max_wait_s: float = Field(60.0, ge=0, le=600, description="longest a POST waits before it answers 202")
    workers: int = Field(1, ge=1, le=64, description="plans computed at the same time")
    trace_workers: int | None = Field(
        None, ge=1, le=256, description="processes that read the trace files of one job; None: one a CPU"
    )
    ray_address: str | None = Field(
        None, min_length=1, description="Ray cluster that reads trace files instead ('auto', 'local', an address)"
    )
    kernel_rules: Path | None = Field(
        None, description="TOML file of own name rules, which go before those of traces/rules/kernel_rules.toml"
    )
    job_limit_s: float = Field(600.0, gt=0, le=86400, description="longest one plan takes before it fails with 504")
    keep_jobs_days: float | None = Field(
        None, gt=0, le=36500, description="finished plans and their traces are removed after; None: never"
    )
    warm_embedder: bool = Field(True, description="load the embedder at start instead of at the first plan")
    llm_model: str | None = Field(
        None, min_length=1, description="litellm model of the advisor; None: the rules advise"
    )
    llm_api_base: str | None = Field(None, description="address of an own endpoint; None: that of llm_model's provider")
    llm_api_key: SecretStr | None = Field(None, description="key of the endpoint; None: the provider's own variable")
    llm_timeout_s: float = Field(
        50.0, gt=0, le=600, description="longest all turns of one choice take llm_model, retries included"
    )

    llm_redact: bool = Field(
        False, description="hide names (job, kernels, model, hosts, files) from llm_model, whatever a request says"
    )
    audit: bool = Field(True, description="keep an audit log, from which a plan can be replayed")
    audit_dir: Path | None = Field(None, description="folder of the audit log; None: audit in data_dir")
    audit_sync: Literal["run", "record", "never"] = Field(
        "run", description="when the audit log is forced to disk: after a run, after every record, or never"
    )

    @model_validator(mode="after")
    def _supported_database(self) -> Self:
        if self.database_url is not None and not self.database_url.startswith(DATABASE_SCHEMES):
            raise ValueError(f"database_url must start with one of {', '.join(DATABASE_SCHEMES)}")
        return self

    @model_validator(mode="after")
    def _whole_llm(self) -> Self:
        if self.llm_model is None and (self.llm_api_base or self.llm_api_key):
            raise ValueError("llm_api_base and llm_api_key need llm_model")
        if self.llm_api_base is not None and not self.llm_api_base.startswith(("http://", "https://")):
            raise ValueError("llm_api_base must start with http:// or https://")
        return self

    @property
    def database(self) -> str:
        """The database URL in force."""
        return self.database_url or f"sqlite+aiosqlite:///{self.data_dir.resolve() / 'shardwise.db'}"

    @property
    def owns_data_dir(self) -> bool:
        """Whether one process has the data folder for itself; with a Chroma server several may share it."""
        return self.chroma_host is None

    @property
    def owns_jobs(self) -> bool:
        """Whether no other process works on the same jobs."""
        return self.owns_data_dir and self.database_url is None

    @property
    def notes_dir(self) -> Path:
        """Folder of the notes users added; every process of this installation reads the same one."""
        return self.data_dir / "notes"

    @property
    def history_dir(self) -> Path:
        """Folder of the outcomes users recorded; every process of this installation reads the same one."""
        return self.data_dir / "history"

    @property
    def audit_folder(self) -> Path:
        """Folder of the audit log."""
        return self.audit_dir or self.data_dir / "audit"

    @property
    def scratch_dir(self) -> Path:
        """Folder in which the service unpacks archives; nothing in it outlives a request."""
        return self.data_dir / "scratch"

    @property
    def knowledge_dir(self) -> Path:
        """Folder of the embedded knowledge store."""
        return self.data_dir / "knowledge"


def load_settings(**overrides: object) -> Settings:
    """Settings of the environment; `overrides` (None: not given) win over it.

    Raises UnknownName for a SHARDWISE_* variable that is no setting, InvalidSettings for a value out of range.
    """
    for variable in os.environ:
        name = variable.upper().removeprefix(PREFIX).lower()
        ours = variable.upper().startswith(PREFIX) and variable.upper() not in READ_BY_CHECKS
        if ours and name not in Settings.model_fields:
            raise UnknownName(f"{PREFIX}* setting", name, Settings.model_fields)
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "settings"
        raise InvalidSettings(f"{where}: {first['msg']}", hint=f"environment variables are {PREFIX}<NAME>") from error
