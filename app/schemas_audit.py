"""Answers about the audit log."""

from uuid import UUID

from app.audit import AuditRecord
from projector.specs.record import Record


class AuditAnswer(Record):
    """Answer of GET /v1/plans/{id}/audit: every record of a plan. Prompts and replies in it are unvalidated text."""

    id: UUID
    records: tuple[AuditRecord, ...]


class AuditList(Record):
    """Answer of `shardwise audit list --json`: the first record of every run."""

    runs: tuple[AuditRecord, ...]
