"""Convolutions: 2 N Y K (C / g) k operations; figures as the framework's own counter gives them where it does."""

import pytest

from tests.unit.work.work_examples import BF16, FP32, known, work

X = ([2, 8, 16, 16], FP32)
ONES = "[1, 1]"


def forward(weight: list[int], stride: str, padding: str, dilation: str, groups: str):
    return known("aten::convolution", X, (weight, FP32), None, stride, padding, dilation, "False", "[0, 0]", groups)


@pytest.mark.parametrize(
    ("weight", "stride", "padding", "dilation", "groups", "flop", "side"),
    [
        ([16, 8, 3, 3], ONES, "[0, 0]", ONES, "1", 903_168, 14),
        ([16, 8, 3, 3], "[2, 2]", ONES, ONES, "1", 294_912, 8),
        ([16, 2, 3, 3], ONES, "[0, 0]", "[2, 2]", "4", 165_888, 12),
        ([16, 8, 3, 3], "(1,1)", "(1,1)", "(1,1)", "1", 2 * 2 * 256 * 16 * 8 * 9, 16),
    ],
)
def test_forward(weight, stride, padding, dilation, groups, flop, side):
    found = forward(weight, stride, padding, dilation, groups)
    numbers = 2 * 8 * 16 * 16 + 16 * weight[1] * 9 + 2 * 16 * side * side
    assert (found.flop, found.moved_bytes, found.format) == (flop, numbers * 4, "fp32")


def test_depthwise_has_one_channel_a_filter():
    found = known("aten::convolution", X, ([8, 1, 3, 3], FP32), None, ONES, ONES, ONES, "False", "[0, 0]", "8")
    assert found.flop == 2 * 2 * 256 * 8 * 9


def test_transposed_counts_from_the_input():
    found = known("aten::convolution", X, ([8, 6, 4, 4], FP32), None, "[2, 2]", ONES, ONES, "True", "[0, 0]", "1")
    assert found.flop == 786_432
    assert found.moved_bytes == (2 * 8 * 256 + 8 * 6 * 16 + 2 * 6 * 32 * 32) * 4


@pytest.mark.parametrize(("wanted", "gradients"), [("[True, True, False]", 2), ("[False, True, True]", 1)])
def test_backward_is_a_forward_for_each_gradient(wanted, gradients):
    grad, weight = ([2, 16, 14, 14], FP32), ([16, 8, 3, 3], FP32)
    literals = ("[0]", ONES, "[0, 0]", ONES, "False", "[0, 0]", "1", wanted)
    found = known("aten::convolution_backward", grad, X, weight, *literals)
    assert found.flop == gradients * 903_168
    assert found.moved_bytes == (2 * 16 * 196 + gradients * (2 * 8 * 256 + 16 * 8 * 9)) * 4


def test_backends_order_their_literals_otherwise():
    weight = ([16, 8, 3, 3], FP32)
    assert known("aten::cudnn_convolution", X, weight, ONES, "[2, 2]", ONES, "1", "False").flop == 294_912
    assert known("aten::miopen_convolution", X, weight, None, ONES, "[2, 2]", ONES, "1", "False").flop == 294_912


def test_older_profilers_without_literals():
    grad, weight = ([2, 16, 8, 8], FP32), ([16, 8, 3, 3], FP32)
    found = known("aten::cudnn_convolution_backward_input", None, grad, weight)
    assert found.flop == 294_912
    assert "not stated" in found.assumed
    assert work("aten::cudnn_convolution", X, weight) is None
    assert work("aten::cudnn_convolution_backward_weight", None, grad, X) is None


def test_a_winograd_kernel_says_that_it_needs_less():
    weight = ([16, 8, 3, 3], FP32)
    found = known(
        "aten::cudnn_convolution", X, weight, ONES, ONES, ONES, "1", "False", kernel="volta_scudnn_winograd_128x128"
    )
    assert "direct" in found.assumed


@pytest.mark.parametrize("weight", [[16, 7, 3, 3], [16, 8, 99, 99]])
def test_shapes_that_do_not_fit_have_no_work(weight):
    assert work("aten::convolution", X, (weight, FP32), None, ONES, ONES, ONES, "False", "[0, 0]", "1") is None


def test_one_dimension_with_one_literal():
    found = known(
        "aten::convolution", ([2, 8, 16], BF16), ([4, 8, 3], BF16), None, "[1]", "[1]", "[1]", "False", "[0]", "1"
    )
    assert found.flop == 2 * 2 * 16 * 4 * 8 * 3
