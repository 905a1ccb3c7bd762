"""What a diagnosis is made of: categories, collectives, headroom, capacity. One example each with its arithmetic."""

import pytest
from planning_examples import scaled, summary_of, sure
from test_planning_op_level import FILLER, MATMUL, collective, profile, row

from agents.findings import Diagnosis
from agents.planning.analyzer import diagnose, diagnose_breakdown
from agents.planning.capacity import with_fewer_devices, with_stated_memory
from projector.breakdown import MemoryBreakdown, TimeBreakdown
from traces.job_types import GroupSkew
from traces.measure_types import IdleSplit, StepStatistics
from traces.summary_types import Implied

TRAINING = Implied(phase=sure("training"))
GB = 1e9


def category(diagnosis: Diagnosis, name: str):
    return next(one for one in diagnosis.categories if one.name == name)


def gain(diagnosis: Diagnosis, name: str, scope: str = "class") -> float | None:
    return next(one.gain_frac for one in diagnosis.headroom if (one.scope, one.name) == (scope, name))


def test_categories_cover_the_window_and_say_what_holds_each_up() -> None:
    diagnosis = diagnose(
        summary_of(
            compute_ms=600,
            exposed_ms=200,
            copy_ms=50,
            kinds={"gemm": 400, "norm": 150, "other": 50},
            collectives=[("tp", 200)],
            implied=TRAINING,
        )
    )
    assert sum(one.share_frac for one in diagnosis.categories) == pytest.approx(1)
    assert diagnosis.categories_cover_frac == pytest.approx(0.95), "kernels of kind other are listed and not covered"
    gemm = category(diagnosis, "gemm")
    assert (gemm.share_frac, gemm.count, gemm.limiter) == (pytest.approx(0.4), 10, "arithmetic")
    assert category(diagnosis, "norm").limiter == "hbm"
    assert category(diagnosis, "all_reduce (tp)").share_frac == pytest.approx(0.2)
    assert category(diagnosis, "other").limiter == "unknown"
    assert category(diagnosis, "idle").limiter == "waiting"


def test_rows_are_grouped_by_category_however_many_there_are() -> None:
    """A thousand operators of 0.04 % each: a list of five would cover 0.2 % of the step."""
    rows = [row(f"fusion.{number}", "loop fusion", 0.04, "hbm", 0.8) for number in range(1000)]
    diagnosis = diagnose(profile(*rows, row("mm", "convolution fusion", 50, "compute", 0.7)))
    loop = category(diagnosis, "loop fusion")
    assert (loop.share_frac, loop.count, loop.limiter) == (pytest.approx(0.4), 1000, "hbm")
    assert diagnosis.categories_cover_frac == pytest.approx(1.0)


def test_what_a_profile_does_not_identify_is_listed_and_not_covered() -> None:
    diagnosis = diagnose(profile(MATMUL.model_copy(update={"share_of_step_frac": 0.12}), FILLER))
    assert category(diagnosis, "unidentified operators").share_frac == pytest.approx(0.88)
    assert diagnosis.categories_cover_frac == pytest.approx(0.12)


def test_on_chip_memory_is_a_limiter_of_its_own() -> None:
    diagnosis = diagnose(profile(row("f", "loop fusion", 60, "vmem_read", 0.9), row("g", "copy", 10, "hbm", 0.5)))
    assert category(diagnosis, "loop fusion").limiter == "on_chip_memory"


def test_collectives_of_a_table_are_told_apart_by_what_they_keep_busy() -> None:
    diagnosis = diagnose(
        profile(
            MATMUL,
            collective("all-reduce.1", 12, 0.4),
            collective("permute", 8, 0.01, "vmem_write", "collective-permute"),
            row("p2p", "custom-call", 5, event_class="communication"),
        )
    )
    limiters = {one.collective: one.limiter for one in diagnosis.collectives}
    assert limiters == {"all-reduce": "hbm", "collective-permute": "link", "custom-call": "unknown"}


def test_every_collective_is_counted_hidden_or_not() -> None:
    """Of 300 ms of communication 60 are exposed: the five sixths under kernels are told, and gain nothing."""
    summary = summary_of(
        compute_ms=900, communication_ms=300, exposed_ms=60, kinds={"gemm": 900}, collectives=[("dp", 60)]
    )
    one = summary.collectives[0].model_copy(update={"total_ns": 300_000_000})
    diagnosis = diagnose(summary.model_copy(update={"collectives": (one,)}))
    (told,) = diagnosis.collectives
    assert (told.exposed_frac, told.hidden_frac) == (pytest.approx(0.06), pytest.approx(0.24))
    assert (told.limiter, told.basis) == ("unknown", "the trace states no message sizes")
    assert gain(diagnosis, "communication") == pytest.approx(0.06)


def test_small_messages_and_late_ranks_are_no_busy_link() -> None:
    small = summary_of(
        compute_ms=300, exposed_ms=600, kinds={"gemm": 300}, collectives=[("tp", 600)], message_bytes=10 * 16_384
    )
    assert diagnose(small).collectives[0].limiter == "waiting"
    late = summary_of(compute_ms=300, exposed_ms=600, kinds={"gemm": 300}, collectives=[("dp", 600)])
    skew = GroupSkew(
        group="dp", axis="dp", ranks=(0, 1), matched=10, waiting_ns=900, transfer_ns=50, largest_wait_ns=90
    )
    one = diagnose(late.model_copy(update={"skew": (skew,)})).collectives[0]
    assert one.limiter == "waiting"
    assert "90.0 %" in one.basis, "900 of 900 + 2 x 50 ns"


def test_headroom_is_the_exposed_share_and_an_inequality() -> None:
    diagnosis = diagnose(
        summary_of(compute_ms=700, exposed_ms=180, kinds={"gemm": 700}, collectives=[("tp", 180)], implied=TRAINING)
    )
    bounds = {one.name: one for one in diagnosis.headroom if one.scope == "class"}
    assert bounds["communication"].gain_frac == pytest.approx(0.18)
    assert bounds["communication"].inequality == "new step >= 0.820 of the present one"
    assert bounds["waiting"].gain_frac == pytest.approx(0.12)
    assert gain(diagnosis, "compute_throughput", "cause") == pytest.approx(0.7)


def test_a_gain_that_nobody_could_tell_from_noise_is_zero() -> None:
    """1.5 % exposed against the 2 % that the same run differs by; 6 % against steps with a standard error of 10 %."""
    little = diagnose(summary_of(compute_ms=985, exposed_ms=15, kinds={"gemm": 985}, collectives=[("dp", 15)]))
    bound = next(one for one in little.headroom if one.name == "communication")
    assert (bound.gain_frac, bound.below_noise) == (0, True)
    assert "1.5 % <= 2.0 % of noise" in bound.inequality
    uneven = summary_of(compute_ms=940, exposed_ms=60, kinds={"gemm": 940}, collectives=[("dp", 60)])
    spread = StepStatistics(
        marks="profiler steps",
        measured=4,
        mean_ns=100,
        median_ns=100,
        deviation_ns=20,
        shortest_ns=80,
        longest_ns=120,
        conclusive=False,
    )
    ranks = (uneven.ranks[0].model_copy(update={"step_statistics": spread}),)
    assert gain(diagnose(uneven.model_copy(update={"ranks": ranks})), "communication") == 0


def test_what_nobody_could_classify_bounds_memory_as_well() -> None:
    diagnosis = diagnose(summary_of(compute_ms=1000, kinds={"other": 300, "norm": 200, "gemm": 500}, implied=TRAINING))
    assert gain(diagnosis, "memory") == pytest.approx(0.5)
    assert gain(diagnosis, "communication") == 0


def test_the_headroom_of_waiting_is_of_its_cause() -> None:
    """800 ms idle, 600 of them in the data loader: loading faster gains no more than those."""
    summary = summary_of(compute_ms=200, kinds={"gemm": 200})
    split = IdleSplit(host_bound_ns=800_000_000, launch_gap_ns=0, dependency_ns=0, unknown_ns=0, input_ns=600_000_000)
    diagnosis = diagnose(summary.model_copy(update={"idle": split}))
    assert gain(diagnosis, "waiting") == pytest.approx(0.8)
    assert gain(diagnosis, "host_idle", "cause") == pytest.approx(0.6)


def test_waiting_is_said_first_and_its_class_is_called_a_convention() -> None:
    diagnosis = diagnose(summary_of(compute_ms=100, kinds={"gemm": 100}, launch_bound_frac=0.95))
    assert diagnosis.summary.startswith("The device waits 90.0 % of the recorded window: the bottleneck is kernel")
    assert any("class compute is a convention" in limit for limit in diagnosis.limits)
    assert not diagnosis.abstained


def test_where_nothing_tells_the_class_it_abstains() -> None:
    unknown = diagnose(summary_of(compute_ms=1000, kinds={"other": 1000}, unclassified_ms=1000))
    assert unknown.abstained
    assert unknown.summary.startswith(
        "100.0 % of the recorded window is in kernels of unknown limit: no class is shown"
    )
    assert diagnose(summary_of(device=False)).abstained
    assert not diagnose(summary_of(compute_ms=900, kinds={"gemm": 900}, implied=TRAINING)).abstained


def test_the_hypothesis_and_what_overturns_it_have_their_figures() -> None:
    diagnosis = diagnose(profile(MATMUL.model_copy(update={"share_of_step_frac": 0.3}), collective("ar", 65, 0.01)))
    assert diagnosis.hypothesis == diagnosis.bottleneck == "communication"
    assert diagnosis.overturned_by == ""
    hbm = diagnose(profile(row("mm", "convolution fusion", 30, "compute", 0.7), row("f", "loop", 65, "hbm", 0.7)))
    assert hbm.hypothesis_basis.startswith("Duty cycle 95.0 %, plain all-reduce 0.0 % of the step")
    assert hbm.overturned_by == (
        "Of what is identified, operators that HBM limits take 65.0 % of the step, the costliest 'f', operators bound "
        "by the core 30.0 %."
    )


def test_figures_above_a_peak_decide_nothing_and_that_is_said() -> None:
    beyond = row("f", "loop fusion", 50, "hbm", 1.4)
    diagnosis = diagnose(profile(MATMUL.model_copy(update={"share_of_step_frac": 0.4}), beyond))
    assert diagnosis.bottleneck == "compute"
    assert any("figures above a peak" in limit for limit in diagnosis.limits)


def fitting(used: float) -> MemoryBreakdown:
    return MemoryBreakdown(weights_bytes=used * 80 * GB, capacity_bytes=80 * GB)


STEP = TimeBreakdown(
    source="modelled",
    total_s=1,
    compute_s=1,
    exposed_communication_s=0,
    overlapped_communication_s=0,
    idle_s=0,
)


@pytest.mark.parametrize(("used", "state"), [(0.5, "room"), (0.96, "near_full"), (1.2, "out_of_memory")])
def test_how_full_memory_is_projected_to_be(used, state) -> None:
    diagnosis = diagnose_breakdown(STEP, memory=fitting(used))
    assert diagnosis.capacity is not None
    assert (diagnosis.capacity.state, diagnosis.capacity.source) == (state, "modelled")
    assert (diagnosis.cause == "hbm_capacity") == (state == "out_of_memory")


def stated(diagnosis: Diagnosis, **figures) -> Diagnosis:
    asked = {"out_of_memory": None, "peak_bytes": None, "capacity_bytes": 80 * GB, "phase": "training"} | figures
    return with_stated_memory(diagnosis, **asked)


def test_a_job_that_ran_out_of_memory_is_limited_by_capacity_and_not_by_bandwidth() -> None:
    diagnosis = stated(diagnose_breakdown(STEP), out_of_memory=True)
    assert (diagnosis.bottleneck, diagnosis.cause, diagnosis.overturned) == ("memory", "hbm_capacity", True)
    assert diagnosis.overturned_by == "The job is stated to run out of device memory."
    assert diagnosis.capacity is not None
    assert (diagnosis.capacity.state, diagnosis.capacity.source) == ("out_of_memory", "stated")
    assert (diagnosis.scores["memory"], diagnosis.margin, diagnosis.ambiguous) == (1.0, 0.0, False)
    assert gain(diagnosis, "hbm_capacity", "cause") is None, "no share shows what room gains"
    assert sum(one.scope == "cause" for one in diagnosis.headroom) == 1


def test_a_training_run_at_the_cliff_is_limited_by_capacity_where_nothing_was_measured() -> None:
    """79.7 of 80 GB: 99.6 %."""
    assert stated(diagnose_breakdown(STEP), peak_bytes=79.7 * GB).cause == "hbm_capacity"
    assert stated(diagnose_breakdown(STEP), peak_bytes=77 * GB).cause == "compute_throughput"
    measured = diagnose(summary_of(compute_ms=950, kinds={"gemm": 950}, implied=TRAINING))
    told = stated(measured, peak_bytes=79.7 * GB)
    assert told.cause == "compute_throughput", "the device is busy: what it computes is known"
    assert told.capacity is not None
    assert told.capacity.state == "near_full"


def test_a_full_device_that_waits_without_a_reason_is_limited_by_capacity() -> None:
    """80 % idle with work queued; 79.5 of 80 GB at the high water."""
    summary = summary_of(compute_ms=200, kinds={"gemm": 200}, launch_bound_frac=0.1)
    ranks = (summary.ranks[0].model_copy(update={"memory_high_water_bytes": 79_500_000_000}),)
    implied = TRAINING.model_copy(update={"hbm_bytes": sure(80_000_000_000)})
    full = diagnose(summary.model_copy(update={"ranks": ranks, "implied": implied}))
    assert (full.bottleneck, full.cause, full.abstained) == ("memory", "hbm_capacity", False)
    emptier = (ranks[0].model_copy(update={"memory_high_water_bytes": 60_000_000_000}),)
    assert diagnose(summary.model_copy(update={"ranks": emptier, "implied": implied})).cause == "unknown"


def test_an_engine_that_fills_memory_does_so_on_purpose() -> None:
    diagnosis = stated(diagnose_breakdown(STEP, phase="serving"), peak_bytes=79.7 * GB, phase="serving")
    assert diagnosis.cause != "hbm_capacity"
    assert diagnosis.capacity is not None
    assert diagnosis.capacity.state == "room"


def test_fewer_devices_than_the_trace_make_room_the_question_where_nothing_else_is_shown() -> None:
    idle = diagnose(profile(row("mm", "convolution fusion", 14, "compute", 0.7)))
    assert (idle.cause, idle.abstained) == ("unknown", True)
    fewer = with_fewer_devices(idle, ran_on=256, wanted=128)
    assert (fewer.bottleneck, fewer.cause, fewer.abstained) == ("memory", "hbm_capacity", False)
    assert "up to 2 times the memory a device" in fewer.summary
    assert with_fewer_devices(idle, ran_on=128, wanted=128) == idle
    busy = diagnose(profile(MATMUL))
    assert with_fewer_devices(busy, ran_on=256, wanted=128) == busy


def test_times_seven_changes_no_share_and_no_bound() -> None:
    summary = summary_of(
        compute_ms=500, exposed_ms=300, copy_ms=50, kinds={"gemm": 400, "norm": 100}, collectives=[("tp", 300)]
    )
    once, later = diagnose(summary), diagnose(scaled(summary, 7))
    assert (once.categories, once.collectives, once.headroom) == (later.categories, later.collectives, later.headroom)
    assert once.summary == later.summary
