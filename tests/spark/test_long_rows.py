"""Rows that do not fit into a part, from an outbox to agents of a running rendezvous point that
restarts: each whole and once, in order, between others of the same and of another publisher."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from tests.broker.networks import BRIEF
from tests.channel.test_channel_link import Owner, owner, payloads
from tests.repeats import runs
from tests.spark.test_row_parts import Row, put

from tidings import Delivery
from tidings.channel import ChannelLink
from tidings.network import connect_blocking
from tidings.routing.protocol import About, wrap
from tidings.spark.channel.row_parts import MOST_ROW_BYTES, WHOLE_BYTES, parts_of
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.outbox_reading import OutboxReader

__all__ = ["owner"]  # a fixture


@pytest.mark.parametrize("run", runs(1, 5))
def test_long_rows_arrive_whole(owner: Owner, tmp_path: Path, seed: int, run: int) -> None:
    chance = random.Random(f"{seed} {run} long rows")
    owner.start()
    edge = owner.start_router("edge")
    there = f"tidings://127.0.0.1:{edge}"
    outbox = Outbox(tmp_path / "out")
    with (
        connect_blocking(there, name="reader", times=BRIEF) as agent,
        ChannelLink(owner.address) as link,
        agent.subscribe("n > 3") as told,
        agent.subscribe("n > 3", order="none") as loose,
        agent.subscribe("n > 3", name="kept") as kept,
    ):
        known = link.changes()
        (node,) = [one.node for one in known.changes]
        expected: list[bytes] = []
        sizes = [3, 1000, WHOLE_BYTES + 1, chance.randrange(5 << 20, 20 << 20)]
        for _ in range(3):
            chance.shuffle(sizes)
            rows: list[Row] = []
            for number, size in enumerate(sizes):
                content = b'{"n": 5, "text": "%s"}' % (chance.randbytes(size // 2).hex().encode())
                about = About(None, f"{number}", 7, None, {})
                rows.append(([node], wrap(about, content)))
                expected.append(content)
            done = put(outbox, [rows])
            done = msgspec.structs.replace(done, life=known.life, version=known.version)
            parts = list(parts_of(OutboxReader(tmp_path / "out"), done, "s"))
            assert len(parts) >= 5
            link.hand_over(parts[: chance.randrange(len(parts))])
            if chance.random() < 0.7:
                owner.stop()
                owner.start()
            assert link.hand_over(parts) == len(parts)  # again, from the first
            agent.publish({"n": 5}, b"of an agent")
            expected.append(b"of an agent")
        count = len(expected)
        assert payloads(told, count) == payloads(kept, count) == expected
        assert sorted(payloads(loose, count)) == sorted(expected)
        assert not any(isinstance(one.next(0.2), Delivery) for one in (told, loose, kept))
        assert max(map(len, expected)) < MOST_ROW_BYTES


def test_attributes_and_subject_of_a_long_row(owner: Owner, tmp_path: Path) -> None:
    owner.start()
    outbox = Outbox(tmp_path / "out")
    with (
        connect_blocking(owner.address, times=BRIEF) as agent,
        ChannelLink(owner.address) as link,
        agent.subscribe("n > 3") as told,
    ):
        known = link.changes()
        (node,) = [one.node for one in known.changes]
        text = "ä" * (3 << 20)
        content = msgspec.json.encode({"n": 5, "text": text})
        done = put(outbox, [[([node], wrap(About(None, "long", 7_000_000, None, {}), content))]])
        done = msgspec.structs.replace(done, life=known.life, version=known.version)
        link.hand_over(parts_of(OutboxReader(tmp_path / "out"), done, "s"))
        one = told.next(30)
        assert isinstance(one, Delivery)
        assert one.attributes == {"n": 5, "text": text}
        assert (one.subject, one.time) == ("long", 7.0)
