"""`tidings router`, `publish`, `subscribe`: real processes that talk to each other."""

from __future__ import annotations

import asyncio
import gc
import gzip
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.broker.certificates import Authority
from tests.broker.processes import Process
from tests.cli.conftest import Run, Write
from tests.forking import Forked

from tidings.cli.network.publish_command import _from_thread
from tidings.cli.network.subscribe_command import _describe_loss
from tidings.routing.clients.subscriber import Lost
from tidings.routing.protocol.lineage import Break

ROOT = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
[columns]
price = "double"
[tokens]
secret = "*"
"of the edge" = {name = "edge", may = ["route"]}
"""
EDGE = """
name = "edge"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:{port}"
token = "of the edge"
[tokens]
secret = "*"
"""


class Processes:
    """Commands that run until they are ended."""

    def __init__(self) -> None:
        self.all: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = Forked(
            [sys.executable, "-m", "tidings", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.all.append(process)
        return process

    def router(self, file: str) -> int:
        """The port at which it listens."""
        out = self.start("router", "--config", file).stdout
        assert out is not None
        return int(out.readline().rsplit(":", 1)[1])


@pytest.fixture
def processes() -> Iterator[Processes]:
    one = Processes()
    yield one
    for process in one.all:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a rendezvous point that the tests share which leave it as it is."""
    one = Process(tmp_path_factory.mktemp("root"), "root", ROOT)
    yield one.port
    assert one.stop() == 0


def test_from_publish_to_subscribe(run: Run, write: Write, processes: Processes) -> None:
    root = processes.router(write("root.toml", ROOT))
    edge = processes.router(write("edge.toml", EDGE.format(port=root)))
    there = ("--router", f"tidings://127.0.0.1:{edge}", "--token", "secret")
    reader = processes.start("subscribe", "price > 90", "--most", "2", *there)
    assert reader.stderr is not None
    assert "subscribed to price > 90" in reader.stderr.readline()
    assert run("publish", '{"price": 95}', *there).out == "published\n"
    lines = '{"price": 10}\n{"price": 99}\n\n{"price": 100}\n'
    assert run("publish", "-", *there, stdin=lines).out == "published 3\n"
    assert reader.communicate(timeout=120)[0] == '{"price": 95}\n{"price": 99}\n'
    for process in processes.all[:2]:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def test_related_ones_are_told_apart(run: Run, write: Write, processes: Processes) -> None:
    relations = '[relations]\nlanguage = ""\nplace = "city"\n'
    text = ROOT.split("[columns]", maxsplit=1)[0] + relations
    port = processes.router(write("root.toml", text))
    there = ("--router", f"tidings://127.0.0.1:{port}")
    words = ("subscribe", "city = 'Chicago'", "--related", "0.7", "--most", "2", *there)
    readers = [processes.start(*words), processes.start(*words, "--json")]
    for reader in readers:
        assert reader.stderr is not None
        assert "subscribed to city = 'Chicago'" in reader.stderr.readline()
    lines = '{"city": "Evanston"}\n{"city": "Paris"}\n{"city": "Chicago"}\n'
    run("publish", "-", *there, stdin=lines)
    plain, objects = (reader.communicate(timeout=120)[0] for reader in readers)
    assert plain == '0.81   {"city": "Evanston"}  (near Evanston)\nmatch  {"city": "Chicago"}\n'
    found = [msgspec.json.decode(line)["related"] for line in objects.splitlines()]
    assert found[1] is None
    (reason,) = found[0]["reasons"]
    assert reason.pop("weight") == found[0]["weight"] == 0.8082
    assert reason == {"context": "place", "name": "Evanston", "kind": "near"}
    refused = run("subscribe", "city = 'Chicago'", "--related", "1.5", *there)
    assert refused.code == 2
    assert "found related=1.5, expected a number above 0 and at most 1" in refused.err


def test_notifications_of_files(run: Run, root: int, processes: Processes, tmp_path: Path) -> None:
    """As other commands read events: lines, arrays, gzip, patterns, folders, tables, stdin."""
    there = ("--router", f"tidings://127.0.0.1:{root}", "--token", "secret")
    reader = processes.start("subscribe", "price > 0", "--most", "15", *there)
    assert reader.stderr is not None
    assert "subscribed to price > 0" in reader.stderr.readline()
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.jsonl").write_text('{"price": 1, "who": "ana"}\n\n{"price": 2}\n')
    (folder / "2.json").write_text('[\n  {"price": 3},\n  {"price": 4, "tags": ["a", null]}\n]\n')
    (folder / "3.json.gz").write_bytes(gzip.compress(b'{\n"price": 5\n}\n{"price": 6}\n'))
    (folder / "4.csv").write_text("price,day\n7,2024-02-29\n8,\n")
    (folder / "_no.json").write_text("rubbish")
    assert run("publish", "--events", str(folder), *there).out == "published 8\n"
    pattern = str(folder / "[12].json*")
    assert run("publish", "--events", pattern, *there, "--payload", "x").out == "published 4\n"
    array = '[{"price": 9}, {"price": 10}]'
    assert run("publish", "--events", "-", *there, stdin=array).out == "published 2\n"
    lines = '{"price": 11}\nrubbish\n'
    broken = run("publish", "--events", "-", *there, stdin=lines)
    assert broken.code == 2
    assert "after publishing 1: stdin, line 2" in broken.err
    told = [
        '{"price":1,"who":"ana"}', '{"price":2}', '{"price":3}', '{"price":4,"tags":["a",null]}',
        '{"price":5}', '{"price":6}', '{"price":7,"day":"2024-02-29"}', '{"price":8}',
        *["x"] * 4, '{"price":9}', '{"price":10}', '{"price":11}',
    ]  # fmt: skip
    assert reader.communicate(timeout=120)[0].splitlines() == told
    assert "there is no such file" in run("publish", "--events", "gone.json", *there).err
    for words in ((), ("{}", "--events", "gone.json")):
        assert "expected either the JSON of a notification" in run("publish", *words, *there).err


def test_what_is_refused(run: Run, root: int, tmp_path: Path) -> None:
    there = ["--router", f"tidings://127.0.0.1:{root}"]
    assert "the token is not known" in run("publish", "{}", *there).err
    there += ["--token", "secret"]
    assert "'dear' is not a number" in run("publish", '{"price": "dear"}', *there).err
    assert "there is no attribute 'prise'" in run("subscribe", "prise > 1", *there).err
    assert "expected a JSON object" in run("publish", "[1]", *there).err
    assert "can't connect to" in run("publish", "{}", "--router", "tidings://127.0.0.1:1").err
    for address in ("127.0.0.1:1", "tidings://h:99999"):
        assert "expected one such as" in run("publish", "{}", "--router", address).err
    assert "expected a JSON object" in run("publish", "", *there).err
    several = run("publish", "-", *there, stdin='{"price": 1}\n{"price": 2}\nrubbish\n{}\n')
    assert "after publishing 2: line 3: found 'rubbish'" in several.err
    lines = ['{"price": 1}'] * 5 + ["oops"]
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    broken = run("publish", "--events", str(tmp_path / "bad.jsonl"), *there)
    assert "after publishing 5: " in broken.err
    dear = ['{"price": 1}', '{"price": "x"}', '{"price": 2}', '{"price": "y"}']
    refused = run("publish", "-", *there, stdin="\n".join(dear))
    assert refused.code == 2
    assert "published 2 of 4 notifications, and the others were refused; notification 2: " in (
        refused.err
    )
    assert "; notification 4: attribute 'price': 'y' is not a number" in refused.err


@pytest.mark.parametrize("words", [("-",), ("--events", "-")])
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_stdin_is_read(
    root: int, processes: Processes, words: tuple[str, ...], sent: signal.Signals, code: int
) -> None:
    """Python aborts if a thread still reads `sys.stdin` when it ends."""
    there = ["--router", f"tidings://127.0.0.1:{root}", "--token", "secret"]
    reader = processes.start("subscribe", "price > 0", "--most", "1", *there)
    assert reader.stderr is not None
    assert "subscribed to" in reader.stderr.readline()
    with subprocess.Popen(
        [sys.executable, "-m", "tidings", "publish", *words, *there],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b'{"price": 1}\n')
        process.stdin.flush()
        assert "1" in reader.communicate(timeout=60)[0]  # so it waits for the next line now
        process.send_signal(sent)
        assert process.wait(120) == code
        assert b"Fatal" not in process.stderr.read()


def test_lines_that_are_read_after_the_end_make_no_noise(recwarn: pytest.WarningsRecorder) -> None:
    ended, read = threading.Event(), threading.Event()

    def lines() -> Iterator[str]:
        yield "first"
        ended.wait()
        yield "second"
        read.set()

    async def take_one() -> str:
        return await anext(_from_thread(lines()))

    before = set(threading.enumerate())
    assert asyncio.run(take_one()) == "first"
    ended.set()
    for reader in set(threading.enumerate()) - before:
        reader.join(30)
        assert not reader.is_alive()
    assert not read.is_set()  # nobody wants a third line
    gc.collect()
    assert not recwarn.list


def test_over_tls_with_a_token_from_the_environment(
    run: Run, write: Write, processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, other = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    files = authority.sign("root")
    tls = f'[tls]\ncertificate = "{files.certificate.name}"\nkey = "{files.key.name}"\n'
    root = processes.router(write("root.toml", f"{ROOT}{tls}"))
    there = ["--router", f"tidings+tls://localhost:{root}"]
    ours = ["--authorities", str(authority.path)]
    assert "the token is not known" in run("publish", '{"price": 1}', *there, *ours).err
    monkeypatch.setenv("TIDINGS_TOKEN", "secret")
    reader = processes.start("subscribe", "price > 90", "--most", "1", *there, *ours)
    assert reader.stderr is not None
    assert "subscribed to price > 90" in reader.stderr.readline()
    assert run("publish", '{"price": 95}', *there, *ours).out == "published\n"
    assert reader.communicate(timeout=120)[0] == '{"price": 95}\n'
    for more, sentence in (
        ([], "its certificate is not trusted"),
        (["--authorities", str(other.path)], "its certificate is not trusted"),
        (["--authorities", str(tmp_path / "gone.pem")], "gone.pem can't be used: No such file"),
        (["--authorities", str(files.key)], "can't be used: no certificate or crl found"),
        ([*ours, "--token", "wrong"], "the token is not known"),
        (
            [*ours, "--router", f"tidings://localhost:{root}"],
            "expected an address with tidings+tls://",
        ),
    ):
        ended = run("publish", '{"price": 1}', *there, *more)
        assert ended.code == 2
        assert sentence in ended.err
        assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "a"\nlisten = "x"\njournal = "j"', "expected a host and a port"),
        ('name = "a"\nlisten = "127.0.0.1:0"', "expected either upstream"),
        ('name = "a"\nlisten = "127.0.0.1:0"\nupstream = "h:1"\njournal = "j"', "expected either"),
        ('name = "a"\nlisten = "h:1"\nupstream = "h:1"\n[columns]\nx = "double"', "found [col"),
        ('name = "a"\nlisten = "h:1"\njournal = "j"\ncolour = 1', "colour"),
        ("name = ", "is not TOML"),
        ('name = "a"\nlisten = "203.0.113.7:7400"\njournal = "j"', "can't listen on"),
        ('name = "a"\nlisten = "127.0.0.1:0"\njournal = "j"\n[tls]\ncertificate = "c"\nkey = "k"',
         "can't be used"),
        ('name = "a"\nlisten = "h:1"\njournal = "j"\n[tokens]\n"" = "*"', "found an empty token"),
        ('name = "a"\nlisten = "h:1"\njournal = "j"\n[tokens]\nhush = "a/b"', "name 'a/b'"),
        ('name = "a"\nlisten = "h:1"\njournal = "j"\n[tokens]\nhush = ""', "name ''"),
        ('name = "a"\nlisten = "h:1"\njournal = "j"\n[tokens]\n'
         'hush = {name = "a", may = ["fly"]}', "tokens.*.may[0]: found 'fly', expected "),
        ('name = "a"\nlisten = "h:1"\njournal = "j"\n[tokens]\nhush = {may = []}',
         "tokens.*.name: the setting is missing; add it"),
    ],
)  # fmt: skip
def test_files_that_are_refused(run: Run, write: Write, text: str, message: str) -> None:
    ended = run("router", "--config", write("router.toml", text))
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert "hush" not in ended.err  # no token is shown


def test_what_is_said_of_what_is_missing() -> None:
    assert _describe_loss(Lost(1200)) == "1,200 notifications lost"
    assert _describe_loss(Break("it was away")) == "notifications may have been missed: it was away"


def test_a_preprocessor_that_nobody_could_reach(run: Run) -> None:
    result = run("preprocessor", "tidings://127.0.0.1:1", "--listen", "0.0.0.0:0")
    assert result.code == 2
    assert "found --listen 0.0.0.0:0, which is not a host that agents can connect to" in result.err
