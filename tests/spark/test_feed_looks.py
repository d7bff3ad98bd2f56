"""Feeds that would take forever: each fetch ends in time, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.spark.feed_server import answering, rss, serve
from tests.waiting import PATIENCE, eventually

from tidings.spark.feeds import fetch_pool
from tidings.spark.feeds.fetch_pool import FetchPool, FetchProcess, FetchTask

HOSTILE = "<rss version='2.0'><channel><item><author>{}@</author></item></channel></rss>"


@pytest.fixture
def looker() -> Iterator[FetchProcess]:
    looker = FetchProcess()
    yield looker
    looker.close()


def slow_header(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X")
        time.sleep(0.1)


def slow_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.1)


def continues(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        time.sleep(0.01)


def trailers(connection: socket.socket) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    connection.sendall(head)
    while True:
        connection.sendall(b"a: b\r\n" * 100)
        time.sleep(0.01)


def test_a_look(looker: FetchProcess) -> None:
    with serve() as server:
        server.pages["/a"] = rss("a", "b")
        first = looker.fetch(FetchTask(server.url("/a")))
        again = looker.fetch(FetchTask(server.url("/a"), first.validators))
        missing = looker.fetch(FetchTask(server.url("/none")))

    assert [entry.title for entry in first.entries] == ["a", "b"]
    assert (first.changed, first.problem) == (True, "")
    assert (again.changed, again.entries, again.problem) == (False, [], "")
    address = server.url("/none")
    assert missing.problem == f"the server of the feed {address} answered with status 404"


@pytest.mark.parametrize("answer", [slow_header, slow_body, continues, trailers])
def test_a_server_has_so_long_and_no_longer(
    looker: FetchProcess, answer: Callable[[socket.socket], None]
) -> None:
    with answering(answer) as address:
        began = time.monotonic()
        look = looker.fetch(FetchTask(address, timeout=0.5))

    assert look.problem == f"the feed {address} took longer than 0.5 seconds"
    assert time.monotonic() - began < 0.5 + fetch_pool.GRACE + 60  # the machine may be busy


def test_so_has_the_parser(looker: FetchProcess, tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_text(HOSTILE.format("a" * 1_000_000))  # hours
    look = looker.fetch(FetchTask(str(path), timeout=0.5))
    path.write_bytes(rss("a"))

    assert look.problem == f"the feed {path} took longer than 0.5 seconds"
    assert looker.fetch(FetchTask(str(path))).changed  # by another process


def test_what_it_shows_is_bounded(looker: FetchProcess, tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    entity = '<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY a "' + "lol " * 100 + '">]>'
    path.write_text(entity + rss("TITLE").decode().replace("TITLE", "&a;" * 200))

    assert looker.fetch(FetchTask(str(path), largest=2_000)).problem.startswith(
        "the entries of the feed"
    )


def test_one_that_hangs_does_not_keep_the_others(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(rss("a"))
    lookers = FetchPool()
    with answering(slow_header) as address:
        tasks = [FetchTask(address, timeout=0.5), FetchTask(str(path)), FetchTask("http://[::1")]
        late, good, none = lookers.fetch(tasks)
        # as many as would ever be started, and no process more
        lookers.fetch([FetchTask(str(path))] * 3 * fetch_pool.THREADS)
    processes = [looker._process for looker in lookers._all if looker._process is not None]
    lookers.close()

    assert late.problem.endswith("took longer than 0.5 seconds")
    assert [entry.title for entry in good.entries] == ["a"]
    assert none.problem.startswith("the feed http://[::1 can't be fetched")
    assert len(processes) <= fetch_pool.THREADS
    assert all(process.poll() is not None for process in processes)


def test_a_process_that_was_ended_is_replaced(looker: FetchProcess, tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(rss("a"))
    assert looker.fetch(FetchTask(str(path))).changed
    process = looker._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    assert looker.fetch(FetchTask(str(path))).changed


def test_a_process_that_cannot_start_is_a_problem_of_the_feed(
    looker: FetchProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    assert looker.fetch(FetchTask("x")).problem.startswith("the feed x can't be fetched: ")


def test_processes_end_with_their_parent() -> None:
    asked = threading.Event()

    def answer(connection: socket.socket) -> None:
        asked.set()
        slow_header(connection)

    with answering(answer) as address:
        lines = [
            "import threading, time",
            "from tidings.spark.feeds.fetch_pool import FetchProcess, FetchTask",
            "idle, busy = FetchProcess(), FetchProcess()",
            "idle.fetch(FetchTask('/nowhere'))",
            f"task = FetchTask({address!r}, timeout=1.0)",
            "threading.Thread(target=busy.fetch, args=(task,), daemon=True).start()",
            "while busy._process is None: time.sleep(0.01)",
            "print(idle._process.pid, busy._process.pid, flush=True)",
            "time.sleep(600)",
        ]
        command = [sys.executable, "-c", "\n".join(lines)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
            try:
                assert parent.stdout is not None
                left = [int(pid) for pid in parent.stdout.readline().split()]
                assert asked.wait(PATIENCE)
            finally:
                parent.kill()
        assert len(left) == 2
        eventually(lambda: not any(map(_alive, left)), 20)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
