"""SIGTERM and Ctrl-C end every process in ten seconds, whatever it is doing; on a busy machine, a
little later."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.processes import write_secret
from tests.cli.conftest import Run
from tests.waiting import PATIENCE, eventually, wait_for

from tidings.store import ChangeLog

ROOT = 'name = "root"\nlisten = "127.0.0.1:0"\njournal = "journal.db"\n'
MOST = 60.0  # seconds; nobody else would end those who are busy
AT_ONCE = 5.5  # seconds; less than watchdog.GRACE, after which one who is busy is killed
BUSY = {
    "python": "while True: pass",
    # it waits in C for a mutex that it has itself, with the interpreter's lock: no other thread of
    # the process runs, and no signal interrupts it
    "C": "import ctypes; c, m = ctypes.PyDLL(None), ctypes.create_string_buffer(64); "
    "c.pthread_mutex_lock(m); c.pthread_mutex_lock(m)",
    "asleep": "import time; time.sleep(1000)",
}
ROUTER = """
import os, sys
if "router" in sys.orig_argv:
    from pathlib import Path
    from tidings.broker.server import Server
    take = Server._take
    def busy(self, link, found, message):
        take(self, link, found, message)
        if getattr(message, "payload", b"") == b"be busy":
            Path(FOLDER, "is busy").write_text(str(os.getpid()))
            DO
    Server._take = busy
"""
WORKER = """
import os
from pathlib import Path
try:
    from tidings.spark.outbox.batches import batch_stages as stages
except ImportError:
    pass  # a process that is none of ours
else:
    def busy(*_):
        Path(FOLDER, "is busy").write_text(str(os.getpid()))
        DO
    stages._stage_batch = busy
"""


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _fields(pid: int) -> list[str]:
    """What the kernel says about a process, from its state on."""
    return _text(Path(f"/proc/{pid}/stat")).rpartition(") ")[2].split()


def _state(pid: int) -> str:
    return _fields(pid)[0]


def _ticks(pid: int) -> int:
    """Hundredths of a second of processor time that a process has used."""
    return sum(map(int, _fields(pid)[11:13]))


def _let_run(pid: int) -> None:
    """Wait until a process sleeps, has run for a while, or has ended."""
    before = _ticks(pid)
    eventually(lambda: _state(pid) in ("S", "Z") or _ticks(pid) > before + 10)


class Running:
    """A command that runs with code of the test in it."""

    def __init__(self, folder: Path, *words: str, code: str = "", **more: object) -> None:
        patches = folder / "patches"
        patches.mkdir(exist_ok=True)
        (patches / "sitecustomize.py").write_text(code.replace("FOLDER", repr(str(folder))))
        paths = [str(patches), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.folder = folder
        self.errors = (folder / "errors").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tidings", *words],
            stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TEST_FAMILY": str(folder)},
            start_new_session=True, **more,  # type: ignore[call-overload]
        )  # fmt: skip

    def line(self) -> str:
        assert self.process.stdout is not None
        return str(self.process.stdout.readline())

    def wait_busy(self, seconds: float = 60.0) -> None:
        """Wait until a process is in the middle of what keeps it busy, and the command has its
        watchdog."""
        file = self.folder / "is busy"
        wait_for(lambda: _text(file) or self.process.poll() is not None, seconds)
        assert _text(file), self.said()
        _let_run(int(_text(file)))
        eventually(lambda: any("watchdog.py" in one for one in self.family()))

    def ended(self, *signals: int) -> float:
        """Seconds until it has ended after signals, each sent when the one before has arrived."""
        began = time.monotonic()
        for number in signals:
            self.process.send_signal(number)
            eventually(lambda: self.process.poll() is not None or not self._pending())
            if self.process.poll() is None:
                _let_run(self.process.pid)  # Python notices signals that come together as one
        self.process.wait(PATIENCE)
        return time.monotonic() - began

    def _pending(self) -> int:
        """The signals that were sent and have not arrived, as bits."""
        found = re.search(r"ShdPnd:\s*(\w+)", _text(Path(f"/proc/{self.process.pid}/status")))
        return int(found[1], 16) if found else 0

    def family(self) -> list[str]:
        """Processes that are left of it, by what they are."""
        mark = f"TEST_FAMILY={self.folder}".encode()
        found = []
        for one in Path("/proc").iterdir():
            if one.name.isdigit():
                try:
                    if mark in (one / "environ").read_bytes().split(b"\0"):
                        found.append((one / "cmdline").read_text().replace("\0", " ")[:200])
                except OSError:
                    continue
        return found

    def is_stuck(self) -> bool:
        """Whether the pipe that it writes to is full, up to a line or a page."""
        assert self.process.stdout is not None
        unread = bytearray(4)
        fcntl.ioctl(self.process.stdout, termios.FIONREAD, unread)
        capacity = fcntl.fcntl(self.process.stdout, fcntl.F_GETPIPE_SZ)
        return int.from_bytes(unread, sys.byteorder) > capacity - 8192

    def said(self) -> str:
        self.errors.seek(0)
        return self.errors.read()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.errors.close()


@pytest.fixture
def opened() -> Iterator[list[Running]]:
    found: list[Running] = []
    yield found
    for one in found:
        one.close()


def _publish(port: int, payload: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tidings", "publish", '{"n": 1}', "--payload", payload,
         "--router", f"tidings://127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("what", "signals"),
    [
        ("C", (signal.SIGINT,)),
        ("python", (signal.SIGINT, signal.SIGINT)),
        pytest.param("asleep", (signal.SIGINT,), marks=pytest.mark.slow),
        pytest.param("python", (signal.SIGTERM,), marks=pytest.mark.slow),
        pytest.param("C", (signal.SIGTERM,), marks=pytest.mark.slow),
        pytest.param("C", (signal.SIGINT, signal.SIGINT), marks=pytest.mark.slow),
    ],
)
def test_a_root_that_is_busy(
    run: Run, tmp_path: Path, opened: list[Running], what: str, signals: tuple[int, ...]
) -> None:
    path = write_secret(tmp_path / "root.toml", ROOT)
    code = ROUTER.replace("DO", BUSY[what])
    root = Running(tmp_path, "router", "--config", str(path), code=code)
    opened.append(root)
    port = int(root.line().rpartition(":")[2])
    there = ("--router", f"tidings://127.0.0.1:{port}")
    for number in range(3):
        sent = run("publish", '{"n": 1}', "--payload", str(number), *there)
        assert sent.out == "published\n"
    last = _publish(port, "be busy")
    try:
        root.wait_busy()
        seconds = root.ended(*signals)
    finally:
        last.kill()
        last.communicate()
    assert seconds < (MOST if len(signals) == 1 else AT_ONCE)
    assert wait_for(lambda: not root.family(), MOST), root.family()
    if len(signals) == 1:
        assert "the command did not end when asked to and is killed; it was at File" in root.said()
    # what was acknowledged is there
    again = Running(tmp_path, "router", "--config", str(path))
    opened.append(again)
    port = int(again.line().rpartition(":")[2])
    (found,) = run("top", "--once", "--json", "--router", f"tidings://127.0.0.1:{port}").records
    assert found["nodes"][0]["serial"] >= 3
    assert again.ended(signal.SIGTERM) < MOST
    assert again.process.returncode == 0


def test_a_subscriber_that_nobody_reads(run: Run, tmp_path: Path, opened: list[Running]) -> None:
    """It is stuck in a write to a full pipe, which goes on after a signal was heard."""
    path = write_secret(tmp_path / "root.toml", ROOT)
    root = Running(tmp_path, "router", "--config", str(path))
    opened.append(root)
    address = f"tidings://127.0.0.1:{int(root.line().rpartition(':')[2])}"
    reader = Running(tmp_path, "subscribe", "n > 0", "--router", address)
    opened.append(reader)
    eventually(lambda: "subscribed to" in reader.said())
    lines = "".join(json.dumps({"n": n, "text": "x" * 1000}) + "\n" for n in range(1, 500))
    assert run("publish", "-", "--router", address, stdin=lines).code == 0
    eventually(reader.is_stuck)
    assert reader.ended(signal.SIGTERM) < MOST


def test_a_benchmark_leaves_nothing_behind(tmp_path: Path, opened: list[Running]) -> None:
    words = ("bench", "route", "--only", "forward", "--no-peers", "--rounds", "500")
    bench = Running(tmp_path, *words)
    opened.append(bench)
    assert wait_for(lambda: any(" router " in one for one in bench.family())), bench.said()
    assert bench.ended(signal.SIGTERM) < MOST
    assert bench.process.returncode == 128 + signal.SIGTERM
    assert wait_for(lambda: not bench.family(), MOST), bench.family()
    assert "Traceback" not in bench.said()


PIPELINE = """
name = "flights"
[source]
kind = "files"
path = "in"
[columns]
flight = "integer"
dep_delay = "integer"
[subscriptions]
log = "subscriptions"
[outbox]
path = "out"
[trigger]
every_seconds = 0.1
"""


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("what", "signals"),
    [
        ("C", (signal.SIGTERM,)),
        pytest.param("asleep", (signal.SIGINT,), marks=pytest.mark.slow),
        pytest.param("C", (signal.SIGINT, signal.SIGINT), marks=pytest.mark.slow),
    ],
)
def test_a_pipeline_that_is_stuck_in_a_row(
    run: Run, tmp_path: Path, opened: list[Running], what: str, signals: tuple[int, ...]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"flight": 1, "dep_delay": 75}\n')
    (tmp_path / "p.toml").write_text(PIPELINE)
    ChangeLog(tmp_path / "subscriptions").put_many({"late": "dep_delay > 60"})
    code = WORKER.replace("DO", BUSY[what])
    running = Running(tmp_path, "pipeline", "run", str(tmp_path / "p.toml"), code=code)
    opened.append(running)
    running.wait_busy(240)
    assert len(running.family()) >= 4  # the driver, Java, and workers
    seconds = running.ended(*signals)
    assert seconds < (MOST if len(signals) == 1 else AT_ONCE), running.said()
    assert wait_for(lambda: not running.family(), MOST), running.family()
    assert "Traceback" not in running.said()
    # nothing of the batch was committed, and it is done again, in the session of the run
    (tmp_path / "p.toml").write_text(
        PIPELINE.replace("every_seconds = 0.1", "available_now = true")
    )
    again = run("pipeline", "run", "--json", str(tmp_path / "p.toml"))
    assert (again.code, again.records[0]["told"]) == (0, 1), again.err
    # and what the driver and the workers wrote is for its owner
    written = [one for one in (tmp_path / "out").rglob("*") if one.exists()]
    assert {one.suffix for one in written} >= {".parquet", ".json"}
    assert [one for one in written if one.stat().st_mode & 0o077] == []
    for name in ("out", "checkpoint"):
        assert not (tmp_path / name).stat().st_mode & 0o077


@pytest.mark.parametrize("ignored", [False, True])
def test_a_router_ends_with_its_terminal(tmp_path: Path, ignored: bool) -> None:
    """SIGHUP of a terminal that is gone ends it, unless it was started by nohup; any other has it
    read its tokens again."""
    path = write_secret(tmp_path / "root.toml", ROOT)
    pid, terminal = pty.fork()
    ended = (0, 0)
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
        words = [sys.executable, "-m", "tidings", "router", "--config", str(path)]
        os.dup2(os.open(tmp_path / "said", os.O_WRONLY | os.O_CREAT), 2)
        os.execv(sys.executable, words)
    try:
        assert b"listens on" in os.read(terminal, 1 << 12)
        os.kill(pid, signal.SIGHUP)
        said = "the tokens were read again, and 0 links ended"
        eventually(lambda: said in (tmp_path / "said").read_text())
        os.close(terminal)
        deadline = time.monotonic() + (2 if ignored else MOST)
        while ended[0] == 0 and time.monotonic() < deadline:
            ended = os.waitpid(pid, os.WNOHANG)
            time.sleep(0.05)
        assert ended == ((0, 0) if ignored else (pid, 0))
    finally:
        if ended[0] == 0:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_a_leash_that_comes_late() -> None:
    """A slow start had a watchdog without one by then, and outlived whoever started it."""
    code = """
import time
from tidings.cli.common import shutdown
shutdown.LATER = 0.01
shutdown.end_in_time()
while shutdown._watchdog._process is None:
    time.sleep(0.01)
before = shutdown._watchdog._process
shutdown.end_with_stdin()
assert before.returncode == 0
print("ready", flush=True)
while True:
    pass
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        process.stdin.close()
        assert process.wait(MOST) != 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_interrupted_while_it_is_loaded() -> None:
    """Ctrl-C before the commands are there ends without a traceback."""
    code = (
        "import sys, runpy\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv[1:] = ['--help']\n"
        "runpy.run_module('tidings', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
