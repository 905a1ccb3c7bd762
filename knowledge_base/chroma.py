"""Chroma's clients, files and failures. The one module that imports chromadb, when a store is first opened."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from projector.errors import InvalidDescription, KnowledgeUnavailable

SERVER_TIMEOUT_S = 30.0
_CHROMA_FILE = re.compile(r"chroma\.sqlite3(-\w+)?|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# the graph is searched wide enough that a filtered query over a few thousand chunks finds all it should
_HNSW = {"space": "cosine", "ef_construction": 200, "max_neighbors": 32, "ef_search": 256}


class ChromaFailed(KnowledgeUnavailable):
    """Chroma itself refused: what it has stored may be damaged."""


@contextmanager
def translated() -> Iterator[None]:
    """Failures of Chroma as ChromaFailed, of the network and the disk as KnowledgeUnavailable."""
    import httpx
    from chromadb.errors import ChromaError

    try:
        yield
    except ChromaError as error:
        raise ChromaFailed(f"the knowledge store failed: {error}", hint="rebuild it from the notes") from error
    except (httpx.HTTPError, OSError) as error:
        raise KnowledgeUnavailable(
            f"the knowledge store failed: {error}", hint="see that its server runs or its folder can be written"
        ) from error


def embedded_client(path: Path) -> Any:
    """A client that keeps its files at `path`; the caller sees to it that it is the only one."""
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.config import Settings

    try:
        return chromadb.PersistentClient(path=str(path), settings=Settings(anonymized_telemetry=False))
    except Exception:
        # chromadb 1.5.9 keeps a system that failed to start under its path, and hands it out again
        SharedSystemClient._identifier_to_system.pop(str(path), None)
        raise


def server_client(host: str, port: int, *, ssl: bool) -> Any:
    """A client of a Chroma server. KnowledgeUnavailable: none answers."""
    import chromadb
    from chromadb.config import Settings

    try:
        client = chromadb.HttpClient(host=host, port=port, ssl=ssl, settings=Settings(anonymized_telemetry=False))
    # what chromadb raises when nothing answers
    except ValueError as error:
        raise KnowledgeUnavailable(
            f"no Chroma server answers at {host}:{port}: {error}", hint="start one with `chroma run`"
        ) from error
    for session in _sessions(client):
        session.timeout = SERVER_TIMEOUT_S
    return client


def close(client: Any) -> None:
    """Release a client's files or connections."""
    sessions = _sessions(client)
    client.close()
    for session in sessions:
        session.close()


def _sessions(client: Any) -> list[Any]:
    """The HTTP sessions behind a client. chromadb 1.5.9 gives them no timeout and leaves them open when it closes."""
    servers = (client._server, client._admin_client._server)
    return [server._session for server in servers if hasattr(server, "_session")]


def find_collection(client: Any, name: str) -> Any | None:
    """The collection of a name, or None."""
    from chromadb.errors import NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None


def make_collection(client: Any, name: str, metadata: dict[str, Any]) -> Any:
    """The collection of a name, made with cosine distance where there is none; vectors are always passed in."""
    return client.get_or_create_collection(
        name, embedding_function=None, configuration={"hnsw": _HNSW}, metadata=metadata
    )


def drop_collection(client: Any, name: str) -> None:
    """Remove a collection where there is one."""
    if find_collection(client, name) is not None:
        client.delete_collection(name)


def store_files(path: Path) -> list[Path]:
    """Everything in an embedded store's folder. InvalidDescription: something there is not Chroma's."""
    if not path.exists():
        return []
    if not path.is_dir():
        raise InvalidDescription(f"the knowledge store {path} is a file", hint="name a folder")
    entries = sorted(path.iterdir())
    foreign = [entry.name for entry in entries if not _CHROMA_FILE.fullmatch(entry.name)]
    if foreign:
        raise InvalidDescription(
            f"the folder {path} holds {foreign[0]!r}, which is not part of a knowledge store",
            hint="give the store a folder of its own",
        )
    return entries


def erase_files(path: Path) -> None:
    """Remove an embedded store's files, and nothing else. InvalidDescription as `store_files`."""
    for entry in store_files(path):
        if entry.is_dir() and not entry.is_symlink():
            for file in entry.iterdir():
                file.unlink()
            entry.rmdir()
        else:
            entry.unlink()
