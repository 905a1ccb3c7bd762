"""Device strings as profilers write them, with the memory the driver reports."""

import pytest

from projector.catalog import match_chip


@pytest.mark.parametrize(
    ("device_name", "hbm_bytes", "chip_id"),
    [
        ("NVIDIA B200", 191503138816, "b200"),
        ("NVIDIA B200", None, "b200"),
        ("NVIDIA H100 80GB HBM3", 85018279936, "h100-sxm"),
        ("NVIDIA A100-SXM4-80GB", 84990623744, "a100-80-sxm"),
        ("NVIDIA A100-SXM4-40GB", None, "a100-40-sxm"),
        ("NVIDIA A100-PG509-200", 42297524224, "a100-40-sxm"),
        ("NVIDIA A100-PG509-200", 85.0e9, "a100-80-sxm"),
        ("AMD Instinct MI300X", 206141652992, "mi300x"),
        ("AMD Instinct MI300X VF", 205571227648, "mi300x"),
        ("TPU v5 lite", None, "tpu-v5e"),
        ("TPU v5e", None, "tpu-v5e"),
        ("TPU v5p", None, "tpu-v5p"),
        ("TPU v5", None, "tpu-v5p"),
        ("TPU v6 lite", None, "tpu-v6e"),
        ("TPU v4", None, "tpu-v4"),
        ("TPU7x", None, "tpu-v7x-ironwood"),
        ("NVIDIA A100 80GB PCIe", 84987740160, "a100-80-pcie"),
        ("NVIDIA H100 PCIe", 85.0e9, "h100-pcie"),
        ("NVIDIA H100 NVL", 100.0e9, "h100-nvl"),
        ("NVIDIA H100", 85.0e9, "h100-sxm"),
        ("NVIDIA H200", 150754820096, "h200"),
        ("NVIDIA H800", 84943110144, "h800"),
        ("NVIDIA B300 SXM6 AC", 287.4e9, "b300"),
        ("NVIDIA GB200", 191.5e9, "gb200"),
        ("NVIDIA GB300", None, "gb300"),
        ("NVIDIA L40S", 47.7e9, "l40s"),
        ("NVIDIA L4", 23.6e9, "l4"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 101.9e9, "rtx-pro-6000-blackwell-se"),
        ("AMD Instinct MI325X", 274.6e9, "mi325x"),
        ("AMD Instinct MI355X", 309.2e9, "mi355x"),
        ("AMD Instinct MI355X VF", 309.2e9, "mi355x"),
        ("AMD Instinct MI250X", 68702699520, "mi250x"),  # a driver reports one of its two dies
    ],
)
def test_known_devices(device_name, hbm_bytes, chip_id):
    found = match_chip(device_name, hbm_bytes)
    assert found is not None
    assert found.id == chip_id


@pytest.mark.parametrize(
    ("device_name", "hbm_bytes"),
    [
        ("NVIDIA A100-PG509-200", None),  # 40 or 80 GB: nobody says
        ("NVIDIA A100-PCIE-40GB", 42.5e9),  # another board
        ("NVIDIA A100-SXM4-80GB", 42.5e9),  # name and memory disagree
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 10.2e9),
        ("NVIDIA GH200 480GB", 102.0e9),
        ("NVIDIA H100", 99.9e9),  # a 96 GB part: several boards have that much
        ("NVIDIA H100 80GB HBM2e", 85.0e9),
        ("NVIDIA H800 PCIe", 85.0e9),
        ("NVIDIA H200 NVL", 150.7e9),
        ("NVIDIA H20", 102.0e9),
        ("NVIDIA L40", 47.7e9),
        ("NVIDIA L40S", 23.9e9),  # half of the memory: a partition
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 101.9e9),
        ("AMD Instinct MI250X / MI250", 68702699520),
        ("AMD Instinct MI250X", 137.4e9),
        ("AMD Instinct MI350X", 309.2e9),
        ("TPU v4 lite", None),
        ("TPU v7", None),
        ("AMD Instinct MI210", 68702699520),
        ("AMD Radeon Graphics", 68702699520),
        ("Tesla V100-SXM2-32GB", 34079637504),
        ("NVIDIA GeForce RTX 2080 Ti", 11554586624),
        ("TPU v5 lite and more", None),
        ("", 206141652992),
        ("<b>ignore previous instructions</b>", 80e9),
    ],
)
def test_unsure_is_none(device_name, hbm_bytes):
    assert match_chip(device_name, hbm_bytes) is None
