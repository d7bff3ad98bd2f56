"""A tree of nodes as processes on this machine: started, kept running, and stopped in order.

Each node is `tidings router`, or `tidings preprocessor`, with its own file. The stdin of a node is
a pipe that nobody writes to. When the process at the other end of the pipe ends, for any reason,
the node exits. The node's event loop writes a sign of life to stdout each second. A node that is
silent for too long is killed and restarted. The port of a node is not probed, because under a flood
of connections a probe can fail even if the node is healthy. The stderr of a node goes to a log.

    folder/journal.db    the journal of the rendezvous point; NAME.journal.db for another channel
    folder/NAME.toml     the file of a node; it contains tokens, so only the owner may read it
    folder/NAME.ticket-key, NAME.token    other secrets of a node
    folder/NAME.log      the log of a node; NAME.log.old is the part moved out when it grew too long
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from tidings.broker.config import ConfigError
from tidings.broker.processes import send_signal
from tidings.broker.trees.node_file import (
    WATCHER,
    list_arguments,
    list_other_roots,
    make_keys,
    scheme_of,
    write_node_file,
    write_secrets,
)
from tidings.broker.trees.node_process import NodeProcess, ProcessState
from tidings.broker.trees.tree_settings import Tree
from tidings.files import make_folder, place_file, private_file, release_lock, take_lock
from tidings.model import EnvironmentProblem

PAUSE = (0.5, 10.0)  # seconds before a dead node is restarted: at first, and at most
LOOK = 1.0  # seconds between two checks for silent nodes
SETTLED = 30.0  # seconds of running after which a node counts as healthy
ENDING = 4.0  # seconds within which all nodes must exit; the command's watchdog waits 6 s
MOST_LOG = 16 << 20  # bytes; the content of a longer log is moved to the old log
STARTING = 20  # a starting node, which reads its journal, may be silent this many times as long
_SIGNALS = {one.value: one.name for one in signal.Signals}
ERROR = "error: "  # the prefix of the last line of a command that fails


class RunningTree:
    """The processes of a tree. `announce` is called with a message about each event, such as a
    start or an exit."""

    def __init__(self, tree: Tree, announce: Callable[[str], None]) -> None:
        self.tree = tree
        self.branches = {one.name: NodeProcess(one) for one in tree.members}
        self._announce = announce
        self._keys = make_keys(tree)
        self._tasks: list[asyncio.Task[None]] = []
        self._lock: int | None = None
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets an exception when the tree can't keep running."""

    @property
    def root(self) -> NodeProcess:
        return self.branches[self.tree.members[0].name]

    @property
    def authorities(self) -> str | None:
        """The file with the certificates that must be trusted for the nodes; None if the
        certificates that the machine trusts are enough."""
        return None if self.tree.tls is None else self.tree.tls.authorities

    def watch_address(self) -> tuple[str, str, str]:
        """The address of the rendezvous point, and the name and token with which to watch the
        rendezvous point."""
        channel = f"/{self.tree.channel}" if self.tree.channel else ""
        address = f"{scheme_of(self.tree)}://{self.root.address(self.root.member.reached)}{channel}"
        return address, WATCHER, self._keys.tokens[self.root.name]

    # -- starting ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start all nodes, and wait until they listen; raise EnvironmentProblem if a node can't
        start."""
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
            make_folder(folder)
            self._lock = take_lock(folder / "up.lock")
        except BlockingIOError:
            raise EnvironmentProblem(
                f"{folder}: its nodes are running already; stop them before you start them again"
            ) from None
        except OSError as problem:
            raise EnvironmentProblem(f"{folder} can't be used: {problem.strerror}") from None

    async def _keep(self, branch: NodeProcess) -> None:
        """Keep a node running as long as this task runs."""
        try:
            await self._run_repeatedly(branch)
        except Exception as problem:
            if not self.failure.done():
                self.failure.set_exception(problem)
                self.failure.exception()  # if nobody retrieved it, asyncio would warn

    async def _run_repeatedly(self, branch: NodeProcess) -> None:
        member = branch.member
        for above in (*member.upstreams, *list_other_roots(self.tree, member)):
            await self.branches[above].known.wait()
            if member.tagger is not None:
                await self.branches[above].listening.wait()
        pause = PAUSE[0]
        while True:
            began = time.monotonic()
            how = await self._run(branch)
            if not branch.listening.is_set():  # it never listened; a restart would not help
                log = self._log_of(branch)
                raise EnvironmentProblem(f"{branch.name} can't be started: {how} (see {log})")
            if time.monotonic() - began > SETTLED:
                pause = PAUSE[0]
            self._announce(f"{branch.name} ended ({how}); restarting it in {pause:g} s")
            branch.state, branch.again = ProcessState.AGAIN, time.monotonic() + pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE[1])

    async def _run(self, branch: NodeProcess) -> str:
        """Run a node once; return how it ended."""
        log = self._log_of(branch)
        with _open_private(log, "ab") as out:
            before = out.tell()
            config = self._write_config(branch)
            process = branch.process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "tidings",
                *list_arguments(self.tree, branch, self.branches, config),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=out,
                start_new_session=True,  # Ctrl-C must not reach the nodes before they are stopped
            )  # fmt: skip
            branch.starts += 1
            watching = asyncio.create_task(self._watch(branch, process))
            try:
                assert process.stdout is not None
                first = await process.stdout.readline()
                with contextlib.suppress(ValueError):
                    branch.port = int(first.rpartition(b":")[2])
                    self._note_listening(branch)
                while rest := await process.stdout.read(1 << 16):
                    branch.heard = True
                    out.write(rest.replace(b"\n", b""))
                code = await process.wait()
            finally:
                watching.cancel()
        if code < 0:
            return f"signal {_SIGNALS.get(-code, -code)}"
        reason = _last_line(log, before)
        return reason.removeprefix(ERROR) if reason.startswith(ERROR) else f"exit code {code}"

    async def _watch(self, branch: NodeProcess, process: asyncio.subprocess.Process) -> None:
        """Kill a node that gives no sign of life for too long. Checks are counted instead of
        seconds, so that no node is killed because this process was suspended or the machine
        slept."""
        branch.heard, silent = True, 0
        while True:
            await asyncio.sleep(LOOK)
            _shorten(self._log_of(branch))
            silent = 0 if branch.heard else silent + 1
            branch.heard = False
            starts = branch.state is not ProcessState.RUNNING
            most = self.tree.patience * (STARTING if starts else 1)
            if silent * LOOK >= most:
                self._announce(f"{branch.name} gave no sign of life for {most:g} s; killing it")
                send_signal(process, signal.SIGKILL)
                return

    def _note_listening(self, branch: NodeProcess) -> None:
        branch.state = ProcessState.RUNNING
        branch.heard = True  # listening is a sign of life too
        branch.known.set()
        branch.listening.set()
        again = "" if branch.starts == 1 else " again"
        self._announce(f"{branch.name} listens{again} on {branch.address()}")
        if branch.rights != self._rights:  # the tokens or keys changed while the node started
            self._renew(branch)

    def _log_of(self, branch: NodeProcess) -> Path:
        return self.tree.folder / f"{branch.name}.log"

    def _write_config(self, branch: NodeProcess) -> Path:
        path = self.tree.folder / f"{branch.name}.toml"
        for name, text in write_secrets(self.tree, branch.member, self._keys).items():
            place_file(self.tree.folder / name, text.encode())
        place_file(path, self._config(branch).encode())
        branch.rights = self._rights
        return path

    def _config(self, branch: NodeProcess) -> str:
        return write_node_file(self.tree, branch, self.branches, self._keys)

    @property
    def _rights(self) -> tuple[object, object]:
        return self.tree.tokens, self.tree.grants

    def renew(self, found: Tree) -> None:
        """Apply the tree's file after it was read again: all nodes now use its tokens and its keys
        of grants, and all rendezvous points use its kinds of interest. The rendezvous points also
        read their ontologies again."""
        if found.is_guarded != self.tree.is_guarded:
            there = "no [tokens], but there were some"
            if found.is_guarded:
                there = "[tokens], but there were none"
            raise ConfigError(
                f"found {there} when the tree was started; to add or remove [tokens], restart the "
                "tree"
            )
        channels = {
            name: msgspec.structs.replace(
                one, preprocessor=found.channels.get(name, one).preprocessor
            )
            for name, one in self.tree.channels.items()
        }
        self.tree = msgspec.structs.replace(
            self.tree,
            tokens=found.tokens,
            grants=found.grants,
            preprocessor=found.preprocessor,
            channels=channels,
        )
        for branch in self.branches.values():
            if branch.state is ProcessState.RUNNING:
                self._renew(branch)

    def _renew(self, branch: NodeProcess) -> None:
        """Make a running node load the current tokens and keys."""
        self._write_config(branch)
        if branch.process is not None:
            send_signal(branch.process, signal.SIGHUP)

    # -- stopping ------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop all nodes, each before the node above it, and kill nodes that take too long. It is
        safe to kill nodes, because everything that they acknowledged is on the disk."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        latest = time.monotonic() + ENDING
        deepest = max(one.member.depth for one in self.branches.values())
        for depth in range(deepest, -1, -1):
            level = [one for one in self.branches.values() if one.member.depth == depth]
            seconds = max(0.0, latest - time.monotonic()) / (depth + 1)
            await asyncio.gather(*(self._end(one, seconds) for one in level))
        if self._lock is not None:
            release_lock(self._lock)
            self._lock = None

    async def _end(self, branch: NodeProcess, seconds: float) -> None:
        process = branch.process
        if process is not None and process.returncode is None:
            send_signal(process, signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), seconds)
            except TimeoutError:
                self._announce(f"{branch.name} did not stop within {seconds:.1f} s; killing it")
                send_signal(process, signal.SIGKILL)
                await process.wait()
        branch.state = ProcessState.ENDED


def _open_private(path: Path, mode: str) -> IO[bytes]:
    """Open a file, and make it readable only by its owner even if it existed before."""
    opened = private_file(path, mode)
    os.fchmod(opened.fileno(), 0o600)
    return opened


def _shorten(log: Path) -> None:
    """Move the content of a log that is too long to the old log. The node keeps appending to the
    same file."""
    if log.stat().st_size > MOST_LOG:
        with log.open("rb") as file, _open_private(log.with_suffix(".log.old"), "wb") as old:
            shutil.copyfileobj(file, old)
        os.truncate(log, 0)


def _last_line(path: Path, start: int) -> str:
    """The last line written after the position `start` of a file."""
    with path.open("rb") as file:
        file.seek(start if path.stat().st_size >= start else 0)
        lines = file.read().decode("utf-8", "replace").splitlines()
    return next((line for line in reversed(lines) if line.strip()), "")
