"""Floods of subscriptions to unknown nodes, at running routers: memory does not grow, and an honest
publisher and subscriber are not disturbed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading

import pytest
from tests.broker.processes import Process, a_pair, tell
from tests.waiting import until

from tidings.routing.protocol import frames, messages as m

GROWTH = 120  # megabytes: a message of a million nodes takes two thirds of it while it is read
QUIET = 30  # tenths of a second without another refusal: all was read


class Flooder:
    """A neighbour that wants what nobody has."""

    def __init__(self, port: int, name: str, *, reads: bool = True) -> None:
        self.refused = 0
        self._rest = b""
        self._epoch = 0
        self._reads = reads
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        hello, ask = m.Hello(name, "", "hostile"), m.Resubscribe(0, m.Digest())
        self._socket.sendall(frames.encode(hello) + frames.encode(ask))
        while not self._epoch:
            self._take(self._socket.recv(1 << 16))
        if reads:
            threading.Thread(target=self._read, daemon=True).start()

    def subscribe(self, first: int, count: int, at_once: int) -> None:
        for start in range(first, first + count, at_once):
            nodes = tuple(range(start, min(start + at_once, first + count)))
            self._socket.sendall(frames.encode(m.Subscribe(self._epoch, nodes)))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._socket.recv(1 << 18):
                self._take(data)

    def _take(self, data: bytes) -> None:
        self._rest += data
        starts, end = frames.split(self._rest)
        for start in starts:
            message = frames.decode(self._rest, start)
            if isinstance(message, m.Down):
                self._epoch = message.epoch
            if isinstance(message, m.Refuse):
                self.refused += len(message.nodes)
        self._rest = self._rest[end:]


def flood(
    routers: tuple[Process, Process], neighbours: int, nodes: int, at_once: int, reads: bool
) -> None:
    """Each of the neighbours says its share, at each of the routers."""

    async def work() -> None:
        root, edge = routers
        share = nodes // neighbours
        async with a_pair(edge.port, edge.port) as pair:
            await until(lambda: len(pair.told) >= 10)
            before = [one.resident for one in routers]
            most = list(before)
            for router in (edge, root):
                flooders = [
                    Flooder(router.port, f"flood-{at}", reads=reads) for at in range(neighbours)
                ]
                numbers = itertools.count(10**6, share)
                said = asyncio.gather(*(
                    asyncio.to_thread(one.subscribe, next(numbers), share, at_once)
                    for one in flooders
                ))  # fmt: skip
                refused, quiet = -1, 0
                while not said.done() or quiet < QUIET:
                    await asyncio.sleep(0.1)
                    now = [one.resident for one in routers]
                    most = [max(pair_) for pair_ in zip(most, now, strict=True)]
                    before_, refused = refused, sum(one.refused for one in flooders)
                    quiet = quiet + 1 if refused == before_ and (refused or not reads) else 0
                for one in flooders:
                    one.close()
                tell(f"{neighbours} neighbours, {nodes:,} nodes, {refused:,} of them refused")
                assert not reads or refused > nodes // 200
            tell("RSS of root and edge, MB: before", before, "most", most)
        tell(f"latency p50 {pair.percentile(0.5):.3f} p99 {pair.percentile(0.99):.3f} "
              f"most {max(pair.seconds):.3f} of {len(pair.told)}")  # fmt: skip
        tell(edge.log()[-500:], root.log()[-500:])
        assert pair.other == []
        assert set(pair.published) <= set(pair.told)
        assert len(pair.published) > 3
        assert pair.percentile(0.5) < 5
        for first, highest in zip(before, most, strict=True):
            assert highest - first < GROWTH

    asyncio.run(work())


@pytest.mark.parametrize(
    ("neighbours", "at_once", "reads"),
    [pytest.param(1, 1000, True, marks=pytest.mark.slow), (20, 100, True)],
)
def test_floods(
    routers: tuple[Process, Process], neighbours: int, at_once: int, reads: bool
) -> None:
    flood(routers, neighbours, 40_000, at_once, reads)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("at_once", [1, 1000, 1_000_000])
@pytest.mark.parametrize("neighbours", [1, 100])
@pytest.mark.parametrize("reads", [True, False])
def test_floods_of_a_million(
    routers: tuple[Process, Process], neighbours: int, at_once: int, reads: bool
) -> None:
    flood(routers, neighbours, 1_000_000, at_once, reads)
