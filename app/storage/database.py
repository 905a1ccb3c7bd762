"""The database: engine, schema and its version, transactions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, DateTime, Dialect, Index, Integer, String, Text, TypeDecorator, Uuid, event, select, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from app.errors import StorageMismatch

SCHEMA_VERSION = 1
SQLITE_PRAGMAS = ("journal_mode=WAL", "busy_timeout=5000", "synchronous=NORMAL", "foreign_keys=ON")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time; SQLite stores it without its zone, so the zone is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """To UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Aware again."""
        return None if value is None else value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Tables of the service."""


class SchemaRow(Base):
    """One row: the version of the tables."""

    __tablename__ = "schema_version"
    version: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)


class JobRow(Base):
    """One plan request on its way. `attempts` counts claims and is the token that a claim writes with."""

    __tablename__ = "jobs"
    __table_args__ = (Index("jobs_by_state", "state", "created_at"),)

    id: Mapped[UUID] = mapped_column(Uuid, primary_key=True)
    state: Mapped[str] = mapped_column(String(16))
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    heartbeat_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    request: Mapped[str] = mapped_column(Text)
    traces: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    result: Mapped[str | None] = mapped_column(Text)
    problem: Mapped[str | None] = mapped_column(Text)


class MessageRow(Base):
    """One message about a plan, numbered from 1. answer: JSON text, None while `planned_id` is being planned."""

    __tablename__ = "messages"

    plan_id: Mapped[UUID] = mapped_column(Uuid, primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    text: Mapped[str] = mapped_column(Text)
    reading: Mapped[str] = mapped_column(Text)
    answer: Mapped[str | None] = mapped_column(Text)
    planned_id: Mapped[UUID | None] = mapped_column(Uuid)


class Database:
    """An engine with its session factory. Open it before use, close it at the end."""

    def __init__(self, url: str) -> None:
        self.engine = create_async_engine(url)
        self._sessions = async_sessionmaker(self.engine, expire_on_commit=False)
        if self.engine.dialect.name == "sqlite":
            event.listen(self.engine.sync_engine, "connect", _set_pragmas)

    async def open(self) -> None:
        """Create missing tables; raise StorageMismatch where another version wrote them."""
        async with self.engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        async with self.transaction() as session:
            found = (await session.scalars(select(SchemaRow.version))).all()
            if not found:
                session.add(SchemaRow(version=SCHEMA_VERSION))
            elif found != [SCHEMA_VERSION]:
                versions = ", ".join(map(str, found))
                raise StorageMismatch(
                    f"the database has schema version {versions}, this program writes {SCHEMA_VERSION}",
                    hint="use the version of shardwise that wrote it, or another data_dir or database_url",
                )

    async def close(self) -> None:
        """Give all connections back."""
        await self.engine.dispose()

    async def ping(self) -> None:
        """One round trip; raises what the driver raises."""
        async with self.engine.connect() as connection:
            await connection.execute(text("SELECT 1"))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """A session whose work is committed at the end of the block, or not at all."""
        async with self._sessions.begin() as session:
            yield session


def _set_pragmas(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in SQLITE_PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
