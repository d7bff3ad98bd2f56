"""Committed batches as parts for the owner of a channel, and handing them over: every row once, in
order, however often it is repeated."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.repeats import runs
from tests.spark.channels import ToldChannel
from tests.spark.outboxes import files_of

from tidings.channel import MOST_BYTES, Part
from tidings.model import TidingsError
from tidings.network import Refusal
from tidings.routing.protocol import About, read_about, unwrap, wrap
from tidings.routing.root.handover.row_pieces import LEAST
from tidings.spark.channel import row_parts
from tidings.spark.channel.handing_over import HandingOver, read_handed
from tidings.spark.channel.owner import ChannelOwner
from tidings.spark.channel.row_parts import PART_BYTES, WHOLE_BYTES, parts_of
from tidings.spark.outbox.commits import Commit
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.outbox_reading import OutboxReader

Row = tuple[list[int], bytes]


def put(outbox: Outbox, files: list[list[Row]], life: int = 7, payloads: bool = True) -> Commit:
    """Commit a batch; each list of rows is a file."""
    batch, count = len(outbox.commits()), sum(map(len, files))
    first = outbox.counters().get(0, 0)
    folder = outbox.folder(batch, "a")
    folder.mkdir(parents=True)
    for number, rows in enumerate(files):
        columns: dict[str, Any] = {
            "id": range(len(rows)),
            "notification": range(len(rows)),
            "version": [3] * len(rows),
            "nodes": pa.array([nodes for nodes, _ in rows], pa.list_(pa.int64())),
            "numbers": pa.array([nodes for nodes, _ in rows], pa.list_(pa.int64())),
            "subscriptions": pa.array([nodes for nodes, _ in rows], pa.list_(pa.int64())),
        }
        if payloads:
            columns["_payload"] = pa.array([payload for _, payload in rows], pa.binary())
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=700)
    done = Commit(
        batch, "a", 3, 5_000_000, count, count, count, 0, {0: first + count},
        files_of(outbox, batch, "a") if count else [], life=life,
    )  # fmt: skip
    outbox.commit(done)
    return done


def rows_in(parts: list[Part]) -> list[Row]:
    found: list[Row] = []
    for part in parts:
        for at in range(len(part)):
            nodes = part.nodes[part.node_starts[at] : part.node_starts[at + 1]].tolist()
            found.append(
                (nodes, part.payloads[part.payload_starts[at] : part.payload_starts[at + 1]])
            )
    return found


def size_of(part: Part) -> int:
    columns = (part.node_starts, part.nodes, part.payload_starts)
    return sum(column.nbytes for column in columns) + len(part.payloads)


def draw_rows(chance: random.Random, count: int, longest: int) -> list[Row]:
    return [
        (
            sorted(chance.sample(range(1, 5000), chance.choice((0, 1, 2, 40)))),
            chance.randbytes(chance.choice((0, 10, chance.randrange(longest)))),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("run", runs(2, 6))
def test_every_row_is_in_one_part(tmp_path: Path, seed: int, run: int) -> None:
    chance = random.Random(f"{seed} {run}")
    outbox = Outbox(tmp_path)
    longest = chance.choice((100, 2000, 300_000))
    files = [draw_rows(chance, chance.randrange(2000 if longest < 9999 else 40), longest)
             for _ in range(chance.randrange(1, 4))]  # fmt: skip
    done = put(outbox, files)
    reader = OutboxReader(tmp_path)
    parts = list(parts_of(reader, done, "s"))
    assert rows_in(parts) == [row for rows in files for row in rows]
    assert [one.part for one in parts] == list(range(len(parts)))
    assert [one.last for one in parts] == [False] * (len(parts) - 1) + [True]
    assert {(one.source, one.batch, one.life, one.version) for one in parts} == {("s", 0, 7, 3)}
    assert all(size_of(one) <= PART_BYTES or len(one) == 1 for one in parts)
    for one, two in itertools.pairwise(parts):  # no part could have taken one more row
        nodes, payload = rows_in([two])[0]
        assert size_of(one) + 16 + 8 * len(nodes) + len(payload) > PART_BYTES
    assert list(parts_of(OutboxReader(tmp_path), done, "s")) == parts


def test_a_batch_without_rows_is_an_empty_part(tmp_path: Path) -> None:
    done = put(Outbox(tmp_path), [])
    (part,) = parts_of(OutboxReader(tmp_path), done, "s")
    assert (len(part), part.last, part.part, part.payloads) == (0, True, 0, b"")
    assert part.node_starts.tolist() == part.payload_starts.tolist() == [0]


def test_the_longest_row_fits(tmp_path: Path) -> None:
    nodes = list(range(1, 101))
    long = (nodes, b"x" * (WHOLE_BYTES - 800))
    done = put(Outbox(tmp_path), [[([1], b"a"), long, ([2], b"b")]])
    parts = list(parts_of(OutboxReader(tmp_path), done, "s"))
    assert [len(one) for one in parts] == [1, 1, 1]
    assert size_of(parts[1]) == MOST_BYTES


def put_together(rows: list[Row]) -> list[Row]:
    """The rows, with pieces joined; the pieces of a row follow one another."""
    found: list[Row] = []
    held: list[bytes] = []
    for nodes, body in rows:
        about, payload = unwrap(body)
        if about.piece is None:
            assert not held
            found.append((nodes, body))
            continue
        first, at, of = about.piece
        assert (first, at) == (0, len(held))
        held.append(payload)
        if len(held) == of:
            found.append((nodes, wrap(msgspec.structs.replace(about, piece=None), b"".join(held))))
            held = []
    assert not held
    return found


@pytest.mark.parametrize("run", runs(3, 20))
def test_long_rows_are_sent_in_pieces(
    tmp_path: Path, seed: int, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PART_BYTES", 3000), ("WHOLE_BYTES", 5000), ("PIECE_BYTES", 2000)):
        monkeypatch.setattr(row_parts, name, value)
    chance = random.Random(f"{seed} {run} long")
    rows: list[Row] = []
    for _ in range(chance.randrange(1, 60)):
        about = chance.choice((About(), About(None, "a" * chance.randrange(9), 5, None, {"x": 1})))
        payload = chance.randbytes(chance.choice((0, 20, chance.randrange(30_000))))
        rows.append(
            (sorted(chance.sample(range(1, 99), chance.randrange(9))), wrap(about, payload))
        )
    done = put(Outbox(tmp_path), [rows[::2], rows[1::2]])
    parts = list(parts_of(OutboxReader(tmp_path), done, "s"))
    found = rows_in(parts)
    assert put_together(found) == rows[::2] + rows[1::2]
    assert all(size_of(one) <= 5000 + 32 for one in parts)
    for nodes, body in found:
        is_short = 8 * len(nodes) + len(body) <= 5000
        assert is_short
        piece = unwrap(body)[0].piece
        if piece is not None:
            assert len(unwrap(body)[1]) > 1000 - piece.of
    whole = [one for one in rows if 8 * len(one[0]) + len(one[1]) <= 5000]
    assert sum(unwrap(body)[0].piece is None for _, body in found) == len(whole)
    assert list(parts_of(OutboxReader(tmp_path), done, "s")) == parts


def test_the_largest_piece_fits(tmp_path: Path) -> None:
    """As many nodes, metadata and payload as there may be."""
    nodes = list(range(1, row_parts.MOST_NODES + 1))
    about = About(b"c" * (row_parts.MOST_FRONT - 40), time=1)
    body = wrap(about, b"x" * (2 * row_parts.PIECE_BYTES))
    assert row_parts.MOST_FRONT - 20 < read_about(body)[1] <= row_parts.MOST_FRONT
    done = put(Outbox(tmp_path), [[(nodes, body)]])
    parts = list(parts_of(OutboxReader(tmp_path), done, "s"))
    assert len(parts) == 2
    assert all(size_of(one) <= MOST_BYTES for one in parts)
    assert all(len(one.payloads) > LEAST for one in parts)
    assert put_together(rows_in(parts)) == [(nodes, body)]


def test_rows_without_payloads_are_encoded(tmp_path: Path) -> None:
    done = put(Outbox(tmp_path), [[([1], b""), ([2], b"")]], payloads=False)
    (part,) = parts_of(OutboxReader(tmp_path), done, "s")
    rows = [(nodes, *unwrap(body)) for nodes, body in rows_in([part])]
    about = About(time=done.micros, types={})
    assert rows == [([1], about, b'{"id":0}'), ([2], about, b'{"id":1}')]


# -- handing over --------------------------------------------------------------------------------


def handing(folder: Path) -> HandingOver:
    owner = ChannelOwner("tidings://there", folder=folder)
    return HandingOver(owner, folder, folder / "channel", "s")


def test_batches_go_over_once(
    channel: ToldChannel, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_parts, "PART_BYTES", 3000)
    chance = random.Random(seed)
    outbox = Outbox(tmp_path)
    expected: list[Row] = []
    one = handing(tmp_path)
    for batch in range(12):
        rows = draw_rows(chance, chance.choice((0, 3, 400)), 200)
        done = put(outbox, [rows] if rows else [])
        expected += rows
        channel.down = chance.choice((0, 0, 1, 3))
        for _ in range(chance.randrange(1, 3)):  # the driver may die before it notes it
            if chance.random() < 0.3:
                one = handing(tmp_path)
            one.hand_over(done)
        assert rows_in(channel.parts) == expected
        handed = read_handed(tmp_path / "channel")
        assert handed is not None
        assert (handed.batch, handed.life) == (batch, 7)


def test_a_sink_that_is_back_gets_what_was_committed_meanwhile(
    channel: ToldChannel, tmp_path: Path
) -> None:
    outbox = Outbox(tmp_path)
    put(outbox, [[([1], b"before the sink")]])
    done = put(outbox, [[([1], b"a")]])
    handing(tmp_path).hand_over(done)
    put(outbox, [[([1], b"b")]])
    put(outbox, [])
    handing(tmp_path).hand_over(put(outbox, [[([1], b"c")]]))
    assert [(one.batch, one.payloads) for one in channel.parts] == [
        (1, b"a"), (2, b"b"), (3, b""), (4, b"c"),
    ]  # fmt: skip


def test_batches_of_another_life_are_skipped_with_a_warning(
    channel: ToldChannel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = Outbox(tmp_path)
    handing(tmp_path).hand_over(put(outbox, [[([1], b"a")]]))
    put(outbox, [[([1], b"b"), ([1], b"c")]])
    handing(tmp_path).hand_over(put(outbox, [[([1], b"d")]], life=8))
    assert [one.payloads for one in channel.parts] == [b"a", b"d"]
    assert "batch 1 was tagged in another life of the channel" in caplog.text
    assert "2 notifications" in caplog.text


def test_a_refusal_is_not_waited_for(
    channel: ToldChannel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> int:
        raise Refusal("found a part that was tagged in life 7 of the channel, expected life 8")

    monkeypatch.setattr(channel, "hand_over", refuse)
    with pytest.raises(TidingsError, match="expected life 8"):
        handing(tmp_path).hand_over(put(Outbox(tmp_path), []))
    assert read_handed(tmp_path / "channel") is None


def test_sizes_are_those_of_the_columns() -> None:
    """The sizes that rows are cut by are what the owner counts."""
    assert np.zeros(1, np.int64).nbytes * 2 == row_parts.EACH
