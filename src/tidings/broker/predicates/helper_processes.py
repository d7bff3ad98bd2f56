"""Helper processes that call predicates, one process for each predicate.

If a process does not answer a call in time, or ends, the call has failed. The call is repeated in a
new process. After STRIKES failures of one call, or MOST_FAILURES of all calls within WINDOW, the
predicate must be switched off. So a failure never decides a call: either the predicate returns, or
the filters that call it are refused.

If a predicate raises an exception, the call is decided: its result is null, as for a function.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from tidings.broker.processes import send_signal
from tidings.preprocessing import Decisions, KindDefinition, PredicateCall
from tidings.preprocessing.predicates import ANSWER, BATCH, HELPER, PREDICATES, Code

STRIKES = 3
MOST_FAILURES = 10
WINDOW = 600.0  # seconds
START = 30.0  # seconds for loading a predicate
ENDING = 1.0  # seconds for a process to end, once it has closed its pipes
MOST_TOGETHER = 64  # the most calls that are passed to a process at a time
AGAIN = 1.0  # seconds before a predicate that could not be switched off is called again
_RESULTS: dict[int, bool | None] = {
    Code.NULL: None,
    Code.FALSE: False,
    Code.TRUE: True,
    Code.RAISED: None,
}

SwitchOff = Callable[[str, str], Awaitable[None]]
_log = logging.getLogger(__name__)


class _Failure(Exception):
    """A process did not decide a call."""


class PredicateHelper:
    """The process of one predicate, which is started when it is needed."""

    def __init__(self, name: str, definition: KindDefinition, decisions: Decisions) -> None:
        self._name = name
        self._version = definition.predicates[name]
        self._millis = definition.predicate_millis
        self._decisions = decisions
        self._process: Process | None = None
        self._lock = asyncio.Lock()
        self._failed: deque[float] = deque()  # the times of failures within WINDOW
        self._is_stopped = False
        self.raised = 0
        """How many calls raised an exception."""

    async def decide(self, calls: Sequence[PredicateCall]) -> str:
        """Decide calls; return why the predicate must be switched off, or an empty string."""
        async with self._lock:
            left = deque(call for call in calls if call not in self._decisions)
            strikes = 0
            while left and not self._is_stopped:
                before = len(left)
                try:
                    await self._pass_batch(left)
                    strikes = 0
                except _Failure as failure:
                    await self._end_process()
                    if self._is_stopped:
                        break
                    strikes = strikes + 1 if len(left) == before else 1
                    self._note_failure()
                    if strikes >= STRIKES:
                        return f"{failure}, {strikes} times in a row"
                    if len(self._failed) >= MOST_FAILURES:
                        minutes = round(WINDOW / 60)
                        return f"{failure}; calls failed {MOST_FAILURES} times in {minutes} minutes"
                    _log.warning("the predicate '%s' is called again: %s", self._name, failure)
        return ""

    async def _pass_batch(self, left: deque[PredicateCall]) -> None:
        """Pass some of the calls in `left` to the process, and remove those that are decided."""
        process = await self._need_process()
        assert process.stdin is not None
        calls = [left[at] for at in range(min(MOST_TOGETHER, len(left)))]
        data = pickle.dumps([call.arguments for call in calls])
        try:
            process.stdin.write(BATCH.pack(len(data)) + data)
            async with asyncio.timeout(START):
                await process.stdin.drain()
            for call in calls:
                code, text = await self._read_answer(process, self._millis / 1000)
                if code == Code.RAISED:
                    self._note_exception(text)
                self._decisions.put(call, _RESULTS[code])
                left.popleft()
        except asyncio.CancelledError:  # otherwise, later calls would read answers to these calls
            self._abandon_process()
            raise
        except TimeoutError:
            raise _Failure(f"a call took longer than {self._millis:,} ms") from None
        except (OSError, EOFError):
            status = await self._status_of(process)
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            raise _Failure(f"its process ended with {how}") from None

    async def _status_of(self, process: Process) -> int:
        """The exit status of a process that has closed its pipes. The process is killed only if it
        does not end by itself, because a kill could replace its own status with that of the
        signal."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ENDING):
                return await process.wait()
        send_signal(process, signal.SIGKILL)
        return await process.wait()

    async def _need_process(self) -> Process:
        if self._process is None:
            started = await asyncio.create_subprocess_exec(
                sys.executable, "-P", str(HELPER), PREDICATES, self._name, self._version,
                stdin=PIPE, stdout=PIPE,
            )  # fmt: skip
            self._process = started
            try:
                code, text = await self._read_answer(started, START)
            except asyncio.CancelledError:
                self._abandon_process()
                raise
            except TimeoutError:
                raise _Failure(f"loading took more than {START:.0f} s") from None
            except EOFError:
                raise _Failure("its process ended before the predicate was loaded") from None
            if code != Code.READY:
                raise _Failure(f"it can't be loaded: {text}")
            return started
        return self._process

    async def _read_answer(self, process: Process, seconds: float) -> tuple[int, str]:
        assert process.stdout is not None
        async with asyncio.timeout(seconds):
            head = await process.stdout.readexactly(ANSWER.size)
            code, size = ANSWER.unpack(head)
            return code, (await process.stdout.readexactly(size)).decode(errors="replace")

    def _note_exception(self, text: str) -> None:
        if not self.raised:
            _log.warning("the predicate '%s' %s; its result is null", self._name, text)
        self.raised += 1

    def _note_failure(self) -> None:
        now = time.monotonic()
        self._failed.append(now)
        while self._failed[0] < now - WINDOW:
            self._failed.popleft()

    def _abandon_process(self) -> Process | None:
        process, self._process = self._process, None
        if process is not None:
            send_signal(process, signal.SIGKILL)
        return process

    async def _end_process(self) -> None:
        process = self._abandon_process()
        if process is not None:
            await process.wait()

    async def stop(self) -> None:
        """End the process. Calls without an answer stay undecided."""
        self._is_stopped = True
        await self._end_process()


class PredicateHelpers:
    """The processes of all predicates of a channel."""

    def __init__(
        self, definition: KindDefinition, decisions: Decisions, switch_off: SwitchOff
    ) -> None:
        """`switch_off` gets the name of a predicate, and the reason."""
        self.definition = definition
        self.decisions = decisions
        self._switch_off = switch_off
        self._helpers = {
            name: PredicateHelper(name, definition, decisions)
            for name in definition.callable_predicates
        }

    @property
    def raised(self) -> int:
        """How many calls of predicates raised an exception."""
        return sum(one.raised for one in self._helpers.values())

    async def ask(self, calls: Sequence[PredicateCall]) -> None:
        """Decide calls. A predicate that can't decide its calls is switched off."""
        self.decisions.make_room(len(calls))
        by_name: dict[str, list[PredicateCall]] = {}
        for call in calls:
            by_name.setdefault(call.name, []).append(call)
        await asyncio.gather(*(self._ask(name, some) for name, some in by_name.items()))

    async def _ask(self, name: str, calls: Sequence[PredicateCall]) -> None:
        one = self._helpers.get(name)
        reason = "" if one is None else await one.decide(calls)
        if reason:
            try:
                await self._switch_off(name, reason)
            except Exception:
                _log.exception("the predicate '%s' could not be switched off", name)
                await asyncio.sleep(AGAIN)

    async def stop(self) -> None:
        await asyncio.gather(*(one.stop() for one in self._helpers.values()))
