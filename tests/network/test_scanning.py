"""Kernels find what plain Python finds, byte by byte, good frames and bad ones."""

from __future__ import annotations

import ast
import inspect
import random
from collections.abc import Iterator

import pytest
from tests.network.test_forwarding import grown, notification

from tidings.network import scan_kernels, scanning
from tidings.network.forwarding import Forwarder
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.frames import FrameError


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """They are there, for small buffers too; and gone afterwards."""
    before = scanning.loader.kernels
    scanning.loader.load()
    assert scanning.loader.kernels is not None
    monkeypatch.setattr(scanning, "LEAST", 0)
    yield
    scanning.loader.kernels = before


def outcome(buffer: bytes, at: int, largest: int, scan: object) -> object:
    try:
        return scan(buffer, at, largest)  # type: ignore[operator]
    except FrameError as problem:
        return str(problem)


@pytest.mark.usefixtures("kernels")
def test_frames_are_found(seed: int) -> None:
    chance = random.Random(seed)
    kinds = set()
    for _ in range(300):
        messages: list[m.Message] = [
            notification(chance, 1) if chance.random() < 0.8 else m.Gone(1, (5,))
            for _ in range(chance.randrange(12))
        ]
        parts = [*map(frames.encode, messages)]
        if chance.random() < 0.3:
            parts.insert(chance.randrange(len(parts) + 1), frames.encode_switch(3))
        buffer = bytearray(b"".join(parts))
        if chance.random() < 0.5:
            buffer = buffer[: chance.randrange(len(buffer) + 1)]
        if buffer and chance.random() < 0.3:
            buffer[chance.randrange(len(buffer))] = chance.randrange(256)
        largest = chance.choice([60, frames.LARGEST])
        at = 0
        if chance.random() < 0.3:
            buffer, at = bytearray(7) + buffer, 7
        expected = outcome(bytes(buffer), at, largest, frames.scan)
        assert outcome(bytes(buffer), at, largest, scanning.scan) == expected
        kinds.add(type(expected))
    assert kinds == {tuple, str}


@pytest.mark.usefixtures("kernels")
def test_forwarding_is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(scanning, "MOST_KNOWN", 700)  # so that the table grows, and begins anew
    router = grown(chance)
    plain, quick = Forwarder(router), Forwarder(router)
    plain._table = None
    assert quick._table is not None
    for step in range(60):
        given = [notification(chance, n) for n in range(1, chance.randrange(2, 60))]
        buffer = b"".join(map(frames.encode, given))
        starts, end = frames.split(buffer)
        first = chance.randrange(len(starts))  # not only from the beginning of the buffer
        some = starts[first:], [*starts[1:], end][first:]
        expected, found = (
            {to: (b"".join(pieces), count) for to, (pieces, count) in sent.items()}
            for sent in (one.forward(buffer, *some) for one in (plain, quick))
        )
        assert found == expected
        if step % 20 == 19:
            node, neighbour = chance.randrange(1, 30), chance.choice("abc")
            if not router.graph.subscribe(node, neighbour):
                router.graph.unsubscribe(node, neighbour)
            router.note_graph_change()


@pytest.mark.usefixtures("kernels")
def test_many_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the table has room for at first, and more than are remembered."""
    monkeypatch.setattr(scanning, "MOST_KNOWN", 2500)
    router = grown(random.Random(1))
    given = [m.Notification(1, n, (m.Mark(n, 1, (n, 1)),), b"") for n in range(1, 6000)]
    buffer = b"".join(map(frames.encode, given))
    starts, end = frames.split(buffer)
    table = scanning.new_table()
    assert table is not None
    asked: list[bytes] = []

    def plan_of(labels: bytes, marks: int) -> bytes:
        asked.append(labels)
        return labels

    runs = table.runs(buffer, 0, end, plan_of)
    assert [at for at, _ in runs] == list(range(5999))
    assert [plan for _, plan in runs] == asked
    assert len(set(asked)) == len(starts) == 5999
    assert router.graph.forward((1, 2)) is not None


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("at", [0, 6, 8])
def test_fronts_that_do_not_fit(at: int) -> None:
    """Length, marks and bytes of labels that lead out of the frame."""
    good = frames.encode(m.Notification(1, 1, (m.Mark(1, 1, (1,)),), b""))
    bad = bytearray(good * 3)
    bad[len(good) + at] = 3 if at == 0 else 255
    table = scanning.new_table()
    assert table is not None
    with pytest.raises(FrameError, match="too short for"):
        table.runs(bytes(bad), 0, len(bad), lambda labels, marks: ())


@pytest.mark.usefixtures("kernels")
def test_a_new_version_of_frames_reaches_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were compiled before it, as those from a cache were."""
    old = frames.encode(m.Gone(1, (5,))) * 3
    new = bytearray(old)
    for start in frames.split(old)[0]:
        new[start + 5] += 1
    expected = frames.split(old)
    assert scanning.scan(old, 0, frames.LARGEST) == expected
    monkeypatch.setattr(frames, "VERSION", frames.VERSION + 1)

    def refuse(buffer: bytes, at: int, largest: int) -> None:
        raise FrameError("the kernel found none of ours")

    monkeypatch.setattr(frames, "scan", refuse)
    assert scanning.scan(bytes(new), 0, frames.LARGEST) == expected
    with pytest.raises(FrameError, match="none of ours"):
        scanning.scan(old, 0, frames.LARGEST)


def test_kernels_have_no_constants_of_other_modules() -> None:
    """Numba would keep their old values in its cache: it looks at the kernels' own file alone."""
    kernels = [one for one in vars(scan_kernels).values() if hasattr(one, "py_func")]
    assert len(kernels) == 3
    used = {name for one in kernels for name in inspect.getclosurevars(one.py_func).globals}
    imported = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(inspect.getsource(scan_kernels)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert used & imported == {"np"}


def test_a_busy_router_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(scanning.loader, "kernels", None)
    monkeypatch.setattr(scanning, "BUSY", 3)
    monkeypatch.setattr(scanning, "ask_for_kernels", lambda: asked.append(1))
    forwarder = Forwarder(grown(random.Random(1)))
    frame = frames.encode(m.Notification(1, 1, (m.Mark(1, 1, (1,)),), b""))
    for _ in range(3):
        forwarder.forward(frame, [0], [len(frame)])
    assert not asked
    forwarder.forward(frame, [0], [len(frame)])
    assert asked == [1]
