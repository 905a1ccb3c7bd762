"""Sums by kind, over ranks, and from an XLA profile's costs."""

from traces.measure_types import ClassWork
from traces.work.class_work import merge_work
from traces.work.sums import class_work
from traces.work.xla import xla_work
from traces.work_types import OperatorWork
from traces.xplane.cost import Cost
from traces.xplane.hlo import OpClass
from traces.xplane.planes import Peaks
from traces.xplane.profile import DeviceProfile, Op, OpSum

US_PS = 10**6


def product(shapes: str = "[8, 8] [8, 8]", *, calls: int = 1, total_ns: int = 1000, flop: int = 1024) -> OperatorWork:
    return OperatorWork(
        operator="aten::mm",
        shapes=shapes,
        format="bf16",
        calls=calls,
        kernels=calls,
        total_ns=total_ns,
        flop=flop,
        moved_bytes=384,
    )


def gemms(*operators: OperatorWork, unknown_ns: int = 0) -> ClassWork:
    return class_work("gemm", operators, unknown_count=1 if unknown_ns else 0, unknown_ns=unknown_ns, basis="shapes")


def test_rates_are_over_the_known_time():
    found = gemms(product(calls=2, total_ns=4000), unknown_ns=6000)
    assert (found.count, found.total_ns, found.known_count, found.known_ns) == (3, 10_000, 2, 4000)
    assert (found.flop, found.moved_bytes) == (2048, 768)
    assert found.flop_per_s == 2048 / 4e-6


def test_one_uncountable_operator_leaves_the_operations_unknown():
    streaming = product().model_copy(update={"format": "vector", "flop": None})
    found = gemms(product(), streaming)
    assert (found.flop, found.flop_per_s, found.intensity_flop_per_byte) == (None, None, None)
    assert found.moved_bytes == 768


def test_nothing_known_is_nothing_claimed():
    found = gemms(unknown_ns=6000)
    assert (found.known_ns, found.moved_bytes, found.bytes_per_s, found.basis) == (0, None, None, "")


def test_few_operators_are_listed_and_all_are_summed():
    found = gemms(*(product(f"[{number}]", total_ns=number) for number in range(1, 31)))
    assert len(found.operators) == 12
    assert found.operators[0].total_ns == 30
    assert (found.formats[0].calls, found.flop) == (30, 30 * 1024)


def test_ranks_add_up():
    one = gemms(product(calls=2), unknown_ns=500)
    (found,) = merge_work([(one,), (one,), ()])
    assert (found.count, found.total_ns, found.flop, found.known_count) == (6, 3000, 4096, 4)
    assert [(operator.calls, operator.total_ns) for operator in found.operators] == [(4, 2000)]
    assert found.flop_per_s == one.flop_per_s


def test_the_order_of_ranks_does_not_matter():
    one, other = (gemms(product("[8]")),), (gemms(product("[9]", total_ns=7)),)
    assert merge_work([one, other]) == merge_work([other, one])


def op(name: str, kind: str | None, cost: Cost | None, category: str = "fusion") -> Op:
    known = None if kind is None else OpClass("compute", kind)  # type: ignore[arg-type]
    return Op(name, name, category, 0, "", known, cost)


def summed(one: Op, count: int, own_us: int) -> OpSum:
    cost = None if one.cost is None else one.cost.times(count)
    return OpSum(one, count, own_us * US_PS, own_us * US_PS, cost)


def profile(*ops: OpSum) -> DeviceProfile:
    return DeviceProfile(Peaks(), ops, 1, 10**9, 10**9, 0, 0, 0, None, 0)


def test_costs_of_a_compiler_are_work_too():
    products = op("fusion.1", "gemm", Cost(flop=1000, hbm_bytes=100))
    custom = op("custom-call.2", "attention", None)
    nameless = op("fusion.9", None, Cost(flop=5, hbm_bytes=5))
    loop = op("while.3", "other", Cost(flop=9999, hbm_bytes=9999), category="while")
    found = xla_work(profile(summed(products, 4, 8), summed(custom, 1, 2), summed(nameless, 1, 1), summed(loop, 1, 11)))
    assert [(one.kind, one.total_ns, one.known_ns) for one in found] == [
        ("gemm", 8000, 8000),
        ("attention", 2000, 0),
        ("other", 1000, 0),
    ]
    assert (found[0].flop, found[0].moved_bytes, found[0].basis) == (4000, 400, "XLA cost analysis")
    assert found[0].formats[0].format == "unknown"


def test_a_profile_without_costs_says_nothing():
    assert xla_work(profile(summed(op("fusion.1", "gemm", None), 4, 8))) == ()
