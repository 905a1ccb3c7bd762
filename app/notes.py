"""Notes as files: the bundled ones, and those users added, which lie in one folder under the name of their id."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from uuid import uuid4

from app.errors import NotFound, RequestTooLarge
from knowledge_base.note import MAX_NOTE_BYTES, NOTES_FOLDER, Note, parse_note
from projector.errors import InvalidDescription, KnowledgeUnavailable, UnknownName

MAX_USER_NOTES = 1000
Origin = Literal["bundled", "user"]


@dataclass(frozen=True)
class StoredNote:
    """A note and where it came from."""

    note: Note
    origin: Origin


@dataclass(frozen=True)
class NoteShelf:
    """All notes of this installation. A note id only ever selects among files that were found by listing."""

    user_folder: Path
    bundled_folder: Path = NOTES_FOLDER
    _writing: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def folders(self) -> tuple[Path, ...]:
        """What `open_knowledge_base` reads; the users' folder is made where there is none.

        KnowledgeUnavailable names the user note that cannot be read any more, or whose id is now a bundled one.
        """
        self.user_folder.mkdir(parents=True, exist_ok=True)
        bundled = self._files(self.bundled_folder)
        for note_id, path in self._files(self.user_folder).items():
            if note_id in bundled:
                raise KnowledgeUnavailable(
                    f"the user note {note_id!r} has the id of a bundled note", hint=f"rename or remove {path}"
                )
            _read(path)
        return self.bundled_folder, self.user_folder

    def get(self, note_id: str) -> StoredNote:
        """The note of this id. NotFound with the nearest ids; KnowledgeUnavailable where its file is broken."""
        bundled, user = self._files(self.bundled_folder), self._files(self.user_folder)
        if note_id in bundled:
            return StoredNote(_read(bundled[note_id]), "bundled")
        if note_id in user:
            return StoredNote(_read(user[note_id]), "user")
        unknown = UnknownName("note", note_id[:80], (*bundled, *user))
        raise NotFound(unknown.message, hint=unknown.hint, nearest=unknown.nearest)

    @contextmanager
    def adding(self, note: Note, text: str) -> Iterator[bool]:
        """Write a user note (`text` as it was parsed), yield whether it is new, take it back where the block raises.

        InvalidDescription: the id is that of a bundled note. RequestTooLarge: too many notes.
        """
        with self._writing:
            if note.id in self._files(self.bundled_folder):
                raise InvalidDescription(f"{note.id!r} is the id of a bundled note", hint="choose another id")
            user = self._files(self.user_folder)
            if note.id not in user and len(user) >= MAX_USER_NOTES:
                raise RequestTooLarge(f"{len(user)} user notes >= limit of {MAX_USER_NOTES}", hint="remove some")
            # the id matched the pattern of Note.id: letters, digits and single hyphens
            path = self.user_folder / f"{note.id}.md"
            before = path.read_bytes() if note.id in user else None
            self._write(path, text.encode())
            try:
                yield before is None
            except BaseException:
                if before is None:
                    path.unlink(missing_ok=True)
                else:
                    self._write(path, before)
                raise

    def _write(self, path: Path, content: bytes) -> None:
        """Whole or not at all: readers never see half a note."""
        incoming = self.user_folder / f".incoming-{uuid4().hex}"
        try:
            self.user_folder.mkdir(parents=True, exist_ok=True)
            incoming.write_bytes(content)
            os.replace(incoming, path)
        except OSError as error:
            incoming.unlink(missing_ok=True)
            raise KnowledgeUnavailable(f"the note cannot be stored: {error.strerror}") from error

    def _files(self, folder: Path) -> dict[str, Path]:
        return {path.stem: path for path in sorted(folder.glob("*.md"))}


def _read(path: Path) -> Note:
    """A stored note. KnowledgeUnavailable: edited by hand since, and broken."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_NOTE_BYTES + 1).decode("utf-8")
        note = parse_note(text, origin=path.name)
        if note.id != path.stem:
            raise InvalidDescription(f"its id is {note.id!r}")
        return note
    except (OSError, UnicodeDecodeError, InvalidDescription) as error:
        reason = error.message if isinstance(error, InvalidDescription) else str(error)
        raise KnowledgeUnavailable(
            f"the stored note {path.name} cannot be read: {reason}", hint=f"repair or remove {path.name}"
        ) from error
