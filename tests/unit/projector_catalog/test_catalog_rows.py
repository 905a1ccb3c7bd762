"""Rows of the catalogue: what a user sees of every figure."""

import pytest

from projector.catalog import catalog_fingerprint, chip
from projector.catalog_rows import chip_rows, model_rows

CHIPS = {row.id: row for row in chip_rows()}
MODELS = {row.name: row for row in model_rows()}


def test_a_recalled_figure_carries_its_flag_to_the_row():
    row = CHIPS["h800"]
    memory = next(figure for figure in row.figures if figure.path == "hbm_bytes")
    assert (memory.value, memory.unit, memory.unverified) == (80e9, "bytes", True)
    assert row.unverified
    assert not CHIPS["h200"].unverified


def test_what_no_source_states_is_listed_as_unknown():
    assert "inter.bytes_per_s_one_way" in CHIPS["tpu-v7x-ironwood"].unknown
    assert "intra.bytes_per_s_one_way" in CHIPS["trainium1"].unknown
    assert CHIPS["tpu-v5p"].unknown == ("tdp_w",)


def test_counts_and_calibration_say_where_they_come_from():
    row = CHIPS["a100-80-pcie"]
    domain = next(count for count in row.counts if count.path == "intra.max_domain_chips")
    assert (domain.value, domain.unit, domain.source) == (8, "chips", "vendor datasheet (not re-read)")
    assumed = {value.name: value.assumed for value in row.calibration}
    assert assumed["gemm_efficiency_frac"] is False
    assert assumed["link_efficiency_frac"] is True
    assert "0.811 measured" in row.calibration_source


def test_every_row_has_every_figure_of_its_chip():
    for row in CHIPS.values():
        stated = {figure.path for figure in row.figures}
        assert {f"peak_flop_per_s.{dtype}" for dtype in chip(row.id).peak_flop_per_s} <= stated
        assert not stated & set(row.unknown)


def test_a_counted_model_shows_its_deviation():
    row = MODELS["llama-3.1-405b"]
    assert row.parameters_basis == "published"
    assert row.deviation_frac == pytest.approx(0.0021, abs=1e-4)
    assert MODELS["kimi-k2"].parameters_basis == "derived"
    assert MODELS["kimi-k2"].deviation_frac is None


def test_kinds_of_model_and_attention():
    assert (MODELS["deepseek-v3"].kind, MODELS["deepseek-v3"].attention) == ("mixture of experts", "latent")
    assert (MODELS["palm-540b"].kind, MODELS["palm-540b"].attention) == ("dense", "multi-query")
    assert MODELS["mpt-7b"].attention == "multi-head"
    assert MODELS["qwen3-8b"].attention == "grouped-query"
    assert MODELS["bloom-176b"].unverified


def test_rows_do_not_change_the_catalogue():
    before = catalog_fingerprint()
    assert chip_rows() == tuple(CHIPS.values())
    assert catalog_fingerprint() == before
