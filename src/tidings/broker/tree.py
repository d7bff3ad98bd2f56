"""A tree of nodes as processes of this machine: started, kept running, and ended in order.

Each is `tidings router` with a file of its own. Its stdin is a pipe that nobody writes to: when the
process that holds the other end is gone, however that came, the node ends itself. What it says on
stderr goes to a log.

    folder/journal.db    of the rendezvous point
    folder/NAME.toml     what a node is started with; it has tokens in it, so others may not read it
    folder/NAME.log
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import IO

from tidings.broker.entry import Grant
from tidings.broker.tree_file import Member, Tree
from tidings.model import EnvironmentProblem

PAUSE = (0.5, 10.0)  # seconds before one that died is started again: at first, and at most
SETTLED = 30.0  # seconds after which one that dies is taken for healthy again
PATIENCE = 10.0  # seconds that one may take to end
WATCHER = "<up>"
_SIGNALS = {one.value: one.name for one in signal.Signals}
_BARE = re.compile(r"[A-Za-z0-9_-]+")
ERROR = "error: "  # what the last words of a command begin with


class State(Enum):
    STARTING = "starting"
    RUNNING = "running"
    AGAIN = "again"  # it died, and is started again
    ENDED = "ended"


class Branch:
    """A node of the tree, and its process."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.state = State.STARTING
        self.port = member.listen.port
        self.again = 0.0  # when it is started again
        self.starts = 0
        self.process: asyncio.subprocess.Process | None = None
        self.known = asyncio.Event()  # where it listens
        self.listening = asyncio.Event()
        if self.port:
            self.known.set()

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def pid(self) -> int | None:
        running = self.process is not None and self.process.returncode is None
        return self.process.pid if self.process is not None and running else None

    def address(self, host: str | None = None) -> str:
        host = self.member.listen.host if host is None else host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class RunningTree:
    """The processes of a tree. `told` gets a sentence for whatever happens."""

    def __init__(self, tree: Tree, told: Callable[[str], None]) -> None:
        self.tree = tree
        self.branches = {one.name: Branch(one) for one in tree.members}
        self._told = told
        self._keys = {one.name: secrets.token_urlsafe(24) for one in tree.members}
        self._tasks: list[asyncio.Task[None]] = []
        self._lock: int | None = None
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done, with an exception, when it can't go on."""

    @property
    def root(self) -> Branch:
        return self.branches[self.tree.members[0].name]

    def watched(self) -> tuple[str, str, str]:
        """The address of the rendezvous point, and the name and token by which it is watched."""
        channel = f"/{self.tree.channel}" if self.tree.channel else ""
        address = f"tidings://{self.root.address(self.root.member.reached)}{channel}"
        return address, WATCHER, self._keys[self.root.name]

    # -- starting ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start all, and wait until they listen; EnvironmentProblem where one can't."""
        self._prepare()
        self._tasks = [asyncio.create_task(self._keep(one)) for one in self.branches.values()]
        listening = asyncio.create_task(self._all_listen())
        try:
            await asyncio.wait({listening, self.failure}, return_when=asyncio.FIRST_COMPLETED)
            if self.failure.done():
                self.failure.result()
        finally:
            listening.cancel()

    async def _all_listen(self) -> None:
        for branch in self.branches.values():
            await branch.listening.wait()

    def _prepare(self) -> None:
        folder = self.tree.folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EnvironmentProblem(f"{folder}: these nodes are running already") from None
        except OSError as problem:
            raise EnvironmentProblem(f"{folder} can't be used: {problem.strerror}") from None

    async def _keep(self, branch: Branch) -> None:
        """Have a node running for as long as this task is."""
        try:
            await self._run_again_and_again(branch)
        except Exception as problem:
            if not self.failure.done():
                self.failure.set_exception(problem)
                self.failure.exception()  # nobody may be there any more to look at it

    async def _run_again_and_again(self, branch: Branch) -> None:
        above = branch.member.upstream
        if above is not None:
            await self.branches[above].known.wait()
        pause = PAUSE[0]
        while True:
            began = time.monotonic()
            how = await self._run(branch)
            if not branch.listening.is_set():  # a mistake that no patience would cure
                log = self._log_of(branch)
                raise EnvironmentProblem(f"{branch.name} can't be started: {how} (see {log})")
            if time.monotonic() - began > SETTLED:
                pause = PAUSE[0]
            self._told(f"{branch.name} ended ({how}); it is started again in {pause:g} s")
            branch.state, branch.again = State.AGAIN, time.monotonic() + pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE[1])

    async def _run(self, branch: Branch) -> str:
        """Run a node once; how it ended."""
        log = self._log_of(branch)
        with _private(log, "ab") as out:
            before = out.tell()
            config = self.tree.folder / f"{branch.name}.toml"
            with _private(config, "wb") as file:
                file.write(self._config(branch).encode())
            process = branch.process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "tidings", "router", "--config", str(config), "--log",
                "--until-stdin-ends",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=out,
                start_new_session=True,  # Ctrl-C is ours: they end in order
            )  # fmt: skip
            branch.starts += 1
            assert process.stdout is not None
            first = await process.stdout.readline()
            with contextlib.suppress(ValueError):
                branch.port = int(first.rpartition(b":")[2])
                self._runs(branch)
            while rest := await process.stdout.read(1 << 16):
                out.write(rest)
            code = await process.wait()
        if code < 0:
            return f"signal {_SIGNALS.get(-code, -code)}"
        reason = _last_line(log, before)
        return reason.removeprefix(ERROR) if reason.startswith(ERROR) else f"exit code {code}"

    def _runs(self, branch: Branch) -> None:
        branch.state = State.RUNNING
        branch.known.set()
        branch.listening.set()
        again = "" if branch.starts == 1 else " again"
        self._told(f"{branch.name} listens{again} at {branch.address()}")

    def _log_of(self, branch: Branch) -> Path:
        return self.tree.folder / f"{branch.name}.log"

    def _config(self, branch: Branch) -> str:
        """The router's own file."""
        tree, member = self.tree, branch.member
        plain: dict[str, str] = {
            "name": member.name,
            "listen": branch.address(),
            "channel": tree.channel,
            "policy": tree.policy,
        }
        if member.upstream is None:
            plain["journal"] = "journal.db"
        else:
            above = self.branches[member.upstream]
            plain["upstream"] = above.address(above.member.reached)
            if tree.tokens is not None:
                plain["token"] = self._keys[member.name]
        tables: dict[str, Mapping[str, str | float | Grant]] = {"times": tree.times}
        if member.upstream is None:
            tables["columns"] = tree.columns
        if tree.tokens is not None:
            below = [one.name for one in tree.members if one.upstream == member.name]
            keys = {self._keys[name]: name for name in below}
            if member.upstream is None:
                keys[self._keys[member.name]] = WATCHER
            tables["tokens"] = {**tree.tokens, **keys}
        lines = _pairs(plain)
        for title, table in tables.items():
            if table:
                lines += ["", f"[{title}]", *_pairs(table)]
        return "\n".join(lines) + "\n"

    # -- ending --------------------------------------------------------------------------------

    async def stop(self) -> None:
        """End all, each before the one above it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        deepest = max(one.member.depth for one in self.branches.values())
        for depth in range(deepest, -1, -1):
            level = [one for one in self.branches.values() if one.member.depth == depth]
            await asyncio.gather(*map(self._end, level))
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def _end(self, branch: Branch) -> None:
        process = branch.process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), PATIENCE)
            except TimeoutError:
                self._told(f"{branch.name} did not end in {PATIENCE:g} s and is killed")
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        branch.state = State.ENDED


def _private(path: Path, mode: str) -> IO[bytes]:
    """A file that nobody else may read."""
    opened = open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115
    os.fchmod(opened.fileno(), 0o600)
    return opened


def _pairs(table: Mapping[str, str | float | Grant]) -> list[str]:
    return [f"{_key(key)} = {_written(value)}" for key, value in table.items()]


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _quoted(text)


def _written(value: str | float | Grant) -> str:
    if isinstance(value, Grant):
        name = f"name = {_quoted(value.name)}"
        if value.may is None:
            return f"{{{name}}}"
        return f"{{{name}, may = [{', '.join(map(_quoted, sorted(value.may)))}]}}"
    return _quoted(value) if isinstance(value, str) else repr(float(value))


def _quoted(text: str) -> str:
    """Strings of TOML are those of JSON, but for one letter."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _last_line(path: Path, start: int) -> str:
    """What was written last, from a place on."""
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read().decode("utf-8", "replace").splitlines()
    return next((line for line in reversed(lines) if line.strip()), "")
