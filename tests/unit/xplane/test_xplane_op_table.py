"""Roofline figures: only what is stated decides, the rest is unknown."""

import pytest

from traces.xplane.cost import Cost
from traces.xplane.hlo import OpClass
from traces.xplane.op_table import Kpis, OpRow
from traces.xplane.planes import Peaks
from traces.xplane.profile import DeviceProfile, Op, OpSum
from traces.xplane.report import bound_of, common_peaks, kpis, op_table, utilisations

SECOND_PS = 10**12
PEAKS = Peaks(flop_per_s=100.0, hbm_bytes_per_s=10.0, vmem_read_bytes_per_s=50.0, vmem_write_bytes_per_s=50.0)


def op(category: str = "loop fusion", op_class: OpClass | None = None, **cost: int) -> Op:
    known = op_class or OpClass("compute", "elementwise")
    return Op("fusion.1", "%fusion.1", category, 0, "", known, Cost(**cost) if cost else None)


def device(*sums: OpSum, peaks: Peaks = PEAKS, steps: int = 1, window_ps: int = 2 * SECOND_PS) -> DeviceProfile:
    busy = sum(one.own_ps for one in sums)
    return DeviceProfile(peaks, sums, steps, window_ps, busy, 0, 0, 0, None, 0)


def once(one: Op) -> OpSum:
    return OpSum(one, 1, SECOND_PS, SECOND_PS, one.cost)


def row(one: Op, peaks: Peaks = PEAKS) -> OpRow:
    (only,) = op_table([device(once(one), peaks=peaks)])
    return only


def headline(*profiles: DeviceProfile) -> Kpis:
    found = kpis(profiles)
    assert found is not None
    return found


def test_the_most_used_resource_bounds_the_operator() -> None:
    found = row(op(flop=40, hbm_bytes=8, vmem_read_bytes=5))
    assert (found.bound, found.roofline_efficiency_frac) == ("hbm", 0.8)
    assert (found.compute_efficiency_frac, found.hbm_utilisation_frac, found.memory_utilisation_frac) == (0.4, 0.8, 0.8)
    assert row(op(flop=90, hbm_bytes=8)).bound == "compute"
    assert row(op(vmem_write_bytes=30)).bound == "vmem_write"


def test_without_a_stated_peak_a_resource_is_not_judged() -> None:
    found = row(op(flop=40, hbm_bytes=8), Peaks(flop_per_s=100.0))
    assert (found.bound, found.roofline_efficiency_frac, found.hbm_utilisation_frac) == ("compute", 0.4, None)
    found = row(op(flop=40, hbm_bytes=8), Peaks())
    assert (found.bound, found.roofline_efficiency_frac, found.compute_efficiency_frac) == ("unknown", None, None)


def test_without_a_stated_cost_nothing_is_known() -> None:
    found = row(op())
    assert (found.bound, found.roofline_efficiency_frac, found.attributed) == ("unknown", None, True)


def test_an_operator_nobody_can_name_has_no_bound_even_with_a_cost() -> None:
    nameless = Op("rest", "rest", "", 0, "", None, Cost(flop=90))
    found = row(nameless)
    assert (found.bound, found.roofline_efficiency_frac, found.attributed) == ("unknown", None, False)


def test_what_contains_other_operators_has_no_bound() -> None:
    assert row(op("while", flop=90)).bound == "unknown"


def test_figures_above_one_are_left_as_they_are() -> None:
    assert row(op(hbm_bytes=30)).roofline_efficiency_frac == 3.0


def test_peaks_on_which_devices_differ_are_unknown() -> None:
    other = Peaks(flop_per_s=100.0, hbm_bytes_per_s=20.0)
    assert common_peaks([PEAKS, other]) == Peaks(flop_per_s=100.0)


def test_an_operator_whose_cost_one_device_does_not_state_has_none() -> None:
    known = op(flop=40)
    (found,) = op_table([device(once(known)), device(OpSum(known, 1, SECOND_PS, SECOND_PS, None))])
    assert (found.count, found.bound) == (2, "unknown")


def test_means_are_over_steps_of_the_devices_that_mark_them() -> None:
    marked = device(once(op()), steps=4, window_ps=8 * SECOND_PS)
    unmarked = device(once(op()), steps=0, window_ps=100 * SECOND_PS)
    found = headline(marked, unmarked)
    assert (found.devices, found.steps, found.step_time_s, found.duty_cycle_frac) == (1, 4, 2.0, 0.125)
    assert found.basis == "4 complete steps on 1 device"


def test_without_steps_the_window_stands_and_says_so() -> None:
    found = headline(device(once(op()), steps=0))
    assert (found.steps, found.step_time_s, found.window_s, found.duty_cycle_frac) == (0, None, 2.0, 0.5)
    assert "marks no steps" in found.basis


def test_goodput_is_roofline_time_over_the_step() -> None:
    found = headline(device(once(op(flop=40, hbm_bytes=8))))
    assert (found.costed_frac, found.program_goodput_frac) == (1.0, pytest.approx(0.4))


@pytest.mark.parametrize("peaks", [Peaks(), Peaks(flop_per_s=100.0), Peaks(hbm_bytes_per_s=10.0)])
def test_no_goodput_without_peaks(peaks: Peaks) -> None:
    assert headline(device(once(op(flop=40, hbm_bytes=8)), peaks=peaks)).program_goodput_frac is None


def test_no_goodput_where_much_of_the_work_is_not_stated() -> None:
    found = headline(device(once(op(flop=40)), once(op())))
    assert (found.costed_frac, found.program_goodput_frac) == (0.5, None)


def test_no_device_no_figures() -> None:
    assert kpis([]) is None
    assert op_table([]) == ()


def test_bound_of_nothing() -> None:
    assert bound_of({}) == "unknown"
    assert bound_of(utilisations(Cost(), PEAKS, SECOND_PS)) == "unknown"
    assert utilisations(Cost(flop=1), PEAKS, 0) == {}
