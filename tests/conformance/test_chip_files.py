"""Every chip file: valid, sourced, with directions stated and names nobody else claims."""

import re
from collections import Counter

import pytest

from projector.catalog import chip, chips
from projector.specs.hardware import Calibration, Figure, HardwareProfile

CHIPS = pytest.mark.parametrize("profile", chips(), ids=lambda profile: profile.id)
EXPECTED = set(
    """
    a100-40-sxm a100-80-sxm a100-80-pcie h100-sxm h100-pcie h100-nvl h100-sxm-96gb-hbm2e(500w) h200 h800
    b200 b300 gb200 gb300 l40s l4 rtx-pro-6000-blackwell-se mi250x mi300x mi325x mi355x trainium1 trainium2
    tpu-v4 tpu-v5e tpu-v5p tpu-v6e tpu-v7x-ironwood
    """.split()  # noqa: SIM905 - a word list reads better
)
EFFICIENCIES = set(Calibration.model_fields) - {"source", "fitted", "assumed"}


def figures(profile: HardwareProfile) -> list[Figure]:
    optional = (
        profile.intra.bytes_per_s_one_way,
        profile.intra.bridge_bytes_per_s_one_way,
        profile.inter.bytes_per_s_one_way,
        profile.price_usd_per_chip_hour,
        profile.tdp_w,
    )
    return [
        *profile.peak_flop_per_s.values(),
        profile.hbm_bytes,
        profile.hbm_bytes_per_s,
        *(figure for figure in optional if figure is not None),
    ]


def test_the_known_chips_are_there():
    assert {profile.id for profile in chips()} >= EXPECTED


@CHIPS
def test_every_figure_has_source_and_date(profile):
    for figure in figures(profile):
        assert figure.source.strip()
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", figure.retrieved)
        if "not re-read" in figure.source:
            assert figure.unverified, f"{figure} was recalled and does not say so"


@CHIPS
def test_counts_and_latencies_say_where_they_come_from(profile):
    needed = {"chips_per_node", "intra.max_domain_chips", "intra.latency_s", "inter.latency_s"}
    if profile.intra.links_per_chip is not None:
        needed.add("intra.links_per_chip")
    if profile.intra.wrap_multiple is not None:
        needed.add("intra.wrap_multiple")
    assert set(profile.sources) == needed
    assert all(text.strip() for text in profile.sources.values())
    assert profile.calibration.source.strip()


@CHIPS
def test_link_bandwidth_is_one_way_and_adds_up(profile):
    """The field says one way and per chip; where links are counted, the sum over links has to be divisible."""
    link = profile.intra.bytes_per_s_one_way
    if profile.intra.links_per_chip is not None and link is not None:
        per_link = link.value / profile.intra.links_per_chip
        assert f"{per_link / 1e9:g} GB/s one way a link" in link.source or profile.intra.kind == "mesh"


@CHIPS
def test_a_torus_has_two_links_a_dimension_and_a_wrap_rule(profile):
    fabric = profile.intra
    if fabric.kind == "torus":
        assert fabric.links_per_chip == 2 * fabric.torus_dimensions
        assert fabric.wrap_multiple is not None
    else:
        assert fabric.torus_dimensions is None
        assert fabric.wrap_multiple is None


@CHIPS
def test_what_nobody_measured_on_the_chip_says_so(profile):
    calibration = profile.calibration
    assert set(calibration.assumed) | set(calibration.fitted) <= EFFICIENCIES
    measured = EFFICIENCIES - set(calibration.assumed) - set(calibration.fitted)
    assert not measured or "measured" in calibration.source
    assert not calibration.fitted or "fitted" in calibration.source
    if len(calibration.assumed) == len(EFFICIENCIES):
        assert calibration.source.startswith("assumed")


@CHIPS
def test_a_link_without_a_figure_is_explained(profile):
    if profile.intra.bytes_per_s_one_way is None or profile.inter.bytes_per_s_one_way is None:
        assert profile.note


@CHIPS
def test_figures_are_of_the_right_order(profile):
    """Catches a slipped unit: base SI, dense, per chip."""
    assert 1e14 < profile.peak_flop_per_s["bf16"].value < 3e15
    assert 1e10 < profile.hbm_bytes.value < 1e12
    assert 2e11 < profile.hbm_bytes_per_s.value < 2e13
    inside, between = profile.intra.bytes_per_s_one_way, profile.inter.bytes_per_s_one_way
    if inside is not None:
        assert 3e10 <= inside.value < 2e12
    if between is not None:
        assert 1e9 < between.value < 2e11
    assert 1e-7 < profile.intra.latency_s < profile.inter.latency_s < 1e-3


@CHIPS
def test_narrower_formats_are_not_slower(profile):
    peaks = [profile.peak_flop_per_s[dtype].value for dtype in ("fp32", "bf16", "fp8", "fp4")
             if dtype in profile.peak_flop_per_s]  # fmt: skip
    assert peaks == sorted(peaks)


def test_names_are_unique_and_found_in_any_spelling():
    squeezed = Counter(
        re.sub(r"[\s_-]+", "-", name.lower()) for profile in chips() for name in {profile.id, *profile.aliases}
    )
    assert [name for name, count in squeezed.items() if count > 1] == []
    for profile in chips():
        for name in (profile.id, *profile.aliases):
            assert chip(name.upper()) is profile
            assert chip(name.replace("-", "_")) is profile
