"""The audit log: one line of JSON a step of a run, only ever appended, each with the hash of the line before it.

Files are called by the day (UTC) they were begun on and continue one chain: `2026-12-01.jsonl`, `2026-12-01.2.jsonl`
once the first is full. A line that is changed, removed or put in breaks the chain at its place (`check`). Several
processes may append at once: a lock file orders them. Summaries of traces lie beside the log, packed, under their hash.

fsync: "run" after the last line of a run and after a turn of a conversation, "record" after every line, "never" leaves
it to the system. Where the log cannot be written the run goes on and the failure is logged: an answer is worth more.
A key that is configured is blanked wherever it might stand.
"""

import gzip
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from filelock import FileLock
from pydantic import Field, SecretStr

from app.errors import NotFound
from projector.specs.record import Record

RECORD_LIMIT_BYTES = 8_000_000
FILE_LIMIT_BYTES = 256_000_000
NOTHING_BEFORE = "0" * 64
LAST_OF_A_RUN = ("result", "failed", "turn")
BLANK = "(key)"
_log = logging.getLogger("shardwise")

Sync = Literal["run", "record", "never"]
Json = dict[str, Any]


class AuditRecord(Record):
    """One line. hash: of `prev` and all else of the line, so it stands for everything before it as well."""

    seq: int = Field(ge=1, description="number of the line in the whole log")
    at: datetime = Field(description="UTC")
    run: UUID = Field(description="id of the plan")
    kind: str
    data: dict[str, Any]
    prev: str
    hash: str


class AuditCheck(Record):
    """Whether the chain holds from the first line to the last; where it breaks first, if it does."""

    lines: int
    unbroken: bool
    broken_at: str = Field("", description="file and line of the first break")
    why: str = ""


@dataclass(frozen=True)
class AuditRun:
    """What one run appends with."""

    log: "AuditLog"
    id: UUID

    def record(self, kind: str, data: Json) -> None:
        """Append one line of this run."""
        self.log.append(self.id, kind, data)


class AuditLog:
    """The log in one folder, which is made when the first line is written."""

    def __init__(
        self, folder: Path, clock: Callable[[], datetime], *, sync: Sync = "run", secrets: Sequence[SecretStr] = ()
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._sync = sync
        self._secrets = tuple(secret.get_secret_value() for secret in secrets)

    def run(self, run_id: UUID) -> AuditRun:
        """What a run with this id appends with."""
        return AuditRun(self, run_id)

    def turn(self, run_id: UUID, role: Literal["user", "assistant"], text: str, data: Json | None = None) -> None:
        """Append one turn of a conversation about a plan."""
        self.append(run_id, "turn", {"role": role, "text": text, **(data or {})})

    def append(self, run_id: UUID, kind: str, data: Json) -> None:
        """Append one line; what is longer than the limit on records is replaced by its size and hash."""
        try:
            self._append(run_id, kind, data)
        except OSError:
            _log.exception("the audit log could not be written; the run goes on without this record")

    def keep_summary(self, text: str) -> str:
        """Store a summary's JSON text once; returns its hash. A failure to store is logged, as of a line."""
        digest = sha256(text.encode()).hexdigest()
        path = self._summary_path(digest)
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                partial = path.with_suffix(f".{os.getpid()}.part")
                partial.write_bytes(gzip.compress(text.encode(), mtime=0))
                partial.replace(path)
        except OSError:
            _log.exception("the summary of a trace could not be kept beside the audit log")
        return digest

    def summary(self, digest: str) -> str:
        """The JSON text of a kept summary; NotFound."""
        try:
            return gzip.decompress(self._summary_path(digest).read_bytes()).decode()
        except (OSError, EOFError) as error:
            raise NotFound(
                "the summary of this run's trace is not kept any more", hint="POST the trace again"
            ) from error

    def records(self, run_id: UUID) -> tuple[AuditRecord, ...]:
        """Every line of a run; NotFound where there is none."""
        mark = f'"run":"{run_id}"'
        found = tuple(
            AuditRecord.model_validate_json(line)
            for path in self._files()
            for line in _lines(path)
            if mark in line and _is_line(line)
        )
        if not found:
            raise NotFound(f"no audit record of plan {run_id}", hint="`shardwise audit list` shows those there are")
        return found

    def runs(self) -> Iterator[AuditRecord]:
        """The first line of every run, oldest first."""
        for path in self._files():
            for line in _lines(path):
                if '"kind":"request"' in line and _is_line(line):
                    yield AuditRecord.model_validate_json(line)

    def check(self) -> AuditCheck:
        """Walk the whole chain."""
        before, count = NOTHING_BEFORE, 0
        for path in self._files():
            for number, line in enumerate(_lines(path), start=1):
                why = _broken(line, before, count + 1)
                if why:
                    return AuditCheck(lines=count, unbroken=False, broken_at=f"{path.name}:{number}", why=why)
                count += 1
                before = json.loads(line)["hash"]
        return AuditCheck(lines=count, unbroken=True)

    def _append(self, run_id: UUID, kind: str, data: Json) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._folder / "lock", timeout=30):
            path, before, seq = self._end()
            line = _line(seq + 1, self._clock(), run_id, kind, self._bounded(data), before)
            with path.open("ab") as file:
                if file.tell() and not _ends_line(path):
                    file.write(b"\n")  # of a line that a dying process cut off
                file.write(f"{line}\n".encode())
                file.flush()
                if self._sync == "record" or (self._sync == "run" and kind in LAST_OF_A_RUN):
                    os.fsync(file.fileno())

    def _end(self) -> tuple[Path, str, int]:
        """The file to append to, and hash and number of the last whole line of the log."""
        day = self._clock().strftime("%Y-%m-%d")
        files = self._files()
        before, seq = NOTHING_BEFORE, 0
        for path in reversed(files):
            last = _last_line(path)
            if last is not None:
                before, seq = last["hash"], last["seq"]
                break
        of_day = [path for path in files if path.name.startswith(day)]
        if not of_day:
            return self._folder / f"{day}.jsonl", before, seq
        full = of_day[-1].stat().st_size >= FILE_LIMIT_BYTES
        return self._folder / f"{day}.{len(of_day) + 1}.jsonl" if full else of_day[-1], before, seq

    def _files(self) -> list[Path]:
        """Oldest first; the number behind a day counts as one."""

        def place(path: Path) -> tuple[str, int]:
            day, _, number = path.stem.partition(".")
            return day, int(number) if number.isdigit() else 1

        return sorted(self._folder.glob("????-??-??*.jsonl"), key=place)

    def _bounded(self, data: Json) -> Json:
        text = _compact(data)
        for secret in self._secrets:
            if secret and json.dumps(secret)[1:-1] in text:
                text = text.replace(json.dumps(secret)[1:-1], BLANK)
        if len(text) > RECORD_LIMIT_BYTES:
            return {"omitted_bytes": len(text), "sha256": sha256(text.encode()).hexdigest()}
        bounded: Json = json.loads(text)
        return bounded

    def _summary_path(self, digest: str) -> Path:
        return self._folder / "summaries" / f"{digest}.json.gz"


def _line(seq: int, at: datetime, run_id: UUID, kind: str, data: Json, before: str) -> str:
    body = {"seq": seq, "at": at.isoformat(), "run": str(run_id), "kind": kind, "data": data, "prev": before}
    return _compact({**body, "hash": _hash_of(body)})


def _hash_of(body: Json) -> str:
    return sha256(_compact(body).encode()).hexdigest()


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def _broken(line: str, before: str, seq: int) -> str:
    """Why a line does not continue the chain; '' where it does."""
    try:
        body = json.loads(line)
        said = body.pop("hash")
    except (ValueError, KeyError, AttributeError):
        return "it is no whole line of the log"
    if body.get("prev") != before or body.get("seq") != seq:
        return "it does not continue the line before it"
    return "" if _hash_of(body) == said else "its content is not what was hashed"


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip():
                yield line.rstrip("\n")


def _is_line(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _last_line(path: Path) -> Json | None:
    """The last whole line of a file, read from its end."""
    size = path.stat().st_size
    step = min(size, 65_536)
    while step:
        with path.open("rb") as file:
            file.seek(size - step)
            tail = file.read().decode("utf-8", "replace").split("\n")
        # the first piece may be half a line, unless it is the whole file
        for line in reversed(tail if step == size else tail[1:]):
            if line and _is_line(line):
                found: Json = json.loads(line)
                return found
        if step == size:
            return None
        step = min(size, step * 8)
    return None
