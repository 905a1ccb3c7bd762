"""Transfers between TPU slices, on synthetic profiles: no real one of several slices could be had."""

from dataclasses import dataclass, field

import pytest
from xplane_builder import LineBuilder, PlaneBuilder, bytes_field, number_field, space, tpu_plane

from traces.content import Content, Limits
from traces.naming import EventClass, classify
from traces.rank import rank_parts
from traces.summary import summarise
from traces.summary_types import RankSummary
from traces.trace import Category, CollectiveArgs, Trace
from traces.xplane.convert import traces_of
from traces.xplane.dcn_ops import DcnOp
from traces.xplane.decode import decode_space
from traces.xplane.hlo_text import result_bytes
from traces.xplane.megascale import megascale_table
from traces.xplane.megascale_types import MegascaleTransfer
from traces.xplane.transfers import transmitted_bytes

NS = 1_000
ALL_GATHER, ALL_REDUCE, ONE_TO_ONE = 4, 5, 2


def traces(*planes: PlaneBuilder) -> tuple[Trace, ...]:
    return traces_of(decode_space(Content("a.xplane.pb", space(*planes)), Limits()))


def only(*planes: PlaneBuilder) -> Trace:
    (trace,) = traces(*planes)
    return trace


def table(*found: Trace) -> tuple[MegascaleTransfer, ...]:
    return megascale_table([trace.profile for trace in found if trace.profile is not None])


def summary(trace: Trace) -> RankSummary:
    return rank_parts(trace).summary


def collective_info(kind: int, slices: int) -> bytes:
    """A DcnCollectiveInfoProto of two groups, each with one device of every slice."""
    group = b"".join(bytes_field(1, number_field(1, one)) for one in range(slices))
    return number_field(1, kind) + bytes_field(2, group) + bytes_field(2, group)


def attributes(rendezvous: str, transfer_type: str = "ALL_REDUCE", handler: str = "xla_megascale_runtime") -> str:
    return (
        f'frontend_attributes={{_xla_host_transfer_handler_name="{handler}",_xla_host_transfer_rendezvous="{rendezvous}"'
        + (f',_xla_megascale_transfer_type="{transfer_type}"' if transfer_type else "")
        + "}"
    )


@dataclass
class Core:
    """A TensorCore with an op line; the four operators of a transfer as XLA prints them."""

    plane: PlaneBuilder
    line: LineBuilder = field(init=False)
    kinds: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.line = self.plane.line("XLA Ops")

    def op(self, name: str, text: str, category: str, begin: int, end: int, **stats: bytes) -> None:
        if name not in self.kinds:
            self.kinds[name] = self.plane.kind(text, name, hlo_category=category, **stats)
        self.line.event(self.kinds[name], begin * NS, (end - begin) * NS)

    def compute(self, begin: int, end: int) -> None:
        self.op("fusion.1", "%fusion.1 = bf16[4] fusion(...)", "loop fusion", begin, end)

    def send(self, begin: int, end: int, told: str, *, number: int = 1, **stats: bytes) -> None:
        text = f"%send.{number} = (bf16[64,128], u32[], token[]) send(bf16[64,128] %x, token[] %t), channel_id={number}"
        self.op(f"send.{number}", f"{text}, is_host_transfer=true, {told}", "host send", begin, end, **stats)

    def send_done(self, begin: int, end: int, *, number: int = 1) -> None:
        text = f"%send-done.{number} = token[] send-done((bf16[64,128], u32[], token[]) %send.{number})"
        self.op(f"send-done.{number}", f"{text}, channel_id={number}", "host send-done", begin, end)

    def recv(self, begin: int, end: int, told: str, *, number: int = 2) -> None:
        text = f"%recv.{number} = (bf16[64,128], u32[], token[]) recv(token[] %t), channel_id={number}"
        self.op(f"recv.{number}", f"{text}, is_host_transfer=true, {told}", "host recv", begin, end)

    def recv_done(self, begin: int, end: int, *, number: int = 2) -> None:
        result = "(bf16[64,128]{1,0:T(8,128)(2,1)}, token[]{:S(8)})"
        text = f"%recv-done.{number} = {result} recv-done((bf16[64,128], u32[], token[]) %recv.{number})"
        self.op(f"recv-done.{number}", f"{text}, channel_id={number}", "host recv-done", begin, end)


BUFFER_BYTES = 64 * 128 * 2


def core(index: int = 0) -> Core:
    return Core(tpu_plane(index))


def one_transfer(index: int = 0) -> Core:
    """send 0-2, compute, send-done 40-43, recv 43-44, compute, recv-done 80-100, compute."""
    one = core(index)
    told = attributes("all-reduce.3_7")
    one.send(0, 2, told, dcn_collective_info=collective_info(ALL_REDUCE, 4))
    one.compute(2, 40)
    one.send_done(40, 43)
    one.recv(43, 44, told)
    one.compute(44, 80)
    one.recv_done(80, 100)
    one.compute(100, 120)
    return one


def test_slack_observed_and_stall_are_those_of_xprof() -> None:
    (row,) = table(only(one_transfer().plane))
    assert (row.name, row.transfer_type, row.send_op, row.recv_op) == (
        "all-reduce.3_7",
        "ALL_REDUCE",
        "send.1",
        "recv-done.2",
    )
    assert (row.devices, row.occurrences) == (1, 1)
    assert row.slack_ps == (80 - 0 - (2 + 3 + 1)) * NS
    assert row.observed_ps == 100 * NS
    assert row.stall_ps == (2 + 3 + 1 + 20) * NS == row.total_stall_ps
    assert (row.send_ps, row.send_done_ps, row.recv_ps, row.recv_done_ps) == (2 * NS, 3 * NS, 1 * NS, 20 * NS)
    assert row.transmitted_bytes == 2 * BUFFER_BYTES * 3 // 4
    assert row.required_bytes_per_s == pytest.approx(2 * BUFFER_BYTES * 3 // 4 / 74e-9)
    assert (row.host_ps, row.received_bytes_per_s) == (None, None)


def test_a_transfer_is_communication_from_send_to_recv_done_and_hidden_while_the_core_computes() -> None:
    trace = only(one_transfer().plane)
    found = summary(trace)
    assert (found.window_ns, found.compute_ns, found.communication_ns) == (120, 38 + 36 + 20, 100)
    assert (found.exposed_communication_ns, found.copy_ns, found.idle_ns) == (26, 0, 0)
    (line,) = rank_parts(trace).summary.collectives
    assert (line.collective, line.group, line.group_size, line.count) == ("all_reduce", "DCN", 4, 1)
    assert (line.total_ns, line.exposed_ns, line.message_bytes) == (100, 26, BUFFER_BYTES)
    (row,) = trace.collectives
    assert trace.name(row) == "MegaScale all-reduce.3_7"
    assert trace.collectives[row] == CollectiveArgs(
        "all_reduce", "DCN", "between slices", 4, (), "byte", None, BUFFER_BYTES
    )


def test_what_the_core_spends_in_transfers_is_communication_in_the_headline_figures() -> None:
    trace = only(one_transfer().plane)
    assert trace.profile is not None
    assert (trace.profile.communication_ps, trace.profile.busy_ps) == (26 * NS, 94 * NS)


def test_the_summary_of_a_job_lists_the_transfers() -> None:
    trace = only(one_transfer().plane)
    assert summarise([trace]).megascale == table(trace)


def test_time_in_operators_of_other_transfers_is_no_slack() -> None:
    one = core()
    first, second = attributes("a_0"), attributes("b_0", "ONE_TO_ONE")
    one.send(0, 1, first, number=1)
    one.recv(1, 2, first, number=2)
    one.send(2, 12, second, number=3)
    one.recv(12, 13, second, number=4)
    one.compute(13, 50)
    one.recv_done(50, 60, number=2)
    one.recv_done(60, 65, number=4)
    rows = {row.name: row for row in table(only(one.plane))}
    assert rows["a_0"].slack_ps == (50 - (1 + 1 + 10 + 1)) * NS
    assert rows["b_0"].slack_ps == (58 - (10 + 1 + 10)) * NS
    assert rows["b_0"].transmitted_bytes == BUFFER_BYTES
    assert rows["a_0"].transmitted_bytes is None


def test_occurrences_add_up_over_time_and_devices() -> None:
    cores = []
    for index in range(2):
        one = core(index)
        told = attributes("a_0")
        for step in range(3):
            at = 100 * step
            one.send(at, at + 2, told)
            one.recv(at + 2, at + 4, told)
            one.compute(at + 4, at + 50)
            one.recv_done(at + 50, at + 60 + 10 * index)
        cores.append(one.plane)
    (row,) = table(*traces(*cores))
    assert (row.devices, row.occurrences, row.total_stall_ps) == (2, 6, 3 * (14 + 24) * NS)
    assert row.stall_ps == 19 * NS


def test_transfers_in_flight_at_once_are_matched_first_in_first_out() -> None:
    one = core()
    told = attributes("a_0")
    one.send(0, 1, told)
    one.recv(1, 2, told)
    one.send(10, 12, told)
    one.recv(12, 13, told)
    one.recv_done(20, 24)
    one.recv_done(30, 35)
    (row,) = table(only(one.plane))
    assert (row.occurrences, row.observed_ps) == (2, (24 + 25) / 2 * NS)
    assert row.slack_ps == ((20 - 2 - 3) + (20 - 3 - 4)) / 2 * NS


def test_a_recv_before_its_send_belongs_to_it() -> None:
    one = core()
    told = attributes("a_0")
    one.recv(0, 3, told)
    one.send(3, 5, told)
    one.compute(5, 20)
    one.recv_done(20, 30)
    (row,) = table(only(one.plane))
    assert (row.stall_ps, row.recv_ps, row.slack_ps) == (15 * NS, 3 * NS, 15 * NS)


def test_a_send_done_after_the_recv_done_belongs_to_the_stall() -> None:
    one = core()
    told = attributes("a_0")
    one.send(0, 2, told)
    one.recv(2, 3, told)
    one.recv_done(20, 30)
    one.compute(30, 40)
    one.send_done(40, 47)
    trace = only(one.plane)
    (row,) = table(trace)
    assert (row.stall_ps, row.send_done_ps, row.observed_ps) == (20 * NS, 7 * NS, 30 * NS)
    assert (summary(trace).communication_ns, trace.warnings) == (37, ())


def test_many_transfers_that_never_end_are_gone_through_in_linear_time() -> None:
    one = core()
    told = attributes("a_0")
    for index in range(20_000):
        one.send(index, index + 1, told)
    for index in range(20_000):
        one.send_done(30_000 + index, 30_001 + index)
    trace = only(one.plane)
    assert table(trace) == ()
    assert any(told.startswith("40,000 operators of transfers") for told in trace.warnings)


def test_operators_that_belong_to_no_whole_transfer_count_for_themselves_aloud() -> None:
    one = core()
    told = attributes("a_0")
    one.recv_done(0, 10)
    one.compute(10, 50)
    one.send(50, 55, told)
    one.recv(55, 56, told)
    trace = only(one.plane)
    assert table(trace) == ()
    found = summary(trace)
    assert (found.communication_ns, found.exposed_communication_ns, found.copy_ns) == (16, 16, 0)
    assert any(told.startswith("3 operators of transfers between slices") for told in trace.warnings)


@pytest.mark.parametrize("handler", ["pjrt_rendezvous", "tf_rendezvous"])
def test_transfers_to_the_host_stay_copies(handler: str) -> None:
    one = core()
    told = attributes("7", "", handler)
    one.send(0, 5, told)
    one.compute(5, 50)
    one.recv(50, 51, told)
    one.recv_done(51, 60)
    trace = only(one.plane)
    assert table(trace) == ()
    assert (summary(trace).communication_ns, summary(trace).copy_ns) == (0, 15)


def megascale_plane() -> PlaneBuilder:
    return PlaneBuilder("/device:CUSTOM:Megascale Trace")


def run(plane: PlaneBuilder, device: int, rendezvous: str, begin: int, end: int, *messages: tuple[int, str]) -> None:
    """One run on the host, with the messages it received: (microseconds under way, buffer sizes)."""
    line = plane.line("Megascale")
    key = f"device_{device}_gid_{rendezvous}"
    line.event(plane.kind(key), begin * NS, (end - begin) * NS, graph_key=f"{key}$1^i0", input_size=1000)
    received = plane.kind("NetworkReceive END")
    for latency, sizes in messages:
        line.event(
            received, end * NS, 0, graph_key=f"{key}$1^i0", network_transport_latency_us=latency, buffer_sizes=sizes
        )
    line.event(plane.kind("DeviceToHost START"), begin * NS, 0, graph_key=f"{key}$1^i0")


def test_the_host_s_side_is_put_beside_the_transfer_of_each_core() -> None:
    host = megascale_plane()
    run(host, 200005, "all-reduce.3_7", 3, 83, (2, "s100005->200005d|$c0=1000,s100005->200005d|$c1=500"))
    run(host, 200001, "all-reduce.3_7", 3, 43, (1, "s200001->200001d|$c0=9999"), (0, "s100001->200001d|$c0=77"))
    first, second = traces(one_transfer(0).plane, one_transfer(1).plane, host)
    rows = [table(trace)[0] for trace in (first, second)]
    assert [(row.host_ps, row.received_bytes_per_s) for row in rows] == [
        (40 * NS, None),
        (80 * NS, pytest.approx(1500 / 2e-6)),
    ]
    (both,) = table(first, second)
    assert (both.host_ps, both.devices) == (60 * NS, 2)


def test_a_rendezvous_the_host_names_marks_a_transfer() -> None:
    one, host = core(), megascale_plane()
    told = attributes("a_0", "", "")
    one.send(0, 5, told)
    one.recv(5, 6, told)
    one.recv_done(51, 60)
    assert table(only(one.plane)) == ()
    run(host, 100000, "a_0", 3, 43)
    (row,) = table(only(one.plane, host))
    assert (row.name, row.transfer_type, row.transmitted_bytes) == ("a_0", "", None)


def test_hosts_that_serve_other_devices_are_not_matched() -> None:
    host = megascale_plane()
    run(host, 100000, "all-reduce.3_7", 3, 83)
    run(host, 100001, "all-reduce.3_7", 3, 83)
    trace = only(one_transfer().plane, host)
    assert table(trace)[0].host_ps is None
    assert any("served 2 devices, and the profile has 1 TensorCores" in told for told in trace.warnings)


def test_events_without_a_key_are_of_no_transfer() -> None:
    host = megascale_plane()
    line = host.line("DCN Ring")
    line.event(host.kind("SendRecv"), 0, 10 * NS)
    line.event(host.kind("Barrier"), 0, 10 * NS, graph_key="nothing of the kind")
    trace = only(one_transfer().plane, host)
    assert table(trace)[0].host_ps is None
    assert trace.warnings == ()


@pytest.mark.parametrize("told_by", ["operand", "channel", "number"])
def test_a_done_operator_is_found_by_what_it_waits_for(told_by: str) -> None:
    one = core()
    told = attributes("a_0")
    one.send(0, 2, told, number=1)
    one.recv(2, 3, told, number=4)
    one.compute(3, 20)
    name, operand, channel = {
        "operand": ("recv-done.9", "%recv.4", 77),
        "channel": ("recv-done.9", "...", 4),
        "number": ("recv-done.4", "...", 77),
    }[told_by]
    text = f"%{name} = (f32[10], token[]) recv-done({operand}), channel_id={channel}"
    one.op(name, text, "host recv-done", 20, 30)
    (row,) = table(only(one.plane))
    assert (row.recv_op, row.observed_ps) == (name, 30 * NS)


def test_a_done_operator_of_another_program_is_not_taken() -> None:
    plane = tpu_plane(0)
    line = plane.line("XLA Ops")
    told = f"%send.1 = (f32[4], u32[], token[]) send(%x), channel_id=1, {attributes('a_0')}"
    line.event(plane.kind(told, "send.1", hlo_category="host send", program_id=5), 0, 2 * NS)
    told = f"%recv.2 = (f32[4], u32[], token[]) recv(%t), channel_id=2, {attributes('a_0')}"
    line.event(plane.kind(told, "recv.2", hlo_category="host recv", program_id=5), 2 * NS, 2 * NS)
    done = "%recv-done.2 = (f32[4], token[]) recv-done(%recv.2), channel_id=2"
    line.event(plane.kind(done, "recv-done.2", hlo_category="host recv-done", program_id=6), 20 * NS, 2 * NS)
    trace = only(plane)
    assert table(trace) == ()
    assert summary(trace).copy_ns == 2


@pytest.mark.parametrize(
    ("kind", "ranks", "expected"),
    [
        ("ONE_TO_ONE", None, 1200),
        ("ALL_GATHER", 4, 900),
        ("ALL_TO_ALL", 4, 900),
        ("ALL_REDUCE", 4, 1800),
        ("REDUCE_SCATTER", 4, 3600),
        ("ALL_REDUCE", None, None),
        ("RAGGED_ALL_TO_ALL", 4, None),
        ("", 4, None),
    ],
)
def test_bytes_on_the_network(kind: str, ranks: int | None, expected: int | None) -> None:
    assert transmitted_bytes(DcnOp("recv_done", "a_0", kind, ranks, 1200)) == expected


def test_the_message_of_a_reduce_scatter_is_all_its_parts() -> None:
    assert DcnOp("recv_done", "a_0", "REDUCE_SCATTER", 4, 100).message_bytes == 400
    assert DcnOp("recv_done", "a_0", "REDUCE_SCATTER", None, 100).message_bytes is None
    assert DcnOp("recv_done", "a_0", "ALL_GATHER", None, 100).message_bytes == 100
    assert transmitted_bytes(DcnOp("recv_done", "a_0", "ALL_GATHER", 2, None)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%recv-done.2 = (bf16[64,128]{1,0:T(8,128)(2,1)}, token[]{:S(8)}) recv-done(%recv.2)", 16384),
        ("%recv-done.2 = (f32[3], s4[3], pred[5], token[]) recv-done(%recv.2)", 12 + 2 + 5),
        ("%recv-done.2 = f32[] recv-done(%recv.2)", 4),
        ("%recv-done.2 = (token[]) recv-done(%recv.2)", None),
        ("%recv-done.2 = (f32[99999999999999], token[]) recv-done(%recv.2)", None),
        ("%recv-done.2 = (f32[4]) recv(%recv.2)", None),
        ("recv-done", None),
    ],
)
def test_bytes_of_a_result(text: str, expected: int | None) -> None:
    assert result_bytes(text, "recv-done") == expected


def test_damaged_collective_info_tells_nothing() -> None:
    one = core()
    one.send(0, 5, attributes("a_0", ""), dcn_collective_info=b"\xff\xff\xff")
    one.recv(5, 6, attributes("a_0", ""))
    one.recv_done(51, 60)
    (row,) = table(only(one.plane))
    assert (row.transfer_type, row.transmitted_bytes) == ("", None)


def test_the_proto_alone_marks_a_transfer_and_states_its_kind() -> None:
    one = core()
    one.send(0, 5, attributes("a_0", "", ""), dcn_collective_info=collective_info(ALL_GATHER, 2))
    one.recv(5, 6, attributes("a_0", "", ""))
    one.recv_done(51, 60)
    trace = only(one.plane)
    kinds = {trace.name(int(row)) for row in trace.rows(Category.KERNEL)}
    assert kinds == {"MegaScale a_0"}
    assert set(classify(trace).event_class.tolist()) == {EventClass.COMMUNICATION}


def test_hostile_texts_of_operators_are_data() -> None:
    one = core()
    one.send(0, 5, attributes("<b>{0}%s\\'", "ALL_REDUCE"))
    one.recv(5, 6, attributes("<b>{0}%s\\'", "ALL_REDUCE") + "x" * 200_000)
    one.recv_done(51, 60)
    (row,) = table(only(one.plane))
    assert row.name == "<b>{0}%s\\'"
