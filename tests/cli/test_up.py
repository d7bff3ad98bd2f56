"""`tidings up` and `top`: real trees of processes, that are killed and ended. The first test starts
them as users do; the others fork them."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.processes import write_secret
from tests.cli.conftest import Run, Write
from tests.waiting import eventually, until

from tidings import Refusal, connect
from tidings.channel import ChannelLink
from tidings.routing.clients import Delivery

TREE = """
channel = "quotes"
[columns]
price = "double"
[tokens]
secret = "*"
pipes = {name = "spark", may = ["preprocess"]}
[router.west]
[router.coast]
upstream = "west"
[times]
beat = 0.2
resubscribe = 0.5
retry = 0.5
"""
PAIR = TREE.replace('[router.coast]\nupstream = "west"\n', "")
DEADLINE = 120.0


class Up:
    """A tree that runs."""

    def __init__(self, file: str) -> None:
        self.folder = Path(file).with_suffix("")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tidings", "up", file],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.ports: dict[str, int] = {}
        self.lines: list[str] = []
        self.token = "secret"

    def read_until(self, text: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            found = re.match(r"(\S+) listens (?:again )?on 127\.0\.0\.1:(\d+)\n", line)
            if found:
                self.ports[found[1]] = int(found[2])
            if text in line:
                return line
        raise AssertionError(f"it ended without {text!r}: {''.join(self.lines)}")

    def at(self, name: str) -> tuple[str, ...]:
        address = f"tidings://127.0.0.1:{self.ports[name]}/quotes"
        return "--router", address, "--token", self.token

    def children(self) -> dict[str, int]:
        """The processes of nodes, by name: whoever was started with a file of this folder."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().decode().split("\0")
                except OSError:
                    continue
                files = [Path(word) for word in words if word.startswith(f"{self.folder}/")]
                found.update({file.stem: int(entry.name) for file in files})
        return found

    def stop(self) -> str:
        """Stop it, and return what it says at the end."""
        self.process.terminate()
        return self.process.communicate(timeout=DEADLINE)[0]

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=DEADLINE)


@pytest.fixture
def up(write: Write) -> Iterator[Up]:
    one = Up(write("network.toml", TREE))
    one.read_until("shows them too")
    yield one
    one.end()
    left = one.children()
    for pid in left.values():
        os.kill(pid, signal.SIGKILL)
    assert left == {}


def test_a_tree_is_started_seen_and_ended(run: Run, up: Up) -> None:
    assert up.children().keys() == {"root", "west", "coast"}
    for file in up.folder.iterdir():
        assert not file.stat().st_mode & 0o077, file
    assert not up.folder.stat().st_mode & 0o077

    reader = subprocess.Popen(
        [sys.executable, "-m", "tidings", "subscribe", "price > 90", "--most=2", *up.at("coast")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert reader.stderr is not None
        assert "subscribed to" in reader.stderr.readline()
        assert run("publish", '{"price": 95}', *up.at("west")).out == "published\n"
        answer = eventually(lambda: _picture(run, up, _has_told))
        assert run("publish", '{"price": 96}', *up.at("root")).out == "published\n"
        assert reader.communicate(timeout=DEADLINE)[0] == '{"price": 95}\n{"price": 96}\n'
    finally:
        reader.kill()
        reader.communicate()
    assert {name: one["above"] for name, one in answer.items()} == {
        "root": None, "west": "root", "coast": "west",
    }  # fmt: skip
    links = {
        name: [(link["direction"], link["kind"], link["name"]) for link in one["links"]]
        for name, one in answer.items()
    }
    assert links["root"][0] == ("below", "router", "west")
    # the publisher may not have left yet
    assert links["west"][:2] == [("up", "above", "root"), ("below", "router", "coast")]
    assert links["coast"][0] == ("up", "above", "west")
    assert links["coast"][1][:2] == ("below", "agent")
    assert answer["coast"]["listen"] == f"127.0.0.1:{up.ports['coast']}"

    seen = run("top", "--once", *up.at("root")).out
    assert re.search(r"^root +127\.0\.0\.1:\d+ ", seen, re.MULTILINE)
    assert re.search(r"^└─ west +127\.0\.0\.1:\d+ ", seen, re.MULTILINE)
    assert re.search(r"^   └─ coast +127\.0\.0\.1:\d+ ", seen, re.MULTILINE)

    root = f"tidings://127.0.0.1:{up.ports['root']}/quotes"
    with ChannelLink(root, token="pipes", name="spark") as link:
        assert link.describe().attributes == {"subject": "string", "price": "double"}
    with pytest.raises(Refusal, match="may not preprocess here"):
        ChannelLink(root, token="secret").describe()

    _watch_with_top(run, up)

    again = run("up", str(up.folder.with_suffix(".toml")))
    assert again.code == 2
    assert "its nodes are running already" in again.err

    rest = up.stop()
    for _ in range(3):
        if "did not stop within" not in rest:
            break
        up = Up(str(up.folder.with_suffix(".toml")))  # a busy machine may take longer than it has
        up.read_until("shows them too")
        rest = up.stop()
    assert (up.process.returncode, rest) == (0, "3 nodes ended\n")
    ends = {name: (up.folder / f"{name}.log").read_text() for name in ("root", "west", "coast")}
    assert "west: coast: the other end said goodbye" in ends["west"]  # it was there still
    assert "root: west: the other end said goodbye" in ends["root"]
    assert "Traceback" not in "".join(ends.values())


def _watch_with_top(run: Run, up: Up) -> None:
    router, address, *_ = up.at("root")
    assert "the token is not known" in run("top", "--once", router, address).err
    nobody = run("top", router, "tidings://127.0.0.1:1")
    assert (nobody.code, "can't connect to" in nobody.err) == (2, True)
    assert "expected one such as" in run("top", router, "somewhere").err

    top = subprocess.Popen(
        [sys.executable, "-m", "tidings", "top", "--json", *up.at("root")],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert top.stdout is not None
    found = [json.loads(top.stdout.readline()) for _ in range(4)]
    top.terminate()
    assert top.wait(DEADLINE) == 0
    top.stdout.close()
    uptimes = [one["nodes"][0]["uptime"] for one in found]
    assert uptimes == sorted(set(uptimes))
    assert found[-1]["nodes"][0]["in_per_second"] == 0


def _has_told(nodes: Any) -> bool:
    agents = [link for link in nodes["coast"]["links"] if link["kind"] == "agent"]
    return nodes["root"]["serial"] == 1 and [link["nodes"] for link in agents] == [1]


def _picture(run: Run, up: Up, wanted: Callable[[Any], bool]) -> Any:
    (found,) = run("top", "--once", "--json", *up.at("root")).records
    nodes = {one["name"]: one for one in found["nodes"]}
    return nodes if len(nodes) == 3 and wanted(nodes) else None


@pytest.mark.usefixtures("forked")
def test_tokens_are_read_again_and_what_is_killed_comes_back(
    run: Run, up: Up, write: Write
) -> None:
    _change_tokens(run, up, write)
    before = up.children()
    os.kill(before["west"], signal.SIGKILL)
    line = up.read_until("ended")
    assert line == "west ended (signal SIGKILL); restarting it in 0.5 s\n"
    port = up.ports["west"]
    up.read_until("west listens again")
    assert up.ports["west"] == port
    after = up.children()
    assert after["west"] != before["west"]
    assert (after["root"], after["coast"]) == (before["root"], before["coast"])
    fresh = eventually(
        lambda: _picture(run, up, lambda nodes: all(one["age"] < 3 for one in nodes.values()))
    )
    assert fresh["west"]["uptime"] < fresh["root"]["uptime"]
    up.process.kill()
    up.process.wait()
    eventually(lambda: not up.children())


def _change_tokens(run: Run, up: Up, write: Write) -> None:
    file = up.folder.with_suffix(".toml")
    write("network.toml", TREE.replace('secret = "*"', 'fresh = "*"'))
    up.process.send_signal(signal.SIGHUP)
    assert up.read_until("tokens") == "the tokens were read again\n"
    old, fresh = up.at("coast"), (*up.at("coast")[:3], "fresh")
    eventually(lambda: run("publish", '{"price": 1}', *old).code == 2)
    assert run("publish", '{"price": 1}', *fresh).out == "published\n"
    file.chmod(0o644)
    up.process.send_signal(signal.SIGHUP)
    assert "the tokens are unchanged: " in up.read_until("tokens")
    assert run("publish", '{"price": 1}', *fresh).out == "published\n"
    up.token = "fresh"


@pytest.mark.usefixtures("forked")
def test_a_node_that_does_not_answer_is_started_again(write: Write) -> None:
    """It lives, and does nothing any more: here it is stopped."""
    up = Up(write("network.toml", "patience = 10\n" + TREE))
    try:
        up.read_until("shows them too")
        before = up.children()
        os.kill(before["west"], signal.SIGSTOP)
        stopped = time.monotonic()
        assert up.read_until("west gave") == "west gave no sign of life for 10 s; killing it\n"
        assert time.monotonic() - stopped > 3.0
        assert "west ended (signal SIGKILL)" in up.read_until("ended")
        up.read_until("west listens again")
        after = up.children()
        assert after["west"] != before["west"]
        others = [(one["root"], one["coast"]) for one in (before, after)]
        assert others[0] == others[1], "".join(up.lines)
        # nor do all have to answer who are to end
        os.kill(after["coast"], signal.SIGSTOP)
        os.kill(after["root"], signal.SIGSTOP)
        began = time.monotonic()
        rest = up.stop()
        assert time.monotonic() - began < DEADLINE / 2
        assert all(f"{name} did not" in rest for name in ("root", "coast"))
        assert rest.endswith("3 nodes ended\n")
        assert up.children() == {}
    finally:
        for pid in up.children().values():
            os.kill(pid, signal.SIGCONT)
        up.end()


@pytest.mark.usefixtures("forked")
def test_up_that_was_stopped_kills_nobody(write: Write) -> None:
    up = Up(write("network.toml", "patience = 4\n" + PAIR))
    try:
        up.read_until("shows them too")
        before = up.children()
        os.kill(up.process.pid, signal.SIGSTOP)
        time.sleep(5)  # longer than its patience
        os.kill(up.process.pid, signal.SIGCONT)
        os.kill(before.pop("west"), signal.SIGKILL)
        up.read_until("west listens again")  # so `up` has looked after its nodes since
        after = up.children()
        assert after.pop("west")
        assert after == before
        assert "no sign of life" not in "".join(up.lines)
    finally:
        up.end()


TAGGED = """
channel = "quotes"
[columns]
price = "double"
[limits]
neighbours = 3
router_percent = 0
bound_percent = 0
guest_percent = 100
[tokens]
secret = {name = "*", may = ["publish", "subscribe", "preprocess"]}
[router.west]
[preprocessors.tagger]
[times]
beat = 0.2
resubscribe = 0.5
retry = 0.5
"""


@pytest.mark.usefixtures("forked")
def test_a_tree_with_a_preprocessor(run: Run, write: Write) -> None:
    """It tags for agents that show it tickets, is killed, and comes back; limits are obeyed."""
    up = Up(write("network.toml", TAGGED))
    try:
        up.read_until("shows them too")
        before = up.children()
        assert before.keys() == {"root", "west", "tagger"}
        for file in up.folder.iterdir():
            assert not file.stat().st_mode & 0o077, file
        secrets = [(up.folder / name).read_text() for name in ("tagger.token", "west.ticket-key")]
        assert "secret" not in (up.folder / "tagger.toml").read_text()
        for process in before.values():  # no secret is in a command
            words = Path(f"/proc/{process}/cmdline").read_bytes().decode()
            assert not any(one.strip() in words for one in secrets)
        asyncio.run(_publish_with_tags(up))
        _look_for_the_preprocessor(run, up)
        os.kill(before["tagger"], signal.SIGKILL)
        assert up.read_until("ended") == "tagger ended (signal SIGKILL); restarting it in 0.5 s\n"
        port = up.ports["tagger"]
        up.read_until("tagger listens again")
        assert up.ports["tagger"] == port
        asyncio.run(_publish_with_tags(up))
        assert up.children()["root"] == before["root"]
        assert "3 nodes ended\n" in up.stop()  # a busy machine may kill some of them
        assert up.children() == {}
    finally:
        up.end()


def _look_for_the_preprocessor(run: Run, up: Up) -> None:
    """`top` shows what it has tagged, and when it knows the nodes of the present version."""

    def look() -> Any:
        (found,) = run("top", "--once", "--json", *up.at("root")).records
        (row,) = found["preprocessors"]
        return found if (row["tagged"], row["behind"]) == (1, 0) else None

    found = eventually(look)
    (row,) = found["preprocessors"]
    assert row["name"] == "tagger"
    assert row["address"] == f"tidings://127.0.0.1:{up.ports['tagger']}/quotes"
    assert row["version"] > 0
    (channel,) = found["channels"]
    assert channel["name"] == "quotes"
    shown = run("top", "--once", *up.at("root")).out
    assert re.search(r"^tagger +127\.0\.0\.1:\d+/quotes +[-\d.]+ +\d+ +0$", shown, re.MULTILINE)
    assert re.search(r"^quotes +content +\d+ +\d+ +\d+ +[-\d.]+$", shown, re.MULTILINE)


async def _publish_with_tags(up: Up) -> None:
    """An agent publishes with tags of the preprocessor, which knows no token. Its router takes no
    more agents than the limits allow."""
    west = f"tidings://127.0.0.1:{up.ports['west']}/quotes"
    async with (
        connect(west, name="writer", token=up.token, tag="preprocessor") as writer,
        connect(west, name="reader", token=up.token) as reader,
        reader.subscribe("price > 90") as told,
    ):
        await until(lambda: len(writer.preprocessors) == 1)
        asked = writer._preprocessors.asked
        await writer.publish({"price": 95}, b"high")
        assert writer._preprocessors.asked == asked + 1
        found = await anext(aiter(told))
        assert isinstance(found, Delivery)
        assert found.payload == b"high"
        # two agents, and the link to the rendezvous point
        with pytest.raises(Refusal, match="there are 3 neighbours, expected at most 3"):
            async with connect(west, name="third", token=up.token, timeout=60):
                pass


@pytest.mark.usefixtures("forked")
def test_a_node_that_can_not_start_ends_all(run: Run, write: Write, tmp_path: Path) -> None:
    file = write("bad.toml", TREE + '[router.east]\nlisten = "203.0.113.7:7400"\n')
    ended = run("up", file)
    assert ended.code == 2
    assert "east can't be started: can't listen on 203.0.113.7:7400" in ended.err
    assert f"(see {tmp_path / 'bad' / 'east.log'})" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.usefixtures("forked")
def test_nobody_reads_what_it_says(write: Write) -> None:
    """Then it ends, like any command, and with it all of its nodes."""
    one = Up(write("network.toml", PAIR))
    one.read_until("shows them too")
    assert one.process.stdout is not None
    one.process.stdout.close()
    os.kill(one.children()["west"], signal.SIGKILL)
    assert one.process.wait(DEADLINE) == 141
    assert one.children() == {}


def test_the_file_that_is_meant(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "found neither network.toml nor tidings.toml here" in run("up").err
    write("tidings.toml", "[router.b]")
    assert "2 nodes, with their files in tidings\n" in run("up", "--check").out
    write("network.toml", '[router.b]\nlisten = "0.0.0.0:1"\n')
    checked = run("up", "--check")
    assert "2 nodes, with their files in network\n" in checked.out
    assert checked.err == ("note: b listens on 0.0.0.0, and without [tokens] anybody may connect\n")
    assert not (tmp_path / "network").exists()


def test_a_check_warns_of_tokens_that_may_read_nothing(run: Run, tmp_path: Path) -> None:
    """Each channel is judged by the attributes that it declares."""
    path = tmp_path / "one.toml"
    write_secret(path, """
channel = "fx"
[channels.tea]
columns = {price = "integer"}
[tokens]
a = {name = "desk", channels = {tea = {within = "price > 10 AND price < 11"}}}
b = {name = "eu", channels = {fx = {within = "price > 10 AND price < 11"}}}
""")  # fmt: skip
    checked = run("up", str(path), "--check")
    assert checked.err == (
        f"note: {path}, line 6: tokens: channels.tea.within: the filter can never match: no value "
        "of price, an integer, is both > 10 and < 11; 'desk' may subscribe to nothing\n"
    )
    assert "2 nodes" in checked.out


@pytest.mark.usefixtures("forked")
def test_on_a_terminal(write: Write) -> None:
    """A table that is drawn anew, on 80 columns, until Ctrl-C."""
    file = write("one.toml", '[router.edge]\nlisten = "127.0.0.1:0"\n[times]\nbeat = 0.2\n')
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tidings", "up", file], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"},
    )  # fmt: skip
    shown = ""
    edge = r"└─ edge +127\.0\.0\.1:\d+ +0 "
    try:
        for wanted in (edge, "2 nodes ended"):
            while not re.search(wanted, shown):
                shown += _without_colours(os.read(terminal, 1 << 16))
            if wanted == edge:
                process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        os.close(theirs)
    assert re.search(r"root +starting", shown)
    assert max(len(line) for line in shown.splitlines()) <= 80


def _without_colours(data: bytes) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode(errors="replace"))
