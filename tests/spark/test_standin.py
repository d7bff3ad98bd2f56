"""The stand-in for a rendezvous point: its log, and a link to it that outlives it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.spark.standin import StandIn, delivered
from tests.spark.standin_process import StandInProcess

from tidings.model import EnvironmentProblem
from tidings.spark.handover.handover import Sender
from tidings.spark.handover.handover_link import Link
from tidings.spark.handover.handover_messages import (
    Abort,
    Ask,
    Commit,
    Committed,
    Part,
    Pending,
    Rows,
)


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[StandIn]:
    with StandIn(folder, port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def chunks(count: int) -> list[list[bytes]]:
    return [[b"%d" % (10 * n + i) for i in range(10)] for n in range(count)]


def rows(count: int) -> list[bytes]:
    return [row for chunk in chunks(count) for row in chunk]


def test_rows_and_commits_survive_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as server, Link("127.0.0.1", server.port) as link:
        sender = Sender("s", 3, 0, 99)
        link.push(sender, chunks(30))
        port = server.port
    with serving(tmp_path, port) as server, Link("127.0.0.1", port) as link:
        assert link.ask(Ask("s", 3)) == Pending("s", 3)
        link.commit(Commit("s", 3, [sender.part]))
        link.commit(Commit("s", 3, [sender.part]))
        assert server.delivered == {"s": rows(30)}
    with serving(tmp_path) as server:
        assert server.delivered == delivered(tmp_path) == {"s": rows(30)}


def test_a_link_outlives_a_point_that_is_killed(tmp_path: Path) -> None:
    first = StandInProcess(tmp_path)
    started: list[StandInProcess] = []

    def kill_and_start() -> None:
        time.sleep(0.05)
        first.kill()
        started.append(StandInProcess(tmp_path, first.port))

    def sending() -> Iterator[list[bytes]]:
        killer = threading.Thread(target=kill_and_start)
        killer.start()
        for number, chunk in enumerate(chunks(400)):
            if number == 399:
                killer.join()
            yield chunk

    try:
        with Link("127.0.0.1", first.port) as link:
            sender = Sender("s", 0, 0, 1)
            link.push(sender, sending())
            link.commit(Commit("s", 0, [sender.part]))
    finally:
        for process in (first, *started):
            process.kill()

    assert delivered(tmp_path) == {"s": rows(400)}


@pytest.mark.parametrize("tail", [b"\x00\x00\x00", b"\x00" * 64, b"\x00\x00\x00\x05abcdefg"])
def test_a_broken_end_of_the_log_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    with StandIn(tmp_path) as server:
        server.answer(Rows("s", 0, 0, 1, 0, [b"a"]))
    log = tmp_path / "log"
    whole = log.read_bytes()
    log.write_bytes(whole + tail)
    with StandIn(tmp_path) as server:
        assert log.read_bytes() == whole
        server.answer(Commit("s", 0, [Part(0, 1, 1)]))

    assert delivered(tmp_path) == {"s": [b"a"]}


def three_records(folder: Path) -> tuple[Path, list[int]]:
    """A log, and where its records end."""
    log, ends = folder / "log", [0]
    with StandIn(folder) as server:
        for number in range(3):
            server.answer(Rows("s", 0, 0, 1, number, [b"%d" % number]))
            ends.append(log.stat().st_size)
    return log, ends


def test_a_flipped_bit_anywhere_is_refused(tmp_path: Path) -> None:
    log, ends = three_records(tmp_path)
    whole = log.read_bytes()
    for at in range(len(whole)):
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << bit
            log.write_bytes(flipped)
            begin = max(end for end in ends if end <= at)
            with pytest.raises(EnvironmentProblem, match=f"is damaged at byte {begin};"):
                delivered(tmp_path)
    log.write_bytes(flipped)
    with pytest.raises(EnvironmentProblem, match="nothing was cut off"):
        StandIn(tmp_path)
    assert log.read_bytes() == flipped


def test_a_log_may_end_anywhere(tmp_path: Path) -> None:
    log, ends = three_records(tmp_path)
    whole = log.read_bytes()
    for size in range(len(whole)):
        log.write_bytes(whole[:size])
        with StandIn(tmp_path):
            assert log.stat().st_size == max(end for end in ends if end <= size)


def test_zeros_in_the_middle_are_refused(tmp_path: Path) -> None:
    log, ends = three_records(tmp_path)
    whole = log.read_bytes()
    log.write_bytes(whole[: ends[1]] + bytes(ends[2] - ends[1]) + whole[ends[2] :])
    with pytest.raises(EnvironmentProblem, match=f"is damaged at byte {ends[1]};"):
        StandIn(tmp_path)


def test_a_log_that_is_damaged_in_the_middle_is_refused(tmp_path: Path) -> None:
    with StandIn(tmp_path) as server:
        server.answer(Rows("s", 0, 0, 1, 0, [b"aaaa"]))
        server.answer(Commit("s", 0, [Part(0, 1, 1)]))
    log = tmp_path / "log"
    log.write_bytes(log.read_bytes().replace(b"aaaa", b"aaba"))

    with pytest.raises(EnvironmentProblem, match="is damaged at byte 0"):
        StandIn(tmp_path)


def test_after_a_failed_write_nothing_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError("no space left")

    with StandIn(tmp_path) as server:
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            with pytest.raises(OSError, match="no space left"):
                server.answer(Rows("s", 0, 0, 1, 0, [b"a"]))
        with pytest.raises(OSError, match="could not be written"):
            server.answer(Rows("s", 0, 0, 1, 0, [b"a"]))


def test_a_folder_has_one_stand_in(tmp_path: Path) -> None:
    with (
        StandIn(tmp_path),
        pytest.raises(EnvironmentProblem, match="used by another process"),
    ):
        StandIn(tmp_path)


def test_a_point_that_is_not_there(tmp_path: Path) -> None:
    with (
        Link("127.0.0.1", 1, patience=0.1) as link,
        pytest.raises(EnvironmentProblem, match=r"at 127\.0\.0\.1:1 does not answer"),
    ):
        link.ask(Ask("s", 0))


def test_patience_begins_with_the_first_failure(tmp_path: Path) -> None:
    first = StandInProcess(tmp_path)
    started: list[StandInProcess] = []

    def sending() -> Iterator[list[bytes]]:
        yield from chunks(20)
        first.kill()
        started.append(StandInProcess(tmp_path, first.port))  # which takes longer than patience
        yield from chunks(20)

    try:
        with Link("127.0.0.1", first.port, patience=0.02) as link:
            sender = Sender("s", 0, 0, 1)
            link.push(sender, sending())
    finally:
        for process in (first, *started):
            process.kill()

    assert sender.done


def test_a_batch_whose_rows_were_dropped_cannot_be_committed(tmp_path: Path) -> None:
    with serving(tmp_path) as server, Link("127.0.0.1", server.port) as link:
        sender = Sender("s", 0, 0, 1)
        link.push(sender, chunks(1))
        link.ask(Abort("s", 0))
        with pytest.raises(EnvironmentProblem, match="lacks rows of 1 partitions"):
            link.commit(Commit("s", 0, [sender.part]))
        assert link.ask(Ask("s", 0)) != Committed("s", 0)
