"""A channel whose order is merit, in overload and through a restart: all arrives once and whole,
the best first, and what waits is on the disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import PATIENCE, until

from tidings.broker import Address, Door, RootNode
from tidings.broker.queues import merit_publications, publications
from tidings.network import connect, draw_life
from tidings.network.agents import publishing
from tidings.relations import Reading, RelationSettings, SemanticStore
from tidings.routing.clients import Delivery, Interrupted, Resumed
from tidings.routing.protocol import messages as m

COUNT = 600


def settings() -> RelationSettings:
    store = SemanticStore()
    for name in ("hot", "cold"):
        store.tags.add(name)
    return RelationSettings(store, Reading(tag="topic"), order="merit")


def draw_flood(name: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """One in ten publications has the topic that was forwarded before."""
    for n in range(COUNT):
        kind = b"hot" if n % 10 == 9 else b"cold"
        topic = "hot" if n % 10 == 9 else f"cold {n}"
        yield {"topic": topic, "n": n}, b"%s %d %s" % (name, n, kind)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each publication takes half a millisecond, and few fit into memory; how many were on the
    disk is noted."""
    noted = [0]
    take_best = merit_publications.MeritPublications._take_best

    def take_slowly(self: Any) -> None:
        noted[0] = max(noted[0], self.spilled)
        ends = time.monotonic() + 0.0005
        take_best(self)
        while time.monotonic() < ends:
            pass

    monkeypatch.setattr(merit_publications.MeritPublications, "_take_best", take_slowly)
    monkeypatch.setattr(merit_publications, "SLICE", 0.001)
    original = merit_publications.MeritPublications.__init__

    def with_little_memory(self: Any, *args: Any, **more: Any) -> None:
        original(self, *args, **{**more, "most_memory": 20_000})

    monkeypatch.setattr(merit_publications.MeritPublications, "__init__", with_little_memory)
    return noted


def test_overload_and_a_restart(tmp_path: Path, slow: list[int]) -> None:
    async def work() -> None:
        root = RootNode("root", tmp_path / "journal.db", Door(), relations=settings())
        await root.start()
        port = root.port
        async with (
            connect(f"tidings://127.0.0.1:{port}") as reader,
            connect(f"tidings://127.0.0.1:{port}") as one,
            connect(f"tidings://127.0.0.1:{port}") as other,
            reader.subscribe("n >= 0") as told,
            reader.subscribe("topic = 'hot'"),
        ):
            for n in range(3):  # what is forwarded is learnt
                await one.publish({"topic": "hot", "n": n}, b"learn %d" % n)
            floods = [
                one.publish_many(draw_flood(b"one")),
                other.publish_many(draw_flood(b"other")),
            ]
            sending = asyncio.gather(*floods)
            # the reader may get all of it late
            await until(lambda: root.machine.serial >= COUNT)
            stored = root.machine.serial
            assert stored < 2 * COUNT
            await root.stop()
            root = RootNode(
                "root", tmp_path / "journal.db", Door(Address("127.0.0.1", port)),
                relations=settings(),
            )  # fmt: skip
            await root.start()
            found: list[Delivery] = []
            while len(found) < 2 * COUNT + 3:
                item = await told.next(PATIENCE)
                if isinstance(item, Interrupted | Resumed):
                    continue
                assert isinstance(item, Delivery), item
                found.append(item)
            assert await sending == [COUNT, COUNT]
            payloads = [item.payload for item in found]
            assert len(set(payloads)) == len(payloads) == 2 * COUNT + 3
            # before the restart: how early the hot ones and the others came
            flood = [item.payload for item in found if 3 < item.serial <= stored]
            place = {kind: [at for at, one in enumerate(flood) if one.endswith(kind)]
                     for kind in (b"hot", b"cold")}  # fmt: skip
            mean = {kind: sum(ats) / len(ats) for kind, ats in place.items()}
            assert len(place[b"hot"]) > len(flood) * 0.12
            assert mean[b"hot"] < mean[b"cold"]
            assert await told.next(0.3) is None
            assert slow[0] > 0
        assert len(root.publications) == 0
        await root.stop()

    asyncio.run(asyncio.wait_for(work(), 3 * PATIENCE))
    assert not Path(f"{tmp_path / 'journal.db'}.waiting").exists()


def test_a_payload_in_pieces_that_others_overtake(
    tmp_path: Path, slow: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "LARGEST", 2000)
    monkeypatch.setattr(publishing, "PIECE_BYTES", 500)
    monkeypatch.setattr(publications, "SLICE", 0.0)  # none is taken before the others have come

    async def work() -> None:
        root = RootNode("root", tmp_path / "journal.db", Door(), relations=settings())
        await root.start()
        large = bytes(range(250)) * 800  # 400 pieces
        async with (
            connect(f"tidings://127.0.0.1:{root.port}") as reader,
            connect(f"tidings://127.0.0.1:{root.port}") as one,
            reader.subscribe("n >= 0") as told,
            reader.subscribe("topic = 'hot'"),
        ):
            for n in range(3):
                await one.publish({"topic": "hot", "n": n}, b"learn %d" % n)
            merits = root._merits
            assert merits is not None
            await until(lambda: not len(root.publications) and not merits.work(0))
            sent = [one.publish_soon({"topic": "cold", "n": 9}, large)]
            await until(lambda: root.machine.serial > 5)  # some pieces are stored
            sent += [one.publish_soon({"topic": "hot", "n": n}, b"hot %d" % n) for n in range(20)]
            await asyncio.gather(*sent)
            found: list[bytes] = []
            while len(found) < 24:
                item = await told.next(PATIENCE)
                assert isinstance(item, Delivery), (item, len(found))
                found.append(item.payload)
            assert sorted(found) == sorted(
                [large, *(b"learn %d" % n for n in range(3)), *(b"hot %d" % n for n in range(20))]
            )
            assert found[-1] == large  # it was overtaken
        await root.stop()

    asyncio.run(asyncio.wait_for(work(), 3 * PATIENCE))


def test_another_state_machine_accepts_nothing_twice(tmp_path: Path) -> None:
    """A revision, an adoption or a declaration replaces the state machine."""

    async def work() -> None:
        root = RootNode("root", tmp_path / "journal.db", Door(), relations=settings())
        await root.start()
        async with connect(f"tidings://127.0.0.1:{root.port}") as one:
            for n in range(3):
                await one.publish({"topic": "hot", "n": n}, b"%d" % n)
            (publisher,) = root.machine.publishers
            root.journal.begin_life(draw_life())
            root._start_machine({})
            copy = m.Publish(publisher, 2, 1, b'{"topic": "hot", "n": 1}', b"1")
            root.machine.receive("late", copy, root.now)
            assert root.machine.counts.given == 3
            await one.publish({"topic": "hot", "n": 3}, b"3")
            assert root.machine.serial == 4
        await root.stop()

    asyncio.run(asyncio.wait_for(work(), 3 * PATIENCE))
