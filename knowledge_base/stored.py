"""A chunk as Chroma keeps it: a text, and metadata of plain values and lists."""

from collections.abc import Mapping
from typing import Any

from knowledge_base.chunk import Chunk

LISTS = ("levers", "causes", "phases", "hardware", "sources", "aliases", "chips")


def metadata_of(chunk: Chunk) -> dict[str, Any]:
    """What is stored beside the vector and the text."""
    lists = {name: list(getattr(chunk, name)) for name in LISTS}
    return {
        "note_id": chunk.note_id,
        "title": chunk.title,
        "section": chunk.section,
        "slug": chunk.slug,
        "order": chunk.order,
        "record_hash": chunk.record_hash,
        "rule": chunk.rule,
        "outdated": chunk.outdated,
        "valid_until": chunk.valid_until,
        "superseded": chunk.superseded,
        # Chroma refuses an empty list
        **{name: values for name, values in lists.items() if values},
    }


def chunk_of(metadata: Mapping[str, Any], text: str) -> Chunk:
    """The chunk whose metadata and text these are."""
    lists = {name: tuple(metadata.get(name) or ()) for name in LISTS}
    return Chunk(
        note_id=metadata["note_id"],
        title=metadata["title"],
        section=metadata["section"],
        slug=metadata["slug"],
        order=metadata["order"],
        text=text,
        rule=metadata["rule"],
        outdated=metadata["outdated"],
        valid_until=metadata["valid_until"],
        superseded=metadata["superseded"],
        **lists,
    )


def chunks_of(found: Mapping[str, Any]) -> list[Chunk]:
    """The chunks of an answer of Chroma's get."""
    return [chunk_of(metadata, text) for metadata, text in zip(found["metadatas"], found["documents"], strict=True)]
