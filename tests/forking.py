"""Starts `tidings` commands without starting Python: a process that has imported everything forks.

    this process ── socket ──> forker ── fork ──> short-lived child ── fork ──> the command
         └──────────────── is its parent, because the short-lived child ends ────────┘

To start and end a rendezvous point takes 1.8 seconds of processor time, nearly all of it to import
modules, to load kernels and to take all of that apart; forked, it takes 0.06. Tests start hundreds
of them. A forked command is a process like any other: it has its own pid, files, session,
environment and command line, and it is killed and waited for as usual. Tests of how commands start
and end use `subprocess` itself.

With the fixture `forked` of tests/conftest.py, commands are forked wherever they are started: in
the test, or in code of tidings that the test calls. `tidings up` then forks its nodes too; it has a
forker of its own, because only a descendant can become its child.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import inspect
import os
import pickle
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

SET_CHILD_SUBREAPER = 36  # of prctl: orphans among the descendants become children of this process
READ_AT_START = ("PYTHON", "NUMBA", "TIDINGS", "XDG")  # what a running Python has read already
OURS = ("tidings", "tests")
APPLIED = {"PYTHONPATH", "PYTHONUNBUFFERED"}  # except these, which `become` applies
PYTHON = sys.executable  # a test may change it
STARTERS = {"up"}  # commands that start others
GIVEN = [*inspect.signature(subprocess.Popen._execute_child).parameters][1:]  # type: ignore[attr-defined]
LARGEST = 1 << 20  # bytes of a request
ROOM = " " * 1000  # in the command line of the forker, for those of commands


class Forked(subprocess.Popen[Any]):
    """`Popen`, for `python -m tidings ...` and the like; forks where that makes no difference."""

    def _execute_child(self, *given: Any) -> None:
        told = dict(zip(GIVEN, given, strict=True))
        special = told["preexec_fn"] or told["pass_fds"] or told["shell"] or told["executable"]
        if special or not can_fork(told["args"], told["env"]):
            super()._execute_child(*given)  # type: ignore[misc]
            return
        files = [told["p2cread"], told["c2pwrite"], told["errwrite"]]
        request = {
            "words": [os.fspath(one) for one in told["args"] if one != "-P"],
            "isolated": "-P" in told["args"],
            "env": dict(os.environ if told["env"] is None else told["env"]),
            "cwd": os.fspath(told["cwd"] or os.getcwd()),  # noqa: PTH109
            "session": told["start_new_session"],
        }
        self.pid = forker().start(request, [at if own < 0 else own for at, own in enumerate(files)])
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(told[name] for name in pipes))  # type: ignore[attr-defined]


def can_fork(words: Any, env: Mapping[str, str] | None) -> bool:
    """Whether a command is `python -m` with a module of ours, and its Python would start like this
    one."""
    if isinstance(words, str | bytes) or words[0] != PYTHON:
        return False
    words = [one for one in words[1:] if one != "-P"]
    if words[0] != "-m" or words[1].partition(".")[0] not in OURS:
        return False
    env = os.environ if env is None else env
    names = {name for name in {*env, *os.environ} if name.startswith(READ_AT_START)}
    if any(env.get(name) != os.environ.get(name) for name in names - APPLIED):
        return False
    paths = env.get("PYTHONPATH", "").split(os.pathsep)
    return not any(os.path.exists(f"{path}/sitecustomize.py") for path in paths)  # noqa: PTH110


class Forker:
    """The other process, as this one sees it."""

    def __init__(self, requests: socket.socket, pid: int) -> None:
        self._socket, self._pid = requests, pid
        atexit.register(self.end)

    def start(self, request: Mapping[str, Any], files: list[int]) -> int:
        """Return the pid of a new child of this process."""
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            socket.send_fds(self._socket, [pickle.dumps(request)], files)
            answer = self._socket.recv(100)
        finally:  # other orphans are not for this process to wait for
            prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        if not answer:
            raise RuntimeError(f"the forker ended with {os.waitpid(self._pid, 0)[1]}")
        return int(answer)

    def end(self) -> None:
        self._socket.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


@cache
def forker() -> Forker:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.forking", str(theirs.fileno()), ROOM],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
        )  # fmt: skip
    process.returncode = 0  # the forker waits for it, not `Popen`
    return Forker(ours, process.pid)


def fork_forker(files: list[int]) -> Forker:
    """A forker for this process, which is itself forked and has only one thread yet; without its
    files, which end with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        os.setsid()  # Ctrl-C is not for it
        for one in (ours.detach(), *files):
            os.close(one)
        serve(theirs)
        os._exit(0)
    theirs.close()
    return Forker(ours, pid)


def serve(requests: socket.socket) -> None:
    """Fork for each request, until the other side is gone. In a fork, run the command."""
    while True:
        text, files, _, _ = socket.recv_fds(requests, LARGEST, 3)
        if not text:
            return
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid == 0:
                requests.close()
                os.close(reading)
                os.close(writing)
                become(pickle.loads(text), files)
                return
            os.write(writing, b"%d" % pid)
            os._exit(0)
        os.waitpid(between, 0)  # from here on, the command is a child of the process that asked
        requests.send(os.read(reading, 100))
        for file in (reading, writing, *files):
            os.close(file)


def become(request: Mapping[str, Any], files: list[int]) -> None:
    """Run a command, in a process that was forked for it."""
    if request["session"]:
        os.setsid()
    if request["words"][2:4] in [["tidings", one] for one in STARTERS]:
        own = fork_forker(files)
        globals()["forker"] = lambda: own
        subprocess.Popen = Forked  # type: ignore[misc]
    name_process(request["words"])
    for at, file in enumerate(files):
        os.dup2(file, at)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [*([] if request["isolated"] else [request["cwd"]]), *filter(None, paths)]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    if "PYTHONUNBUFFERED" in os.environ:
        sys.stdout.reconfigure(write_through=True)
    sys.argv[:] = request["words"][2:]
    try:
        runpy.run_module(request["words"][2], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            leave(end.code or 0)
        raise
    leave(0)


def name_process(words: list[str]) -> None:
    """Put a command where /proc and `ps` find the command line of this process."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    first, end = int(fields[45]), int(fields[46])
    text = "\0".join(words).encode() + b"\0"
    assert len(text) < end - first, "there is no room for the command line"
    ctypes.memmove(first, text.ljust(end - first, b"\0"), end - first)


def leave(code: int) -> NoReturn:
    """End as Python ends, except that it does not take all modules apart first: here this would
    copy their pages, and take a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def load() -> None:
    """Import the commands of networks, and load what a rendezvous point loads before it listens."""
    from tidings.broker.outgoing_frames.frame_warming import load_block_kernels
    from tidings.channel.interests import load_interest_kernels
    from tidings.cli.app import load_command
    from tidings.matching import load_kernels

    for name in ("router", "preprocessor", "publish", "subscribe"):
        load_command(name)
    for module in ("tidings.broker.root_node", "tidings.broker.preprocessors", "tests.waiting"):
        importlib.import_module(module)
    for module in ("fields", "functional_validators", "type_adapter"):  # typer imports them late
        importlib.import_module(f"pydantic.{module}")
    load_kernels()
    load_block_kernels()
    load_interest_kernels()


if __name__ == "__main__":
    load()
    gc.collect()
    gc.freeze()  # so that the collector of a fork copies no pages
    serve(socket.socket(fileno=int(sys.argv[1])))
