"""What a past case needs beside its figures: where it can be read, the numbers of its model, and an id."""

import re
from collections.abc import Mapping

from agents.evaluation.architecture import architecture_of
from agents.evaluation.refusal import Refused
from knowledge_base.history_parts import PastArchitecture, PastSource
from projector.specs.architecture import ModelArchitecture

GITHUB = re.compile(r"^github:([\w.-]+/[\w.-]+)@([0-9a-f]+):([^\s()]+)")
ARXIV = re.compile(r"^arXiv:(\d{2})(\d{2})\.(\d{5})(?:\s+((?:Tables?|Figure) [\d-]+))?")
NEMO = re.compile(r"^NeMo (2\d)\.(\d{2})")
PLAIN_SIZES = {
    "layers": ("num_hidden_layers",),
    "hidden_size": ("hidden_size",),
    "heads": ("num_attention_heads",),
    "kv_heads": ("num_key_value_heads",),
    "experts": ("num_experts", "n_routed_experts", "num_local_experts"),
}


def source_of(document: str, release: str | None) -> tuple[str, PastSource]:
    """(key, source) of where a row can be read. Refused for a document of no known form."""
    github, arxiv = GITHUB.match(document), ARXIV.match(document)
    nemo = NEMO.match(release or "")
    dated = f"20{nemo[1]}-{nemo[2]}" if nemo else None
    if github:
        repository, revision, path = github.groups()
        url = f"https://github.com/{repository}/blob/{revision}/{path}"
        source = PastSource(title=f"{repository} {path}"[:200], url=url, date=dated)
    elif arxiv:
        year, month, number, table = arxiv.groups()
        title = f"arXiv:{year}{month}.{number}" + (f", {table}" if table else "")
        source = PastSource(title=title, url=f"https://arxiv.org/abs/{year}{month}.{number}", date=f"20{year}-{month}")
    elif document.startswith("https://"):
        url = document.split()[0]
        source = PastSource(title=url.removeprefix("https://")[:200], url=url, date=dated)
    else:
        raise Refused("source of no known form")
    return " ".join(part for part in (source.title, source.date) if part), source


def numbers_of(arch: Mapping[str, object] | None, model: str) -> PastArchitecture:
    """The numbers of a model: counted where the projector can read it, else as they stand."""
    if not arch:
        return PastArchitecture()
    try:
        known = architecture_of(arch, model, "a row")
    except Refused:
        sizes = {name: next((arch[key] for key in keys if key in arch), None) for name, keys in PLAIN_SIZES.items()}
        if sizes["experts"] is None and sizes["layers"] is not None:
            sizes["experts"] = 0
        return PastArchitecture.model_validate(sizes)
    return counted(known)


def counted(known: ModelArchitecture) -> PastArchitecture:
    """The numbers of a model of the catalogue."""
    return PastArchitecture(
        parameters=float(f"{known.parameters:.4g}"),
        active_parameters=float(f"{known.active_parameters:.4g}"),
        layers=known.layers,
        hidden_size=known.hidden_size,
        heads=known.heads,
        kv_heads=known.kv_heads,
        experts=known.experts,
    )


def identifier(prefix: str, name: str) -> str:
    """An id of a case from the name of a row."""
    return f"{prefix}-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"[:100].rstrip("-")
