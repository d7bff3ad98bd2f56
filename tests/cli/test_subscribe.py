"""`tidings subscribe` when something goes wrong: notifications are lost, the journal is deleted,
the router goes away. Real processes that talk to each other."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from socket import create_server
from typing import Any

import pytest
from tests.broker.processes import Process
from tests.cli.conftest import Run, app
from tests.forking import Forked
from tests.waiting import eventually
from typer.testing import CliRunner

from tidings.studies.host.ports import free_ports

ROOT = """
name = "root"
listen = "127.0.0.1:{port}"
journal = "journal"
[times]
beat = 0.2
retry = 0.5
resubscribe = 0.5
silent = 4
{more}
"""


class Scene:
    """A rendezvous point that can be restarted at the same port, or one of others, and a
    subscriber."""

    def __init__(self, folder: Path, more: str = "", root: Process | None = None) -> None:
        self.folder = folder
        self._text = ROOT.format(port=free_ports(1)[0], more=more)
        self._owns_root = root is None
        self.root = root or Process(folder, "root", self._text)
        self._subscriber: subprocess.Popen[bytes] | None = None

    @property
    def there(self) -> tuple[str, str]:
        return "--router", f"tidings://127.0.0.1:{self.root.port}"

    def start_root(self) -> None:
        self.root = Process(self.folder, "root", self._text)

    def subscribe(self, *words: str) -> subprocess.Popen[bytes]:
        assert self._subscriber is None
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            self._subscriber = Forked(
                [sys.executable, "-m", "tidings", "subscribe", *words, *self.there],
                stdout=out, stderr=err,
            )  # fmt: skip
        eventually(lambda: "subscribed to" in self.err())
        return self._subscriber

    def publish(self, *numbers: int, padding: int = 0) -> None:
        lines = "".join(f"{json.dumps({'n': n, 'x': 'x' * padding})}\n" for n in numbers)
        sent = CliRunner().invoke(app, ["publish", "-", *self.there], input=lines)
        assert sent.exit_code == 0, sent.output

    def out(self) -> str:
        return (self.folder / "out").read_text()

    def err(self) -> str:
        return (self.folder / "err").read_text()

    def numbers(self) -> list[int]:
        """The notifications that came; the last line may not be written to its end."""
        lines = self.out().split("\n")[:-1]
        return [json.loads(line)["n"] for line in lines]

    def close(self) -> None:
        if self._subscriber is not None:
            self._subscriber.kill()
            self._subscriber.wait()
        if self._owns_root and self.root.is_up():
            self.root.stop()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    one = Scene(tmp_path)
    yield one
    one.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    one = Process(tmp_path_factory.mktemp("root"), "root", ROOT.format(port=0, more=""))
    yield one
    assert one.stop() == 0


@pytest.fixture
def calm(tmp_path: Path, root: Process) -> Iterator[Scene]:
    """A scene with a rendezvous point that others have used and will use."""
    one = Scene(tmp_path, root=root)
    yield one
    one.close()


def test_a_journal_that_is_deleted(scene: Scene) -> None:
    """A break is reported, and the subscription goes on."""
    subscriber = scene.subscribe("n > 0")
    scene.publish(1, 2, 3)
    eventually(lambda: scene.numbers() == [1, 2, 3])
    scene.root.stop()
    shutil.rmtree(scene.folder / "journal")
    scene.start_root()
    eventually(lambda: "notifications may have been missed: " in scene.err())

    def told_of_another() -> bool:
        scene.publish(4)  # again and again: before it is subscribed anew, it is not told
        return 4 in scene.numbers()

    eventually(told_of_another)
    assert "Traceback" not in scene.err()
    subscriber.send_signal(signal.SIGINT)
    assert subscriber.wait(120) == 0


@pytest.mark.parametrize("words", [(), ("--direct",), ("--no-direct",)])
def test_direct_links_can_be_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    from tidings import network

    asked: list[bool] = []
    connect = network.connect

    def watched(*args: Any, direct: bool = True, **how: Any) -> Any:
        asked.append(direct)
        return connect(*args, direct=direct, **how)

    monkeypatch.setattr(network, "connect", watched)
    (port,) = free_ports(1)
    there = ("--router", f"tidings://127.0.0.1:{port}", "--timeout", "0.1")
    assert run("subscribe", "n > 0", *words, *there).code == 2  # nobody listens there
    assert asked == ["--no-direct" not in words]


def test_a_slow_subscriber_below_which_the_journal_is_pruned(tmp_path: Path) -> None:
    """Each notification is printed, or counted as lost."""
    scene = Scene(tmp_path, "[limits]\nkept = 5\nkept_bytes = 20000\n")
    try:
        subscriber = scene.subscribe("n > 0")
        scene.publish(1)
        eventually(lambda: scene.numbers() == [1])
        subscriber.send_signal(signal.SIGSTOP)
        scene.root.stop()
        scene.start_root()
        segments = tmp_path / "journal"
        scene.publish(*range(2, 101), padding=1000)
        newest = max(one for one in segments.iterdir() if one.name[0].isdigit())
        last = 100

        def publish_more() -> bool:
            nonlocal last
            scene.publish(*range(last + 1, last + 101), padding=1000)
            last += 100
            return not newest.exists()

        eventually(publish_more)
        scene.root.stop()
        scene.start_root()  # its memory would have the latest ones
        subscriber.send_signal(signal.SIGCONT)

        def accounted() -> int:
            lost = re.findall(r"([\d,]+) notifications? lost", scene.err())
            return len(scene.numbers()) + sum(int(one.replace(",", "")) for one in lost)

        eventually(lambda: accounted() == last)
        assert "lost" in scene.err()
        assert len(scene.numbers()) == len(set(scene.numbers()))
        assert "Traceback" not in scene.err()
        subscriber.send_signal(signal.SIGINT)
        assert subscriber.wait(120) == 0
    finally:
        scene.close()


def test_a_router_that_is_gone_and_back(scene: Scene) -> None:
    subscriber = scene.subscribe("n > 0")
    assert "gone" not in scene.err()
    scene.root.stop()
    eventually(lambda: "note: the router is gone: " in scene.err())
    assert scene.err().count("gone") == 1
    scene.start_root()
    eventually(lambda: "note: the router is back\n" in scene.err())
    scene.publish(1)
    eventually(lambda: scene.numbers() == [1])
    assert scene.err().count("the router is") == 2  # one note each
    subscriber.send_signal(signal.SIGTERM)
    assert subscriber.wait(120) == 0


def test_a_subscriber_ends_when_nothing_comes(run: Run, calm: Scene) -> None:
    calm.subscribe("n > 0", "--timeout", "600")  # does not wait for its end
    alone = run("subscribe", "n > 0", "--timeout", "6", *calm.there)
    assert (alone.code, alone.out) == (0, "")
    assert alone.err.endswith("note: no notification came for 6 seconds\n")
    assert run("subscribe", "n > 0", "--timeout", "6", "--most", "1", *calm.there).code == 1
    calm.publish(5)
    eventually(lambda: calm.numbers() == [5])


def test_what_can_never_match_by_the_types_of_the_channel(run: Run, tmp_path: Path) -> None:
    """Only the rendezvous point knows that n is an integer."""
    scene = Scene(tmp_path, '[columns]\nn = "integer"\n')
    try:
        why = "the filter can never match: no value of n, an integer, is both > 3 and < 4"
        words = ("subscribe", "n > 3 AND n < 4", "--timeout", "5", *scene.there)
        done = run(*words)
        assert (done.code, done.err) == (2, f"error: {why}; --force accepts the filter\n")
        done = run(*words, "--force")
        assert done.code == 0
        assert done.err.startswith(f"note: {why}\nnote: subscribed to n > 3 AND n < 4\n")
    finally:
        scene.close()


@pytest.mark.parametrize("words", [("subscribe", "n > 0"), ("publish", '{"n": 1}')])
def test_a_server_that_does_not_answer(run: Run, words: tuple[str, ...]) -> None:
    with create_server(("127.0.0.1", 0)) as silent:
        there = f"tidings://127.0.0.1:{silent.getsockname()[1]}"
        ended = run(*words, "--timeout", "0.3", "--router", there)
    assert ended.code == 2
    assert "there is no link to 127.0.0.1:" in ended.err
    assert "after 0.3 seconds" in ended.err


def test_a_publisher_whose_router_has_no_way_up(run: Run, tmp_path: Path) -> None:
    """The router is there, but the rendezvous point behind it is not."""
    (nobody,) = free_ports(1)
    text = f'name = "edge"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:{nobody}"\n'
    edge = Process(tmp_path, "edge", text)
    try:
        there = ("--timeout", "5", "--router", f"tidings://127.0.0.1:{edge.port}")
        ended = run("publish", '{"n": 1}', *there)
        assert (ended.code, ended.out) == (2, "")
        assert "no answer arrived for 5 seconds: 0 of 1 notifications are acknowledged" in ended.err
        ended = run("subscribe", "n > 0", *there)
        assert ended.code == 2
        assert "the subscription was not confirmed after 5 seconds" in ended.err
    finally:
        edge.stop()


def test_an_event_pattern(run: Run, calm: Scene) -> None:
    pattern = '{"n": [{"numeric": [">", 1]}], "x": [{"anything-but": "y"}]}'
    subscriber = calm.subscribe(pattern, "--dialect", "eventbridge", "--most", "1")
    calm.publish(1, 2)
    assert subscriber.wait(60) == 0
    assert calm.numbers() == [2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (('{"n": 5}', "--dialect", "eventbridge"), "filter, character 7: "),
        (("n > 5", "--dialect", "latin"), "there is no dialect 'latin'"),
        (("n > 'x'", "--types", "n=integer"), "filter, character"),
        (("m > 5", "--types", "n=integer"), "there is no attribute 'm'"),
    ],
)
def test_filters_that_are_refused_before_they_are_sent(
    run: Run, words: tuple[str, ...], message: str
) -> None:
    ended = run("subscribe", *words, "--router", "tidings://127.0.0.1:1")
    assert ended.code == 2
    assert message in ended.err


def test_a_durable_name_is_dropped(run: Run, calm: Scene) -> None:
    words = "--durable", "mine", "--timeout", "5", *calm.there
    assert run("subscribe", "n > 0", *words).code == 0
    refused = run("subscribe", "n > 5", *words)
    assert refused.code == 2
    assert "drop the name first, with `tidings subscribe --durable mine --drop`" in refused.err
    dropped = run("subscribe", *words, "--drop")
    assert (dropped.code, dropped.out) == (0, "")
    assert "dropped mine: nothing is kept for it any more" in dropped.err
    assert run("subscribe", "n > 5", *words).code == 0


def test_what_a_name_needs(run: Run) -> None:
    assert "found --drop without --durable" in run("subscribe", "--drop").err
    assert "found no filter, expected FILTER" in run("subscribe").err
