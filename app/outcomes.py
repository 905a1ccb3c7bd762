"""Outcomes as files: what users recorded, in one folder under the name of their id."""

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from app.errors import NotFound, RequestTooLarge
from knowledge_base.history_files import BUNDLED_PREFIXES, MAX_OUTCOME_BYTES, MAX_USER_OUTCOMES, HistoryFolder
from knowledge_base.past import PastCase
from projector.errors import InvalidDescription, KnowledgeUnavailable, UnknownName


@dataclass(frozen=True)
class OutcomeShelf:
    """The users' outcomes of this installation. An id only ever names a file that was found by listing, or matched
    the pattern of ids."""

    history: HistoryFolder
    _writing: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def get(self, case_id: str) -> PastCase:
        """The case of an id, bundled or recorded. NotFound with the nearest ids."""
        try:
            return self.history().get(case_id)
        except UnknownName as error:
            raise NotFound(error.message, hint=error.hint, nearest=error.nearest) from error

    def add(self, case: PastCase) -> bool:
        """Store an outcome; whether its id is new. It replaces one of the same id.

        InvalidDescription: an id of bundled cases, or one that replaces what is not there. RequestTooLarge: too many.
        """
        if case.id.startswith(BUNDLED_PREFIXES):
            raise InvalidDescription(
                f"the id {case.id!r} is of the form of bundled cases", hint=f"do not begin with {BUNDLED_PREFIXES[0]!r}"
            )
        content = case.model_dump_json(exclude_none=True).encode()
        if len(content) > MAX_OUTCOME_BYTES:
            raise RequestTooLarge(f"outcome of {len(content)} bytes > {MAX_OUTCOME_BYTES}", hint="record fewer moves")
        with self._writing:
            if case.supersedes is not None:
                self._known(case.supersedes)
            recorded = {known.id for known in self.history.recorded()}
            if case.id not in recorded and len(recorded) >= MAX_USER_OUTCOMES:
                raise RequestTooLarge(f"{len(recorded)} outcomes >= limit of {MAX_USER_OUTCOMES}", hint="remove some")
            self._write(self.history.folder / f"{case.id}.json", content)
        return case.id not in recorded

    def remove(self, case_id: str) -> None:
        """Remove an outcome. NotFound with the nearest ids; InvalidDescription for a bundled case."""
        with self._writing:
            if self.get(case_id).origin == "bundled":
                raise InvalidDescription(
                    f"{case_id!r} is bundled and cannot be removed", hint="record an outcome that supersedes it"
                )
            try:
                (self.history.folder / f"{case_id}.json").unlink(missing_ok=True)
            except OSError as error:
                raise KnowledgeUnavailable(f"the outcome cannot be removed: {error.strerror}") from error

    def _known(self, case_id: str) -> None:
        try:
            self.history().get(case_id)
        except UnknownName as error:
            raise InvalidDescription(f"supersedes: {error.message}", hint=error.hint) from error

    def _write(self, path: Path, content: bytes) -> None:
        """Whole or not at all: readers never see half an outcome."""
        incoming = path.with_name(f".incoming-{uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            incoming.write_bytes(content)
            os.replace(incoming, path)
        except OSError as error:
            incoming.unlink(missing_ok=True)
            raise KnowledgeUnavailable(f"the outcome cannot be stored: {error.strerror}") from error
