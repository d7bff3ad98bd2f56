"""Measures the network: forwarding and its latency, compared with mosquitto and nats-server;
durable publishing, notifications that were tagged elsewhere, preprocessors, many interests, many
channels, links that bypass the tree, header lookups, and the modes of forwarding.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.network.channels import CHANNELS, IdleRun, measure_channels
from tidings.studies.network.direct import TwoWays, measure_direct
from tidings.studies.network.route_durable import Durable, measure_durable, percentiles
from tidings.studies.network.route_flow import System, Throughput, pump, send_paced
from tidings.studies.network.route_interests import INTERESTS, InterestsRun, measure_interests
from tidings.studies.network.route_lookup import SIZES, Lookup, look_up
from tidings.studies.network.route_mixed import Mixed, measure_mixed
from tidings.studies.network.route_modes import ModeRow, measure_modes
from tidings.studies.network.route_parts import PartRun, measure_parts
from tidings.studies.network.route_peers import PROGRAMS, STARTERS, program
from tidings.studies.network.route_preprocessors import Tagged, measure_preprocessors
from tidings.studies.network.route_tidings import start_tidings

PARTS = (
    "forward", "latency", "durable", "parts", "preprocessors", "interests", "channels", "direct",
    "lookup", "modes",
)  # fmt: skip
HOME = "tidings"
PAYLOAD = 200  # bytes
WINDOW = 5_000  # notifications in flight
PUBLISHING = 2_000  # publications in flight
BLOCK = 2_000  # how many notifications are encoded in advance
STEADY = 20_000.0  # notifications per second; any machine can handle this rate
HOPS = (1, 2, 3)
Note = Callable[[str], None]


class RouteCase(msgspec.Struct, frozen=True):
    """A setup: the number of labels, and of neighbours to forward to."""

    name: str
    labels: int = 1
    neighbours: int = 1
    relabelled: bool = False  # two neighbours get different labels, which peers can't do


CASES = (
    RouteCase("1 label"),
    RouteCase("1,000 labels", labels=1000),
    RouteCase("1 label, 10 neighbours", neighbours=10),
    RouteCase("1,000 labels, 2 neighbours, one relabelled", 1000, 2, relabelled=True),
)


class ForwardRun(msgspec.Struct, frozen=True):
    """Notifications through one process; medians over the rounds."""

    case: str
    system: str
    neighbours: int
    rate: float  # notifications per second
    least: float
    most: float
    per_core: float  # notifications per second of processor time of the forwarding process
    busy: float  # processor seconds per second
    notifications: int  # the total number of notifications; every neighbour received all of them
    ratio: float | None  # the rate of tidings divided by that in this row; median of rounds
    ratio_per_core: float | None


class LatencyRun(msgspec.Struct, frozen=True):
    """Milliseconds from the time a notification was due to be sent until it was received."""

    system: str
    hops: int
    load: str
    rate: float
    p50: float
    p99: float
    most: float
    notifications: int
    processes: int  # the number of processes that need a processor, including the client


class RouteReport(msgspec.Struct, frozen=True):
    machine: MachineInfo
    payload: int
    window: int
    rounds: int
    seconds: float
    absent: list[str]
    forward: list[ForwardRun]
    latency: list[LatencyRun]
    durable: Durable | None
    mixed: Mixed | None
    parts: PartRun | None
    preprocessors: Tagged | None
    interests: InterestsRun | None
    channels: IdleRun | None
    direct: TwoWays | None
    lookup: list[Lookup]
    modes: list[ModeRow]


def bench_route(
    parts: Sequence[str] = PARTS,
    *,
    seconds: float = 1.0,
    rounds: int = 5,
    peers: bool = True,
    sizes: Sequence[int] | None = None,
    interests: int = INTERESTS,
    channels: int = CHANNELS,
    seed: int = 1,
    note: Note = lambda _: None,
) -> RouteReport:
    """Measure the given parts. `note` is called with each step."""
    where = describe_machine()
    there = [name for name in PROGRAMS if peers and program(name) is not None]
    absent = [
        f"{PROGRAMS[name]} is not installed, so it was left out"
        for name in PROGRAMS if peers and name not in there
    ]  # fmt: skip
    forward, latency, lookup = list[ForwardRun](), list[LatencyRun](), list[Lookup]()
    durable, mixed, tagged, helped, many, idle, ways = None, None, None, None, None, None, None
    if "channels" in parts:
        with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
            idle = measure_channels(Path(folder), channels, note)
    if "direct" in parts:
        with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
            ways = measure_direct(Path(folder), 5 * seconds, rounds, note)
    if "forward" in parts:
        for case in CASES:
            forward += _forward(case, there, seconds, rounds, seed, note)
    if "latency" in parts:
        latency = _latency(there, seconds, seed, note)
    if "durable" in parts:
        with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
            payload = random.Random(seed).randbytes(PAYLOAD)
            durable = measure_durable(Path(folder), seconds, rounds, PUBLISHING, payload, note)
        with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
            mixed = measure_mixed(Path(folder), seconds, rounds, PUBLISHING, payload, seed=seed,
                                  peers="nats" in there, note=note)  # fmt: skip
    if "parts" in parts:
        with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
            tagged = measure_parts(Path(folder), seconds, rounds, PAYLOAD, seed=seed, note=note)
    if "preprocessors" in parts:
        with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
            payload = random.Random(seed).randbytes(PAYLOAD)
            helped = measure_preprocessors(
                Path(folder), seconds, rounds, PUBLISHING, payload, seed=seed, note=note
            )
    if "interests" in parts:
        with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
            many = measure_interests(Path(folder), 5 * seconds, interests, seed=seed, note=note)
    if "lookup" in parts:
        lookup = look_up(sizes=sizes or SIZES, seed=seed, note=note)
    modes = measure_modes(seed=seed, note=note) if "modes" in parts else []
    return RouteReport(
        machine=where,
        payload=PAYLOAD,
        window=WINDOW,
        rounds=rounds,
        seconds=seconds,
        absent=absent,
        forward=forward,
        latency=latency,
        durable=durable,
        mixed=mixed,
        parts=tagged,
        preprocessors=helped,
        interests=many,
        channels=idle,
        direct=ways,
        lookup=lookup,
        modes=modes,
    )


def _forward(
    case: RouteCase, peers: Sequence[str], seconds: float, rounds: int, seed: int, note: Note
) -> list[ForwardRun]:
    """Measure all systems in turn, round after round."""
    names = [HOME] if case.relabelled else [HOME, *peers]
    found: dict[str, list[Throughput]] = {name: [] for name in names}
    with contextlib.ExitStack() as stack:
        note(f"forwarding, {case.name}: starting")
        systems = [stack.enter_context(run_system(name, case, seed)) for name in names]
        for system in systems:
            _warm(system, seconds)
        for number in range(rounds):
            for system in systems:
                note(f"forwarding, {case.name}: {system.name}, round {number + 1} of {rounds}")
                found[system.name].append(pump(system, seconds, WINDOW))
    return [_summarise(case, name, found) for name in names]


def _warm(system: System, seconds: float) -> None:
    """Warm up a system: its first runs are slow, and a router loads its kernels only when it is
    busy."""
    for _ in range(3 * len(system.pids) if system.name == HOME else 1):
        pump(system, seconds, WINDOW)


def _summarise(case: RouteCase, name: str, found: dict[str, list[Throughput]]) -> ForwardRun:
    ours, theirs = found[HOME], found[name]
    rates = [one.rate for one in theirs]
    pairs = list(zip(ours, theirs, strict=True))
    peer = name != HOME
    return ForwardRun(
        case=case.name,
        system=name,
        neighbours=case.neighbours,
        rate=statistics.median(rates),
        least=min(rates),
        most=max(rates),
        per_core=statistics.median(one.per_core for one in theirs),
        busy=statistics.median(one.processor / one.seconds for one in theirs),
        notifications=sum(one.notifications for one in theirs),
        ratio=statistics.median(a.rate / b.rate for a, b in pairs) if peer else None,
        ratio_per_core=statistics.median(a.per_core / b.per_core for a, b in pairs)
        if peer
        else None,
    )


def _latency(peers: Sequence[str], seconds: float, seed: int, note: Note) -> list[LatencyRun]:
    found = []
    for name, hops in [*((HOME, hops) for hops in HOPS), *((name, 1) for name in peers)]:
        note(f"latency: {name}, {hops} hop{'s' if hops > 1 else ''}")
        with run_system(name, CASES[0], seed, hops) as system:
            _warm(system, seconds)
            most = pump(system, seconds, WINDOW).rate
            for load, rate in (("half", most / 2), ("steady", min(STEADY, most / 2))):
                times = send_paced(system, rate, seconds, 4 * WINDOW)
                half, tail = percentiles(times.tolist())
                longest, wanting = float(times.max()), 1 + len(system.pids)
                found.append(
                    LatencyRun(name, hops, load, rate, half, tail, longest, len(times), wanting)
                )
    return found


@contextlib.contextmanager
def run_system(name: str, case: RouteCase, seed: int, hops: int = 1) -> Iterator[System]:
    """Start a system, ready to forward, and stop it after the block."""
    chance = random.Random(seed)
    payloads = [chance.randbytes(PAYLOAD) for _ in range(BLOCK)]
    topics = [chance.randrange(case.labels) for _ in range(BLOCK)]
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        if name == HOME:
            system = _tidings(Path(folder), case, topics, payloads, hops)
        else:
            system = STARTERS[name](Path(folder), topics, payloads, case.neighbours)
        try:
            yield system
        finally:
            system.stop()


def _tidings(
    folder: Path, case: RouteCase, topics: Sequence[int], payloads: Sequence[bytes], hops: int
) -> System:
    nodes = [1 + one for one in topics]
    wanted = [*range(1, case.labels + 1)]
    if not case.relabelled:
        wants = [wanted] * case.neighbours
        return start_tidings(folder, nodes, payloads, wants, hops=hops)
    # the second neighbour subscribes only to one node, which is above all others
    above = case.labels + 1
    parents = dict.fromkeys(wanted, (above,))
    return start_tidings(folder, nodes, payloads, [wanted, [above]], parents=parents, hops=hops)
