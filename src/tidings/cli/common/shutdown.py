"""Ends commands on SIGTERM and Ctrl-C: cleanly if possible, and otherwise by force.

    SIGTERM, Ctrl-C ──> handlers in Python ──> the command ends cleanly
            └─(in C, even while no Python runs)──> the watchdog kills the command after a while

Acknowledged data is on disk, so killing a command loses none of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

LATER = 1.0  # seconds that a command runs before its watchdog is started
INTERRUPTED = 130
T = TypeVar("T")


class _Watchdog:
    """The watchdog process, and the pipes to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ends: dict[int, int] = {}  # signal -> the pipe that the stack is written to
        self._is_wanted = self._follows_stdin = False

    def begin(self) -> None:
        self._is_wanted = True

    def call(self, *heeded: int, follows_stdin: bool = False) -> None:
        """Start the watchdog if needed, and report these signals to it. The handlers of these
        signals must be installed before: the watchdog does not see a signal whose handler is
        installed later."""
        with self._lock:
            if not self._is_wanted:
                return
            before, ends = self._process, self._ends
            is_new = before is None or (follows_stdin and not self._follows_stdin)
            if is_new:
                try:
                    self._start(follows_stdin)
                except OSError:  # if no process can be started, there is no watchdog
                    if follows_stdin:
                        raise
                    return
            for one in heeded:
                faulthandler.unregister(one)
                faulthandler.register(one, file=self._ends[one], all_threads=False, chain=True)
            if is_new and before is not None:  # the old watchdog ends when its pipes are closed
                for end in ends.values():
                    os.close(end)
                before.wait()

    def _start(self, follows_stdin: bool) -> None:
        (terms, on_term), (interrupts, on_interrupt) = os.pipe(), os.pipe()
        for one in (on_term, on_interrupt):
            os.set_blocking(one, False)
        self._ends = {signal.SIGTERM: on_term, signal.SIGINT: on_interrupt}
        script = str(Path(__file__).with_name("watchdog.py"))
        words = [os.getpid(), terms, interrupts, int(follows_stdin)]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", script, *map(str, words)],
            stdin=None if follows_stdin else subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            pass_fds=(terms, interrupts), start_new_session=True,
        )  # fmt: skip
        self._follows_stdin = follows_stdin
        os.close(terms)
        os.close(interrupts)


_watchdog = _Watchdog()


def end_in_time() -> None:
    """Make sure that this process and its children end soon after Ctrl-C or SIGTERM, whatever they
    are doing, and even while the interpreter shuts down. Don't call this for commands that run
    inside another program."""
    signal.signal(signal.SIGTERM, _leave)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell without job control, as in many CI systems, starts background jobs with SIGINT
        # ignored. But such a command should still end if it gets SIGINT.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _watchdog.begin()
    soon = threading.Timer(LATER, _watchdog.call, (signal.SIGINT, signal.SIGTERM))
    soon.daemon = True
    soon.start()


def _leave(number: int, _frame: FrameType | None) -> None:
    """Exit by raising an exception, as on Ctrl-C, so that cleanup code runs."""
    raise SystemExit(128 + number)


@contextlib.contextmanager
def restore_handlers() -> Iterator[None]:
    """Restore the signal handlers at the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def end_with_stdin() -> None:
    """End this process when stdin ends, even if the process hangs: the end of stdin means that the
    parent process is gone."""
    _watchdog.call(signal.SIGINT, signal.SIGTERM, follows_stdin=True)


_ended_by = [int(signal.SIGINT)]  # the last signal that asked a command to end


def leave_unfinished() -> NoReturn:
    """Exit with the code of the signal that ended the command before its work was done."""
    if _ended_by[0] == signal.SIGTERM:
        raise SystemExit(128 + signal.SIGTERM)
    raise KeyboardInterrupt


def handle_end_signals(handler: Callable[[], None]) -> None:
    """Call a handler on SIGINT and SIGTERM; a second Ctrl-C exits at once."""
    if threading.current_thread() is not threading.main_thread():
        return
    heard = 0

    def hear(number: int, _frame: FrameType | None) -> None:
        nonlocal heard
        _ended_by[0] = number
        heard += number == signal.SIGINT
        if heard > 1:
            os._exit(INTERRUPTED)
        handler()

    ends = (signal.SIGINT, signal.SIGTERM)
    for one in ends:
        signal.signal(one, hear)
    _watchdog.call(*ends)


async def wait_for_end(again: Callable[[], None] | None = None) -> None:
    """Wait for Ctrl-C, for SIGTERM, or until the terminal is closed. If `again` is given, it is
    called on a SIGHUP that does not come from a closing terminal."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # under nohup
    had_terminal = not is_ignored and _has_terminal()

    def hang_up() -> None:
        if again is None or (had_terminal and not _has_terminal()):
            event.set()
        else:
            again()

    if again is not None or not is_ignored:
        loop.add_signal_handler(signal.SIGHUP, hang_up)

    def end() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(event.set)

    handle_end_signals(end)
    await event.wait()


def _has_terminal() -> bool:
    """Whether this process has a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


async def run_until_ended(work: Coroutine[Any, Any, T]) -> T | None:
    """Run until the work is done; return None on Ctrl-C or SIGTERM."""
    working, ending = asyncio.create_task(work), asyncio.create_task(wait_for_end())
    _, rest = await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    return working.result() if working.done() and not working.cancelled() else None
