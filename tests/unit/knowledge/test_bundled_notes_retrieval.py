"""The notes that ship, the real embedding model and a real Chroma: does the right note come first?"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from note_questions import QUESTIONS as NATURAL_QUESTIONS

from agents.planning.citations import MOST_LEVERS, notes_for
from knowledge_base.embed import MiniLmEmbedder
from knowledge_base.index import open_knowledge_base
from knowledge_base.note import NOTES_FOLDER, Note, read_notes
from knowledge_base.retrieve import KnowledgeBase, RetrievedNote
from projector.levers import LEVERS
from projector.specs.bottleneck import BOTTLENECK_OF, CAUSES, Cause
from projector.specs.plan import Phase

NOTES = read_notes(NOTES_FOLDER)

# phase, cause of the diagnosis, what an analyzer would say, note that should come first
QUESTIONS: tuple[tuple[Phase, Cause, str, str], ...] = (
    (
        "training",
        "compute_throughput",
        "compute-bound: large GEMMs at high utilisation fill the step",
        "compute-bound-with-nothing-exposed",
    ),
    ("training", "hbm_bandwidth", "top operators bound by HBM, weights replicated", "memory-bound-training-steps"),
    (
        "training",
        "hbm_capacity",
        "out of memory in the backward pass, peak near capacity",
        "memory-cliff-and-fragmentation",
    ),
    ("training", "hbm_capacity", "activations of the forward pass do not fit", "activation-recompute"),
    (
        "training",
        "exposed_tp",
        "tensor-parallel all-gather and reduce-scatter exposed on the critical path",
        "tensor-parallelism-with-sequence-parallelism",
    ),
    ("training", "exposed_dp", "gradient all-reduce exposed after the backward pass", "gradient-reduction-overlap"),
    ("training", "exposed_dp", "fully sharded weights, too few tokens to hide the gathers", "fsdp-full-sharding"),
    ("training", "exposed_ep", "expert dispatch and combine all-to-all exposed", "expert-parallelism-all-to-all"),
    (
        "training",
        "exposed_cp",
        "ring attention send and receive of keys and values exposed",
        "context-parallelism-ring-attention",
    ),
    ("training", "exposed_pp", "send/recv between pipeline stages exposed", "pipeline-bubble-and-interleaving"),
    (
        "training",
        "latency_bound_collectives",
        "many small all-reduces of a few microseconds",
        "small-collectives-latency",
    ),
    (
        "training",
        "pipeline_bubble",
        "idle time from the pipeline bubble, few micro-batches",
        "pipeline-bubble-and-interleaving",
    ),
    (
        "training",
        "launch_bound",
        "idle between short kernels, host launch overhead",
        "launch-bound-work-and-cuda-graphs",
    ),
    ("training", "host_idle", "idle at the start of the step, waiting for input data", "input-stalls-and-host-copies"),
    ("training", "copies", "exposed host-to-device copies", "input-stalls-and-host-copies"),
    ("training", "imbalance", "uneven expert load, ranks wait for the slowest", "expert-load-imbalance"),
    ("serving", "exposed_tp", "tensor parallelism, decode all-reduce exposed", "decode-tensor-parallelism-or-replicas"),
    ("serving", "compute_throughput", "prefill of long prompts stalls decode, latency spikes", "chunked-prefill"),
    (
        "serving",
        "hbm_capacity",
        "KV cache replicated by tensor parallelism, latent attention",
        "attention-data-parallelism",
    ),
    ("serving", "launch_bound", "decode in eager mode, gaps between kernels", "launch-bound-work-and-cuda-graphs"),
)


class _CountingKnowledge:
    """A knowledge base that counts how often each note is among the first three of an answer."""

    def __init__(self, knowledge: KnowledgeBase) -> None:
        self._knowledge = knowledge
        self.times: dict[str, int] = {}

    def search(self, query: str, **filters: Any) -> tuple[RetrievedNote, ...]:
        found = self._knowledge.search(query, **filters)
        for note in found[:3]:
            self.times[note.note_id] = self.times.get(note.note_id, 0) + 1
        return found

    def past(self, *_: Any, **__: Any) -> tuple[Any, ...]:
        return ()


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory, minilm: MiniLmEmbedder) -> Iterator[KnowledgeBase]:
    knowledge, report = open_knowledge_base(tmp_path_factory.mktemp("kb") / "store", minilm)
    assert report.notes == len(NOTES)
    assert report.embedded == report.chunks
    with knowledge:
        yield knowledge


@pytest.mark.parametrize(("phase", "cause", "query", "expected"), QUESTIONS)
def test_the_right_note_comes_first(
    knowledge: KnowledgeBase, phase: Phase, cause: Cause, query: str, expected: str
) -> None:
    found = knowledge.search(query, phase=phase, causes=[cause], k=3)
    assert found[0].note_id == expected
    assert found[0].similarity > 0.3


def test_a_tpu_question_finds_the_torus(knowledge: KnowledgeBase) -> None:
    query = "model axis collectives on a torus"
    found = knowledge.search(query, phase="training", causes=["exposed_tp"], hardware_kind="tpu", k=1)
    assert found[0].note_id == "torus-axis-mapping"
    on_gpu = knowledge.search(query, phase="training", causes=["exposed_tp"], hardware_kind="gpu", k=10)
    assert "torus-axis-mapping" not in {note.note_id for note in on_gpu}


@pytest.mark.parametrize("query", ["how to bake sourdough bread", "the capital of France", "offside in football"])
def test_an_off_topic_query_is_visibly_far_from_everything(knowledge: KnowledgeBase, query: str) -> None:
    for phase in ("training", "serving"):
        assert all(note.similarity < 0.25 for note in knowledge.search(query, phase=phase, k=10))


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.id)
def test_every_note_can_be_found(knowledge: KnowledgeBase, note: Note) -> None:
    found = knowledge.search(note.title, phase=note.phases[0], causes=note.causes[:1], k=1)
    assert found[0].note_id == note.id


def test_every_note_has_a_question() -> None:
    assert NATURAL_QUESTIONS.keys() == {note.id for note in NOTES}


@pytest.mark.parametrize("note_id", NATURAL_QUESTIONS)
def test_an_engineers_question_finds_its_note(knowledge: KnowledgeBase, note_id: str) -> None:
    phase, question = NATURAL_QUESTIONS[note_id]
    assert note_id in [note.note_id for note in knowledge.search(question, phase=phase, k=3)]


def test_the_planner_reaches_most_notes(knowledge: KnowledgeBase) -> None:
    """Queries of the planner, causes in turn on either kind of hardware, counted by note among the first three.

    Notes it never reaches answer only what people ask, which the test above covers; they may not become many.
    """
    asked = _CountingKnowledge(knowledge)
    chips = (SimpleNamespace(kind="gpu", id="h100-sxm"), SimpleNamespace(kind="tpu", id="tpu-v5p"))
    for phase in ("training", "serving"):
        levers = [lever for lever in LEVERS if phase in lever.phases]
        for place, cause in enumerate(CAUSES):
            diagnosis: Any = SimpleNamespace(cause=cause, bottleneck=BOTTLENECK_OF[cause])
            job: Any = SimpleNamespace(phase=phase, hardware=chips[place % 2], notes_per_search=None)
            for start in range(0, len(levers), MOST_LEVERS):
                pulled: Any = levers[start : start + MOST_LEVERS]
                notes_for(job, diagnosis, pulled, asked)
    never = {note.id for note in NOTES} - asked.times.keys()
    for note_id, times in sorted(asked.times.items(), key=lambda item: -item[1]):
        print(f"{times:4d} {note_id}")
    print("never:", ", ".join(sorted(never)))
    assert len(never) <= len(NOTES) // 8


def test_results_repeat_and_equal_exhaustive_search(knowledge: KnowledgeBase, minilm: MiniLmEmbedder) -> None:
    """The approximate index of Chroma misses nothing at this size."""
    query = "collectives wait for the network"
    found = knowledge.search(query, phase="training", k=10, ranking="embedding")
    assert found == knowledge.search(query, phase="training", k=10, ranking="embedding")
    assert found[0].embedding_rank == 1
    chunks = [chunk for note in NOTES if "training" in note.phases for chunk in knowledge.get_note(note.id)]
    cosines = minilm.embed([chunk.embedded_text for chunk in chunks]) @ minilm.embed([query])[0]
    best: dict[str, float] = {}
    for chunk, cosine in zip(chunks, cosines, strict=True):
        best[chunk.note_id] = max(best.get(chunk.note_id, -1.0), float(cosine))
    expected = sorted(best.items(), key=lambda item: -item[1])[:10]
    assert [note.note_id for note in found] == [note_id for note_id, _ in expected]
    assert [note.similarity for note in found] == pytest.approx([cosine for _, cosine in expected], abs=1e-4)


def test_no_passage_is_longer_than_the_model_reads(knowledge: KnowledgeBase, minilm: MiniLmEmbedder) -> None:
    tokenizer = minilm._loaded_model().tokenizer
    for note in NOTES:
        for chunk in knowledge.get_note(note.id):
            assert len(tokenizer(chunk.embedded_text)["input_ids"]) <= 256
