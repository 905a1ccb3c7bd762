"""Foreign text becomes one inert line; numbers carry their unit."""

import pytest

from agents.wording import duration, gigabytes, listed, percent, quoted, signed_percent


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("gemm_kernel<float, 128>", "gemm_kernel<float, 128>"),
        ("two\nlines\r\nand\ttab", "two lines and tab"),
        ("\x1b[31mred\x00\x07", "[31mred"),
        ("right\u202eleft\u200bhidden", "right left hidden"),
        ("x" * 500, "x" * 79 + "…"),
        ("", ""),
    ],
)
def test_quoted(text, line):
    assert quoted(text) == line


def test_numbers():
    assert (percent(0.1234), signed_percent(0.1234), signed_percent(-0.05)) == ("12.3 %", "+12.3 %", "-5.0 %")
    assert (duration(12.345), duration(0.012345), duration(8.5e-5)) == ("12.35 s", "12.3 ms", "85.0 us")
    assert duration(0.0) == "0 s"
    assert gigabytes(61.2e9) == "61.2 GB"


def test_lists():
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")
