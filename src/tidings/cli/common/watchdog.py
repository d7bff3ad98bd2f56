"""The process that ends a command which does not end when it is asked to.

    python watchdog.py PID SIGTERM_FD SIGINT_FD FOLLOWS_STDIN

It is run as a file, by itself and without the package, beside the command PID. From two pipes it
reads what that one writes when it gets a signal: the stack, written in C by `faulthandler`, which
needs no lock of the interpreter. So it learns of the signal whatever the command is doing. When the
command is gone it ends too, after what that one left behind, if it was asked to end.

    SIGTERM or SIGINT ──GRACE──> SIGTERM to its children ──LAST──> SIGKILL to all of them
    a second SIGINT ─────────────AT_ONCE─────────────────────────> the same
    FOLLOWS_STDIN: the end of stdin ──> SIGTERM to the command, and so on
"""

import contextlib
import os
import select
import signal
import sys
import time

GRACE = 6.0  # seconds to end in order
LAST = 1.0  # that children have for it then
AT_ONCE = 0.3  # after a second Ctrl-C, which the command itself obeys where it can
LOOK = 0.25  # seconds between two looks at the children, when it is to end,
IDLE = 10.0  # and before that, at whether it is there: a child of it may hold the pipes open
FRAMES = 3  # of the stack that are told
BEGINNING = b"(most recent call first)"  # of each stack
KEPT = 64 << 10  # bytes of stacks
NEVER = float("inf")

Family = dict[int, bytes]  # processes, and what tells each from a later one of the same number


class Watch:
    """What is known of the command."""

    def __init__(self, pid: int, terms: int, interrupts: int, follows_stdin: bool) -> None:
        self.pid = pid
        self.interrupts = interrupts
        self.ends = {terms, interrupts} | ({0} if follows_stdin else set())
        self.stacks = b""
        self.deadline = NEVER
        self.pressed = 0  # Ctrl-C
        self.family: Family = {}

    def keep(self) -> None:
        """Watch until the command is gone, or has to go."""
        while os.getppid() == self.pid and self.ends - {0}:
            now = time.monotonic()
            if now >= self.deadline:
                report_place(self.stacks)
                break
            if self.deadline < NEVER:
                self.family = descendants_of(self.pid)
            wait = IDLE if self.deadline == NEVER else min(LOOK, self.deadline - now)
            for one in select.select([*self.ends], [], [], wait)[0]:
                self.hear(one, os.read(one, 1 << 16))
        if self.deadline < NEVER:
            self.end()

    def hear(self, one: int, data: bytes) -> None:
        if not data:
            self.ends.discard(one)
            if one == 0:
                send([self.pid], signal.SIGTERM)
                self.hurry(GRACE)
        elif one != 0:
            self.stacks = (self.stacks + data)[-KEPT:]
            self.pressed += data.count(BEGINNING) if one == self.interrupts else 0
            self.hurry(AT_ONCE if self.pressed > 1 else GRACE)

    def hurry(self, grace: float) -> None:
        self.deadline = min(self.deadline, time.monotonic() + grace)

    def end(self) -> None:
        """End what is left of the command and of all that it started."""
        if os.getppid() == self.pid:
            self.family = descendants_of(self.pid)
        send(
            list_alive(self.family), signal.SIGTERM
        )  # some leave files behind when they are killed
        latest = time.monotonic() + (LAST if self.pressed < 2 else AT_ONCE)
        while list_alive(self.family) and time.monotonic() < latest:
            time.sleep(AT_ONCE / 3)
        if os.getppid() == self.pid:
            self.family |= descendants_of(self.pid)
            send([self.pid], signal.SIGKILL)
        for _ in range(3):  # until nobody was started meanwhile
            left = list_alive(self.family)
            for one in left:
                self.family |= descendants_of(one)
            send(list_alive(self.family), signal.SIGKILL)


def report_place(stacks: bytes) -> None:
    """Say where the command was when it was asked to end."""
    lines = stacks.rpartition(BEGINNING)[2].decode("utf-8", "replace").splitlines()
    places = [line.strip() for line in lines if line.strip().startswith("File ")][:FRAMES]
    where = f"; it was at {', called from '.join(places)}" if places else ""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"error: it did not end when it was asked to, and is killed{where}\n")
        sys.stderr.flush()


def send(pids: list[int], number: int) -> None:
    for one in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one, number)


def descendants_of(pid: int) -> Family:
    """The processes that one started, and those that they did, but for this one."""
    found: Family = {}
    listed = processes()
    more = {pid}
    while more:
        more = {one for one, (above, _) in listed.items() if above in more and one not in found}
        more.discard(os.getpid())
        found |= {one: listed[one][1] for one in more}
    return found


def list_alive(family: Family) -> list[int]:
    listed = processes()
    return [one for one, born in family.items() if one in listed and listed[one][1] == born]


def processes() -> dict[int, tuple[int, bytes]]:
    """The number above each process, and when it began; without those that have ended."""
    found = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:  # another system than Linux
        import subprocess

        columns = ["-o", "pid=", "-o", "ppid=", "-o", "stat=", "-o", "lstart="]
        listed = subprocess.run(["ps", "-A", *columns], capture_output=True, check=False)
        for line in listed.stdout.splitlines():
            one, above, state, born = line.split(None, 3)
            if not state.startswith(b"Z"):
                found[int(one)] = int(above), born
        return found
    for name in names:
        if name.isdigit():
            path = f"/proc/{name}/stat"
            with contextlib.suppress(OSError), open(path, "rb") as file:  # noqa: PTH123
                parts = file.read().rpartition(b")")[2].split()
                if parts[0] != b"Z":
                    found[int(name)] = int(parts[1]), parts[19]
    return found


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C on a terminal is for the command
    pid, terms, interrupts, follows_stdin = map(int, sys.argv[1:5])
    Watch(pid, terms, interrupts, bool(follows_stdin)).keep()
