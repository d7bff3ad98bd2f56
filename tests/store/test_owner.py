"""Commands hand their changes to the owner of a folder: against a model of what was acknowledged,
while owners are killed; and what they say if the owner can't be asked."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.store.test_journal import opened
from tests.waiting import PATIENCE, wait_for as wait_until

from tidings.model import TidingsError
from tidings.store import ChangeLog, LogError
from tidings.store.owner import change_requests, owner_socket as s

OWNER = Path(__file__).with_name("owning.py")


def start_owner(folder: Path, kind: str) -> subprocess.Popen[str]:
    told = [sys.executable, str(OWNER), str(folder), kind]
    return subprocess.Popen(told, stdout=subprocess.PIPE, text=True)


def wait_for(owner: subprocess.Popen[str]) -> None:
    assert owner.stdout is not None
    assert owner.stdout.readline() == "owns\n"


def kill(owner: subprocess.Popen[str]) -> None:
    assert owner.stdout is not None
    os.kill(owner.pid, 9)
    owner.wait()
    owner.stdout.close()


def test_an_owner_makes_the_changes_of_others(tmp_path: Path) -> None:
    owner, other = ChangeLog(tmp_path), ChangeLog(tmp_path)
    assert owner.own()
    assert not other.own()
    assert other.put("a", "n > 1", owner="ana") == 1
    assert owner.put("b", "n > 2") == 2
    assert other.put_many({"c": "n > 3", "d": "n > 4"}) == 4
    with pytest.raises(TidingsError, match=r"^there is no subscription with the id 'x'$"):
        other.drop("x")
    with pytest.raises(TidingsError, match=r"^found the integer 5 as an id"):
        other.put(5, "n > 3")
    assert other.drop("d") == 5
    assert [one.owner for one in other.changes(0)] == ["ana", "", "", "", ""]
    owner.close()
    assert not (tmp_path / s.NAME).exists()
    assert other.put("d", "n > 4") == 6
    assert other.own()
    other.close()


def test_a_pipeline_gives_its_folder_to_a_rendezvous_point(tmp_path: Path) -> None:
    driver = ChangeLog(tmp_path)
    driver.put("a", "n > 1")
    assert driver.own()
    journal = opened(tmp_path, 7)
    assert [node for node, _ in journal.interests()] == [1]
    assert not driver.own()
    journal.close()
    assert driver.put("b", "n > 2") > 1


def test_a_folder_that_can_only_be_read_has_no_owner(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    log.put("a", "n > 1")
    taken = tmp_path / s.NAME
    taken.mkdir()  # the socket can't be made, as on a disk without sockets
    (taken / "x").touch()
    assert not log.own()
    assert log.put("b", "n > 2") == 2  # and nobody is locked out
    shutil.rmtree(taken)
    assert log.own()
    log.close()


def test_owners_that_can_not_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_requests, "PATIENCE", 0.05)
    monkeypatch.setattr(change_requests, "GREETING", 0.2)
    log = ChangeLog(tmp_path)
    journal = opened(tmp_path, 1)  # an older release does not listen
    with pytest.raises(
        LogError, match=r"accepts no changes from commands, because it runs an older re"
    ):
        log.put("a", "n > 1")
    listener = s.listen(tmp_path)
    with pytest.raises(LogError, match=r"does not answer; nothing was changed$"):
        log.put("a", "n > 1")
    monkeypatch.setattr(change_requests, "GREETING", PATIENCE)  # from here on, somebody greets

    def greet(listener: socket.socket, message: bytes) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            if link.recv(0) == b"":
                link.sendall(message)
                threading.Timer(1.0, link.close).start()

    for sent, said in (
        (s.Greeting(0, b"x", "rendezvous point", 17),
         r"^the rendezvous point that owns the folder \(process 17\) uses version 0 of the "
         f"protocol for commands, expected version {s.SPEAKS}; nothing was changed; use the same "
         "release of tidings as that process$"),
        (s.Done(7), "uses another protocol"),
    ):  # fmt: skip
        s.close_listener(tmp_path, listener)
        listener = s.listen(tmp_path)
        left, right = socket.socketpair()
        s.send(left, sent)
        message = right.recv(1 << 16)
        threading.Thread(target=greet, args=(listener, message), daemon=True).start()
        with pytest.raises(LogError, match=said):
            log.put("a", "n > 1")
        left.close()
        right.close()
    s.close_listener(tmp_path, listener)
    s.listen(tmp_path).close()
    journal.close()
    assert log.put("a", "n > 1") == 1  # a socket that nobody serves is no owner


@pytest.mark.parametrize("is_followed", [True, False])
def test_an_owner_dies_before_it_marks_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_followed: bool
) -> None:
    """The change is in the log, but the end mark is older. It is not made again, whoever takes it
    into the log."""
    owner, follower, command = (ChangeLog(tmp_path) for _ in range(3))
    assert owner.put("a", "n > 1") == 1
    assert owner.own()
    assert not follower.own()
    mark = (tmp_path / "end").read_bytes()
    answer = change_requests._await_answer

    def die(link: socket.socket, greeting: s.Greeting) -> int:
        monkeypatch.setattr(change_requests, "_await_answer", answer)
        assert answer(link, greeting) == 2
        owner.close()
        (tmp_path / "end").write_bytes(mark)
        assert not is_followed or follower.own()
        raise EOFError

    monkeypatch.setattr(change_requests, "_await_answer", die)
    assert command.put("b", "n > 2") == 2
    assert [(one.version, one.id) for one in command.changes(0)] == [(1, "a"), (2, "b")]
    follower.close()


class Command(threading.Thread):
    """Changes its own ids, and remembers what was acknowledged."""

    def __init__(self, folder: Path, number: int, chance: random.Random) -> None:
        super().__init__()
        self.folder, self.number, self.chance = folder, number, chance
        self.acknowledged: list[tuple[int, str, str | None]] = []
        self.problems: list[str] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        known: dict[str, str] = {}
        while not self.stopped.is_set():
            log = ChangeLog(self.folder)  # a command has no memory
            id_ = f"{self.number}-{self.chance.randrange(4)}"
            text = None if id_ in known and self.chance.random() < 0.3 else (
                f"n = {self.chance.randrange(1_000_000)}")  # fmt: skip
            try:
                version = log.drop(id_) if text is None else log.put(id_, text)
            except TidingsError as problem:
                self.problems.append(str(problem))
                return
            self.acknowledged.append((version, id_, text))
            if text is None:
                del known[id_]
            else:
                known[id_] = text


@pytest.mark.parametrize(
    ("kind", "kills"),
    [("driver", 2), ("root", 2), pytest.param("driver", 12, marks=pytest.mark.slow)],
)
def test_killed_owners_lose_and_double_nothing(
    tmp_path: Path, seed: int, kind: str, kills: int
) -> None:
    """Each change is in the log once, with the version that was acknowledged."""
    chance = random.Random(seed)
    ChangeLog(tmp_path).put("first", "n > 0")
    commands = [Command(tmp_path, one, random.Random(seed + one)) for one in range(3)]
    owner = start_owner(tmp_path, kind)
    wait_for(owner)
    for one in commands:
        one.start()
    for number in range(kills):
        time.sleep(chance.uniform(0.0, 0.3))
        # it waits for the folder
        successor = start_owner(tmp_path, kind) if number % 2 else None
        if successor is not None:
            time.sleep(chance.uniform(0.3, 1.0))
        kill(owner)
        if successor is None:  # commands write by themselves meanwhile
            time.sleep(chance.uniform(0.0, 0.3))
            successor = start_owner(tmp_path, kind)
        wait_for(successor)
        owner = successor
    wait_until(lambda: sum(len(one.acknowledged) for one in commands) > 20, 60)
    for one in commands:
        one.stopped.set()
        one.join(60)
    kill(owner)
    assert [one.problems for one in commands] == [[], [], []]
    told = sorted(it for one in commands for it in one.acknowledged)
    changes = ChangeLog(tmp_path).changes(1)
    assert [(it.version, it.id, it.filter) for it in changes] == told
    assert len(told) > 20, seed
    if kind == "driver":  # the numbers of a life of a rendezvous point begin after a gap
        assert [it.version for it in changes] == [*range(2, len(told) + 2)]
