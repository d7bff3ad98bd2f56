"""Fetches feeds in separate processes, so that a broken or hostile feed can't harm the others.

A server can send its header one byte at a time, a name can take minutes to resolve, and a short
string can keep a regular expression of feedparser busy for hours while it holds the GIL. No timeout
inside a process covers all cases, but the process can be killed:

    FetchPool ── FetchProcess ── process     JSON line in: FetchTask    JSON line out: FetchResult

Invariants:
- A fetch ends within `timeout` plus GRACE. Before each fetch, the process sets an alarm that kills
  it, so the limit holds even if its parent has died. Idle processes end when their input closes.
- There are never more than THREADS processes. A killed process is replaced when it is needed.
- The memory of each process is bounded, and so is the size of its answer.
"""

from __future__ import annotations

import os
import queue
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec

from tidings.spark.feeds import feed_documents as documents
from tidings.spark.feeds.feed_documents import Entry, FeedProblem, Validators

THREADS = 8
"""At most this many feeds are fetched at the same time."""

GRACE = 1.0
"""Seconds after `timeout` at which a process is killed if the fetch has not ended."""

_MEMORY = 256 * 1024 * 1024  # limit for a process; _TIMES times the largest document comes on top
_TIMES = 64
# the size limit of an answer, as a multiple of the largest document, because entities can expand
_SENT_BACK = 4


class FetchTask(msgspec.Struct, frozen=True):
    """A feed to fetch, and its known version."""

    address: str
    known: Validators = Validators()
    timeout: float = documents.TIMEOUT
    largest: int = documents.LARGEST


class FetchResult(msgspec.Struct, frozen=True):
    """A problem, or the entries of a feed; `changed` is False if the server still has the known
    version."""

    problem: str = ""
    changed: bool = False
    entries: list[Entry] = []
    validators: Validators = Validators()


class FetchProcess:
    """A fetching process, which is started when needed, and restarted after it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def fetch(self, task: FetchTask) -> FetchResult:
        """Fetch a feed; any failure is reported in the result."""
        try:
            process = self._ensure_process()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.write(msgspec.json.encode(task) + b"\n")
                process.stdin.flush()
            line = process.stdout.readline()
            if line.endswith(b"\n"):
                return msgspec.json.decode(line, type=FetchResult)
            code = process.wait()
        except Exception as error:  # for example, there is not enough memory for a process
            self.close()
            return FetchResult(f"the feed {task.address} can't be fetched: {error}")
        self.close()
        if code == -signal.SIGALRM:
            return FetchResult(str(documents.timeout_problem(task.address, task.timeout)))
        return FetchResult(
            f"the feed {task.address} can't be fetched: its process ended with code {code}"
        )

    def close(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _ensure_process(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            # With `-P` and this path, the process imports the same modules as this one, and none
            # from the current folder.
            path = os.pathsep.join(place for place in sys.path if place)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tidings.spark.feeds.fetch_pool"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C at the terminal does not reach this process
            )
        return self._process


class FetchPool:
    """Up to THREADS processes, started as needed and kept for the next round."""

    def __init__(self) -> None:
        self._all = [FetchProcess() for _ in range(THREADS)]

    def fetch(self, tasks: Sequence[FetchTask]) -> list[FetchResult]:
        """Fetch feeds, several at a time; results are in the order of the tasks."""
        # LIFO order, so that few feeds start few processes
        idle: queue.LifoQueue[FetchProcess] = queue.LifoQueue()
        for process in self._all:
            idle.put(process)

        def one(task: FetchTask) -> FetchResult:
            process = idle.get()
            try:
                return process.fetch(task)
            finally:
                idle.put(process)

        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(one, tasks))

    def close(self) -> None:
        for process in self._all:
            process.close()


def main() -> int:
    """Run the fetching process: fetch the feeds named on stdin until stdin ends."""
    # The alarm kills the process directly; a Python handler would wait for the interpreter.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # anything that a package prints goes to stderr
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin.buffer:
        task = msgspec.json.decode(line, type=FetchTask)
        signal.setitimer(signal.ITIMER_REAL, task.timeout + GRACE)
        _limit_memory(_MEMORY + _TIMES * task.largest)
        answers.write(_answer(task) + b"\n")
        answers.flush()
        signal.setitimer(signal.ITIMER_REAL, 0)
    return 0


def _answer(task: FetchTask) -> bytes:
    try:
        document = documents.fetch(
            task.address, task.known, timeout=task.timeout, largest=task.largest
        )
        if document is None:
            return msgspec.json.encode(FetchResult())
        entries = documents.parse(task.address, document)
        answer = msgspec.json.encode(FetchResult("", True, entries, document.validators))
        if len(answer) <= _SENT_BACK * task.largest + 1024:
            return answer
        problem = f"the entries of the feed {task.address} are larger than {task.largest} bytes"
    except FeedProblem as error:
        problem = str(error)
    except Exception as error:  # an unknown error of one feed must not affect the others
        problem = f"the feed {task.address} can't be read: {type(error).__name__}"
    return msgspec.json.encode(FetchResult(problem))


def _limit_memory(memory: int) -> None:
    with suppress(ValueError, OSError):  # some platforms do not allow this limit
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY:
            memory = min(memory, most)
        resource.setrlimit(resource.RLIMIT_AS, (memory, most))


if __name__ == "__main__":
    sys.exit(main())
