"""Measurements of the network: bytes of the peers' protocols, exact counts, all figures there."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tidings.filters import parse
from tidings.studies.host.process_usage import running_seconds
from tidings.studies.network import (
    route_bench,
    route_durable,
    route_flow,
    route_interests,
    route_lookup,
    route_parts,
    route_peers,
    route_preprocessors,
    steady_publishing,
)
from tidings.studies.network.direct import two_ways
from tidings.studies.network.route_bench import RouteCase, bench_route, run_system
from tidings.studies.network.route_flow import Missing, Receiver, System, pump, send_paced
from tidings.studies.network.route_lookup import Lookup, deep_size, flatness, look_up
from tidings.studies.workloads.workloads import make_workload

pytestmark = pytest.mark.usefixtures("forked")

SIZE, COUNT = 50, 40


# -- counting --------------------------------------------------------------------------------------


class Middle:
    """A thread that passes bytes on, or does something else with them."""

    def __init__(self, receivers: int, change: Callable[[bytes], bytes]) -> None:
        self.client, self.ours = socket.socketpair()
        pairs = [socket.socketpair() for _ in range(receivers)]
        self.outs = [pair[0] for pair in pairs]
        frames = [number.to_bytes(8, "big") * 5 + bytes(10) for number in range(COUNT)]
        self.system = System(
            "middle", [], self.client, [Receiver(pair[1], SIZE, 40) for pair in pairs],
            b"".join(frames), SIZE, 40, self.stop,
        )  # fmt: skip
        self._change = change
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while data := self.ours.recv(1 << 16):
            for out in self.outs:
                out.sendall(self._change(data))

    def stop(self) -> None:
        self.client.close()
        self._thread.join()
        for one in (self.ours, *self.outs, *(one.socket for one in self.system.receivers)):
            one.close()


@pytest.fixture
def middle() -> Iterator[Callable[..., System]]:
    made: list[Middle] = []

    def make(receivers: int, change: Callable[[bytes], bytes] = lambda data: data) -> System:
        made.append(Middle(receivers, change))
        return made[-1].system

    yield make
    for one in made:
        one.stop()


@pytest.mark.parametrize("receivers", [1, 3])
def test_what_goes_through_is_counted(middle: Callable[..., System], receivers: int) -> None:
    system = middle(receivers)
    for _ in range(2):
        found = pump(system, 0.05, 100)
        assert found.notifications > 0
        assert [one.received for one in system.receivers] == [
            found.notifications * SIZE
        ] * receivers
        assert found.rate == found.notifications / found.seconds


def test_no_more_than_the_window_is_in_flight(middle: Callable[..., System]) -> None:
    most, lock = [0], threading.Event()

    def hold(data: bytes) -> bytes:
        most[0] += len(data) if not lock.is_set() else 0
        lock.wait(0.3)
        return data

    system = middle(1, hold)
    threading.Timer(0.2, lock.set).start()
    pump(system, 0.1, 100)
    assert 0 < most[0] <= 100 * SIZE


def test_what_is_lost_or_too_much_is_found_out(
    middle: Callable[..., System], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_flow, "PATIENCE", 0.3)
    lost = iter([True])
    with pytest.raises(Missing, match="and then none for"):
        pump(middle(1, lambda data: data[SIZE:] if next(lost, False) else data), 0.05, 100)
    lost = iter([True])
    with pytest.raises(Missing, match="lost some of"):
        send_paced(
            middle(1, lambda data: data[SIZE:] if next(lost, False) else data), 1000, 0.05, 100
        )
    more = iter([True])
    with pytest.raises(Missing, match=r"expected|then none"):
        pump(middle(1, lambda data: data + b"x" if next(more, False) else data), 0.05, 100)


def test_latency_is_from_when_it_was_due(middle: Callable[..., System]) -> None:
    quick = send_paced(middle(2), 5000, 0.2, 1000)
    assert len(quick) == 2 * 1000
    assert (quick >= 0).all()

    def slow(data: bytes) -> bytes:
        threading.Event().wait(0.02)
        return data

    assert np.median(send_paced(middle(1, slow), 1000, 0.2, 50)) >= 20


# -- peers -----------------------------------------------------------------------------------------


def test_mqtt_packets() -> None:
    assert route_peers.mqtt_connect("ab") == b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x00\x00\x02ab"
    assert route_peers.mqtt_subscribe(1, ["t"]) == b"\x82\x06\x00\x01\x00\x01t\x00"
    assert route_peers.mqtt_publish("t", b"xyz") == b"\x30\x06\x00\x01txyz"
    assert route_peers.mqtt_packet(0x30, bytes(127))[:2] == b"\x30\x7f"
    assert route_peers.mqtt_packet(0x30, bytes(321))[:3] == b"\x30\xc1\x02"


def test_nats_lines() -> None:
    assert route_peers.nats_publish("t", b"xyz") == b"PUB t 3\r\nxyz\r\n"
    assert route_peers.nats_subscribe("t", 7) == b"SUB t 7\r\n"
    assert route_peers.nats_message("t", 7, b"xyz") == b"MSG t 7 3\r\nxyz\r\n"


@pytest.mark.parametrize("name", [*route_peers.PROGRAMS])
def test_a_peer_forwards_everything(name: str) -> None:
    if route_peers.program(name) is None:
        pytest.skip(f"{name} is not installed here")
    with run_system(name, RouteCase("some", 20, 3), 1) as system:
        found = pump(system, 0.1, 500)
        assert found.notifications > 0
        assert len(send_paced(system, 2000, 0.1, 1000)) == 600


def test_a_peer_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_bench, "program", lambda _: None)
    report = bench_route([], seconds=0.1)
    assert report.absent == [
        "mosquitto is not installed, so it was left out",
        "nats-server is not installed, so it was left out",
    ]


# -- the parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [RouteCase("some", 20, 2), RouteCase("other", 20, 2, relabelled=True)],
    ids=lambda one: one.name,
)
def test_routers_forward_everything(case: RouteCase) -> None:
    with run_system("tidings", case, 1, hops=2) as system:
        assert len(system.pids) == 2
        found = pump(system, 0.1, 2000)
        assert found.notifications > 0
        assert len(send_paced(system, 2000, 0.1, 1000)) == 400


def test_durable_publishing(tmp_path: Path) -> None:
    found = route_durable.measure_durable(tmp_path, 0.1, 1, 100, b"payload")
    assert len(found.agent_rates) == len(found.raw_rates) == 1
    assert found.told >= 20 + 100 + 100
    assert 0 < found.alone_p50 <= found.alone_p99
    assert 0 < found.sync_p50 <= found.sync_p99


def test_parts_that_are_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_parts, "FILTERS", 50)
    monkeypatch.setattr(route_parts, "ROWS", 300)
    found = route_parts.measure_parts(tmp_path, 0.05, 2, 20)
    assert len(found.rates) == len(found.told_rates) == 2
    assert found.told >= 3 * 300
    assert found.told % 300 == 0
    assert found.marks >= 1
    assert found.filters == 50


def test_preprocessors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_preprocessors, "FILTERS", 50)
    monkeypatch.setattr(route_preprocessors, "EVENTS", 300)
    monkeypatch.setattr(route_preprocessors, "ENOUGH", 1)
    found = route_preprocessors.measure_preprocessors(tmp_path, 0.05, 2, 1000, b"payload")
    assert len(found.rates) == 2
    assert found.published >= 6 * 500
    assert min(found.alone, found.helped, found.ratio, *found.rates) > 0
    assert found.filters == 50


def test_two_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_ways, "OTHERS", 30)
    monkeypatch.setattr(two_ways, "WARM", 10)
    found = two_ways.measure_direct(tmp_path, 0.2, 1)
    assert [one.name for one in found.ways] == ["tree", "direct"]
    assert [one.notifications for one in found.ways] == [100, 100]
    assert all(0 < one.p50 <= one.p99 and one.root > 0 for one in found.ways)
    assert all(one.routers > 0 for one in found.ways)


def test_new_interests_among_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_interests, "ALONE", 20)
    monkeypatch.setattr(steady_publishing, "PUBLISHED", 2000.0)
    found = route_interests.measure_interests(tmp_path, 0.2, 3000)
    assert [(one.rate, one.count) for one in found.asked] == [(0.0, 20), (500.0, 100), (500.0, 100)]
    assert all(0 < one.p50 <= one.p99 <= one.most for one in found.asked)
    assert 0 < found.asked[2].publication_p50 <= found.asked[2].publication_p99
    assert [one.received > 0 for one in found.asked] == [False, False, True]
    assert found.restart > 0
    assert found.memory > 0


def test_a_missing_notification_fails_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steady_publishing, "PUBLISHED", 2000.0)
    monkeypatch.setattr(
        route_interests, "draw_contents", lambda: [b'{"n": 1}'] * 19 + [b'{"n": 2}']
    )
    monkeypatch.setattr(route_durable, "PATIENCE", 1.0)
    monkeypatch.setattr(route_interests, "ALONE", 1)
    with pytest.raises(Missing, match="the receiver got"):
        route_interests.measure_interests(tmp_path, 0.1, 300)


def test_publications_match_few_interests() -> None:
    workload = make_workload("mixed", 2000, 200)
    filters = [parse(text) for _, text in workload.texts()]
    contents = [msgspec.json.decode(one) for one in steady_publishing.draw_contents()[:200]]
    assert all(parse("n = 1 AND a12 IS NOT NULL").matches(one) for one in contents)
    whole = workload.events.to_pylist()
    few, many = (sum(f.matches(one) for f in filters for one in some) for some in (contents, whole))
    assert few <= 20 < many  # 0.7 and 76 expected


def test_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_lookup, "NOTIFICATIONS", 50)
    found = look_up(["baseball", "traffic"], [10, 200])
    assert [(one.scenario, one.subscribers) for one in found] == [
        ("baseball", 10), ("baseball", 200), ("traffic", 10), ("traffic", 200),
    ]  # fmt: skip
    assert all(one.subscription > 0 and one.frame > 0 for one in found)
    assert found[1].topics > found[0].topics
    assert found[1].table_bytes > found[0].table_bytes


def test_flatness() -> None:
    def run(subscribers: int, fresh: float, ids: float) -> Lookup:
        return Lookup("s", subscribers, 1, ids, 1.0, fresh, 1.0, 1.0, 1.0, 1)

    few = [run(10, 9.0, 1.0), run(1000, 2.0, 2.0)]
    assert flatness(few) == []
    (one,) = flatness([*few, run(10_000, 4.0, 4.0), run(100_000, 3.0, 1.0)])
    assert (one.notification, one.id) == (1.5, 3.0)


def test_sizes_of_objects() -> None:
    shared = [1, 2, 3]
    assert deep_size([shared, shared]) == deep_size([shared, ()]) - deep_size(())
    assert deep_size({"a": shared}) > deep_size(shared)


def test_processor_time_of_a_process() -> None:
    start, before = time.process_time(), running_seconds(os.getpid())
    while time.process_time() < start + 0.05:
        pass
    spent = running_seconds(os.getpid()) - before
    assert 0.045 < spent < 0.05 + 1.0  # other threads of this process count too
