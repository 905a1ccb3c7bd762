"""Work of the kernels of one rank: FLOP and bytes from operator shapes or compiler costs, and the roofline it reaches.

element_types  what the profiler's type names mean
call           one recorded operator call: shapes, strides, types and literals by position
gemm, custom_gemm, attention, attention_calls, paged_attention, convolution, norm, pointwise, reduction, gather, moe,
optimizer      one family of formulas a file
table          WORK_OF: operator name -> formula; the one place where an operator is added
attribution    kernels -> the operator whose work they do
class_work     sums by kind of kernel; work_of, merge_work
xla            the same out of an XLA profile's operator costs
placed         the sums beside a chip: fractions of its peaks, bound, plausibility
"""
