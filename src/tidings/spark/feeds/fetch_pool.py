"""Looking at feeds in processes of their own, so that a sick or hostile one harms no other.

A server can send its header a letter at a time, a name can take minutes to resolve, and a short
text can keep a regular expression of feedparser busy for hours, with the interpreter locked. No
timeout within a process holds against all of that; but the process can be ended, whatever it does:

    Lookers ── Looker ── process     line of JSON in: a Task    line of JSON out: a Look

Invariants:
- A look ends within its `timeout` and GRACE. The process asks the system for an alarm that ends it
  before it begins, so this holds for one whose parent is gone, too. Idle ones end with their input.
- There are never more processes than THREADS, and one that was ended is replaced when it is needed.
- Memory is bounded as well: that of the process, and what it can send back.
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
"""Feeds that are looked at at the same time."""

GRACE = 1.0
"""Seconds after `timeout` at which a process is ended, if it has not given up by itself."""

_MEMORY = 256 * 1024 * 1024  # of a process, and so many times the largest document beside it:
_TIMES = 64
_SENT_BACK = 4  # times the largest document; entities can make much of little


class FetchTask(msgspec.Struct, frozen=True):
    """A feed to look at, and the version of it that is known."""

    address: str
    known: Validators = Validators()
    timeout: float = documents.TIMEOUT
    largest: int = documents.LARGEST


class FetchResult(msgspec.Struct, frozen=True):
    """What a feed shows. Either there is a problem, or it is as it was, or there is the rest."""

    problem: str = ""
    changed: bool = False
    entries: list[Entry] = []
    validators: Validators = Validators()


class FetchProcess:
    """One process at most; it is started when it is first needed, and again after it was ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def fetch(self, task: FetchTask) -> FetchResult:
        """Look at a feed; whatever happens is told in the answer."""
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
        except Exception as error:  # no memory for a process, say
            self.close()
            return FetchResult(f"The feed {task.address} cannot be looked at: {error}.")
        self.close()
        if code == -signal.SIGALRM:
            return FetchResult(str(documents.timeout_problem(task.address, task.timeout)))
        return FetchResult(
            f"The feed {task.address} cannot be looked at: its process ended with {code}."
        )

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _ensure_process(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            # `-P` and the path of here: it finds what we found, and nothing in the current folder.
            path = os.pathsep.join(place for place in sys.path if place)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tidings.spark.feeds.fetch_pool"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C at the terminal is not for it
            )
        return self._process


class FetchPool:
    """As many processes as are needed, up to THREADS; they stay for the next round."""

    def __init__(self) -> None:
        self._all = [FetchProcess() for _ in range(THREADS)]

    def fetch(self, tasks: Sequence[FetchTask]) -> list[FetchResult]:
        """Look at feeds, several at a time; the answers come in the order of the tasks."""
        idle: queue.LifoQueue[FetchProcess] = queue.LifoQueue()  # few feeds, few processes
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


# -- in the process ----------------------------------------------------------------------------


def main() -> int:
    """Look at the feeds that are named on the input, until it ends."""
    # The alarm ends the process: no handler, which would wait for the interpreter.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a package prints is no answer
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
        problem = f"The entries of the feed {task.address} are larger than {task.largest} bytes."
    except FeedProblem as error:
        problem = str(error)
    except Exception as error:  # none that is known; the other feeds are not to suffer from it
        problem = f"The feed {task.address} cannot be read: {type(error).__name__}."
    return msgspec.json.encode(FetchResult(problem))


def _limit_memory(memory: int) -> None:
    with suppress(ValueError, OSError):  # not everywhere, and never more than one is given
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY:
            memory = min(memory, most)
        resource.setrlimit(resource.RLIMIT_AS, (memory, most))


if __name__ == "__main__":
    sys.exit(main())
