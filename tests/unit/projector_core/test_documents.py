"""Documents shorter than the rows of a step: packed they save attention, padded they waste positions."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, switched_chip, training

from projector.breakdown import Projection
from projector.graph.documents import context_tokens, document_tokens, row_pairs, useful_frac
from projector.graph.scope import causal_pairs
from projector.model_flop import model_flop_per_token
from projector.project import project
from projector.specs.plan import ParallelismPlan
from projector.specs.sequence_lengths import SequenceLengths
from projector.specs.software import MEGATRON_2022
from projector.specs.workload import WorkloadSpec

CHIP = switched_chip()
PACKED = SequenceLengths(rows="packed", mean_tokens=512)
PADDED = SequenceLengths(rows="padded", mean_tokens=512)


def projected(lengths: SequenceLengths | None, **options) -> Projection:
    work = training(4, 8192).model_copy(update={"lengths": lengths})
    plan = ParallelismPlan(micro_batch=1, grad_accum=4)
    return project(plan, work, dense_model(), cluster(CHIP, 1), CHIP, **options)


def test_a_packed_row_holds_the_pairs_of_its_documents():
    assert row_pairs(8192, PACKED, None) == pytest.approx(16 * causal_pairs(512, None))
    assert row_pairs(8192, PACKED, 128) == pytest.approx(16 * causal_pairs(512, 128))
    assert row_pairs(8192, PADDED, None) == row_pairs(8192, None, None) == causal_pairs(8192, None)


def test_uneven_documents_have_more_pairs_than_equal_ones():
    uneven = SequenceLengths(rows="packed", mean_tokens=512, p95_tokens=1500)
    drawn = np.random.default_rng(0).lognormal(0, uneven.spread, 400_000)
    drawn = np.minimum(drawn / drawn.mean() * 512, 8192)
    expected = 8192 / drawn.mean() * (drawn * (drawn + 1) / 2).mean()
    assert row_pairs(8192, uneven, None) == pytest.approx(expected, rel=0.02)
    tokens = document_tokens(uneven, 8192)
    assert tokens.mean() == pytest.approx(512, rel=1e-3)
    assert np.quantile(tokens, 0.95) == pytest.approx(1500, rel=0.01)


def test_no_document_is_longer_than_its_row():
    cut = SequenceLengths(rows="padded", mean_tokens=1000, p95_tokens=3000)
    assert document_tokens(cut, 1024).max() == 1024
    assert useful_frac(1024, cut) < 1000 / 1024


def test_packing_shortens_a_step_by_attention_alone():
    whole, packed = projected(None), projected(PACKED)
    kinds = [{one.kind: one.time_s for one in each.breakdown.by_kind} for each in (whole, packed)]
    assert kinds[1]["attention"] < kinds[0]["attention"] / 8
    assert kinds[1]["gemm"] == kinds[0]["gemm"]
    assert packed.memory == whole.memory


def test_padding_costs_the_same_step_and_trains_fewer_tokens():
    whole, padded = projected(None), projected(PADDED)
    assert padded.step_time_s == whole.step_time_s
    assert padded.tokens_per_s_per_chip == pytest.approx(whole.tokens_per_s_per_chip * 512 / 8192)
    assert any("94% of the computed positions are padding" in text for text in padded.assumptions)


def test_kernels_that_write_the_score_matrix_gain_nothing_from_packing():
    times = [projected(lengths, software=MEGATRON_2022).step_time_s for lengths in (None, PACKED)]
    assert times[0] == times[1]


def test_model_flop_count_the_documents_a_token_attends_to():
    model = dense_model()
    assert context_tokens(8192, PACKED, None) == 512
    assert context_tokens(8192, None, 1024) == 1024
    assert model_flop_per_token(model, 8192, PACKED) == pytest.approx(model_flop_per_token(model, 512))


@pytest.mark.parametrize(("mean", "p95"), [(512, 500), (512, 2048)])
def test_percentiles_no_such_distribution_has_are_refused(mean: float, p95: float):
    with pytest.raises(ValueError, match="p95_tokens"):
        SequenceLengths(rows="packed", mean_tokens=mean, p95_tokens=p95)


def test_documents_longer_than_their_rows_are_refused():
    with pytest.raises(ValueError, match="do not fit rows"):
        WorkloadSpec(seq_len=256, lengths=PACKED)
    with pytest.raises(ValueError, match="lengths has no meaning"):
        WorkloadSpec(phase="serving", lengths=PACKED)
