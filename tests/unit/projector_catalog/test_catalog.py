import pytest

from projector import catalog
from projector.catalog import CHIP_FOLDER, architecture, catalog_fingerprint, chip, load_architectures, load_chips
from projector.errors import InvalidDescription, UnknownName

B200 = (CHIP_FOLDER / "b200.yaml").read_text()


def test_a_chip_is_found_by_alias():
    assert chip("v5p").id == "tpu-v5p"
    assert chip(" NVIDIA H100 80GB HBM3 ").id == "h100-sxm"
    assert chip("Trillium").id == "tpu-v6e"


def test_an_unknown_chip_names_the_nearest():
    with pytest.raises(UnknownName) as caught:
        chip("h10")
    assert "h100" in caught.value.nearest


def test_an_unknown_model_names_the_nearest():
    with pytest.raises(UnknownName) as caught:
        architecture("llama-3.1-7b")
    assert "llama-3.1-8b" in caught.value.nearest


def test_a_model_that_is_not_modelled_says_why():
    with pytest.raises(InvalidDescription, match=r"'MegaScale-175B' is not modelled: sliding-window attention"):
        architecture("MegaScale-175B")
    with pytest.raises(InvalidDescription, match="residual attention across layers"):
        architecture("moonshotai/kimi-k3")


def test_one_chip_by_id_reads_one_file_and_no_model(monkeypatch):
    read = []
    monkeypatch.setattr(catalog, "_bundled_chip", lambda path: read.append(path.name))
    monkeypatch.setattr(catalog, "_bundled_architecture", lambda path: pytest.fail(f"{path} was read"))
    chip("H100_SXM")
    assert read == ["h100-sxm.yaml"]


@pytest.mark.parametrize("name", ["../chips/b200", "", " ", "b200.yaml"])
def test_a_name_is_no_path_and_not_nothing(name):
    with pytest.raises(UnknownName):
        chip(name)
    with pytest.raises(UnknownName):
        architecture(name)


def test_links_and_networks_that_no_source_states_are_unknown():
    assert chip("tpu7x").inter.bytes_per_s_one_way is None
    assert chip("rtx-pro-6000").inter.bytes_per_s_one_way is None
    assert chip("trn1").intra.bytes_per_s_one_way is None


def test_fabrics_of_every_kind():
    assert chip("l40s").intra.kind == "pcie"
    assert chip("h100-nvl").intra.bridge_bytes_per_s_one_way.value == 300e9
    assert (chip("mi355x").intra.kind, chip("mi355x").intra.links_per_chip) == ("mesh", 7)
    assert chip("gb200").intra.max_domain_chips == 72
    assert (chip("trn2").intra.kind, chip("trn2").devices_per_chip) == ("torus", 8)
    assert (chip("ironwood").devices_per_chip, chip("mi250x").devices_per_chip) == (2, 2)


def test_figures_as_printed():
    """Spot checks against the datasheets the files cite."""
    assert chip("tpu-v5p").peak_flop_per_s["bf16"].value == 459e12
    assert chip("tpu-v5e").intra.bytes_per_s_one_way.value == 4 * 45e9
    assert chip("a100-80-sxm").hbm_bytes_per_s.value == 2.039e12
    assert "fp8" not in chip("a100").peak_flop_per_s
    assert chip("mi300x").intra.bytes_per_s_one_way.value == 7 * 64e9


def test_the_fingerprint_is_stable_and_a_sha256():
    assert catalog_fingerprint() == catalog_fingerprint()
    assert len(catalog_fingerprint()) == 64


def write(folder, name, text):
    (folder / name).write_text(text)
    return folder


def test_a_new_chip_is_one_file(tmp_path):
    text = B200.replace("id: b200", "id: b250")
    assert [profile.id for profile in load_chips(write(tmp_path, "b250.yaml", text))] == ["b250"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (B200.replace("latency_s: 1.0e-6", "latency_s: -1"), r"b200.yaml: intra.latency_s"),
        (B200 + "\ncolour: green\n", r"b200.yaml: colour"),
        (B200 + "\nvendor: AMD\n", "a key occurs twice"),
        ("id: [", "b200.yaml cannot be read"),
        ("", "b200.yaml"),
    ],
)
def test_a_broken_chip_file_is_named_with_its_fault(tmp_path, text, says):
    with pytest.raises(InvalidDescription, match=says):
        load_chips(write(tmp_path, "b200.yaml", text))


def test_a_misnamed_chip_file_is_refused(tmp_path):
    with pytest.raises(InvalidDescription, match=r"b300.yaml describes 'b200'"):
        load_chips(write(tmp_path, "b300.yaml", B200))


def test_two_chips_cannot_share_an_alias(tmp_path):
    write(tmp_path, "b200.yaml", B200)
    with pytest.raises(InvalidDescription, match="claim the chip name 'nvidia-b200'"):
        load_chips(write(tmp_path, "b250.yaml", B200.replace("id: b200", "id: b250").replace("b200-sxm", "b250-sxm")))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read"),
        ('{"name": "m", "name": "m"}', "a key occurs twice"),
        ('{"name": "m"}', "m.json: layers"),
    ],
)
def test_a_broken_model_file_is_named_with_its_fault(tmp_path, text, says):
    with pytest.raises(InvalidDescription, match=says):
        load_architectures(write(tmp_path, "m.json", text))
