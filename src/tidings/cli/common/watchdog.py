"""The watchdog: a process that kills a command if the command does not end after a signal.

    python watchdog.py PID SIGTERM_FD SIGINT_FD FOLLOWS_STDIN

The watchdog is a script that runs without the package, and watches the command with the process id
PID. When the command gets a signal, `faulthandler` writes the command's stack to a pipe, in C and
without the GIL. So the watchdog learns of the signal even if the command hangs. The watchdog ends
with the command. But if the command had been asked to end, the watchdog first ends the processes
that the command left behind.

    SIGTERM or SIGINT ──GRACE──> SIGTERM to the children ──LAST──> SIGKILL to all of them
    a second SIGINT ─────────────AT_ONCE─────────────────────────> the same
    FOLLOWS_STDIN: the end of stdin ──> SIGTERM to the command, then the same
"""

import contextlib
import os
import select
import signal
import sys
import time

GRACE = 6.0  # seconds for the command to end cleanly
LAST = 1.0  # more seconds for the command's child processes to end
AT_ONCE = 0.3  # seconds after a second Ctrl-C; if the command can, it ends by itself at once
LOOK = 0.25  # seconds between checks of the children, once the command must end
IDLE = 10.0  # seconds between checks that the command still runs: children may keep pipes open
FRAMES = 3  # stack frames that are reported
BEGINNING = b"(most recent call first)"  # each stack trace has this in its first line
KEPT = 64 << 10  # bytes of stack traces that are kept
NEVER = float("inf")

# process id -> start time; both together identify a process, because process ids are reused
Family = dict[int, bytes]


class WatchState:
    """The state of the watched command."""

    def __init__(self, pid: int, terms: int, interrupts: int, follows_stdin: bool) -> None:
        self.pid = pid
        self.interrupts = interrupts
        self.ends = {terms, interrupts} | ({0} if follows_stdin else set())
        self.stacks = b""
        self.deadline = NEVER
        self.pressed = 0  # how many times Ctrl-C was pressed
        self.family: Family = {}

    def keep(self) -> None:
        """Watch until the command is gone or must be killed."""
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
        """End the command if it is still running, and its descendants."""
        if os.getppid() == self.pid:
            self.family = descendants_of(self.pid)
        # SIGTERM comes first, because a process that is killed may leave files behind
        send(list_alive(self.family), signal.SIGTERM)
        latest = time.monotonic() + (LAST if self.pressed < 2 else AT_ONCE)
        while list_alive(self.family) and time.monotonic() < latest:
            time.sleep(AT_ONCE / 3)
        if os.getppid() == self.pid:
            self.family |= descendants_of(self.pid)
            send([self.pid], signal.SIGKILL)
        for _ in range(3):  # again, in case more processes were started in the meantime
            left = list_alive(self.family)
            for one in left:
                self.family |= descendants_of(one)
            send(list_alive(self.family), signal.SIGKILL)


def report_place(stacks: bytes) -> None:
    """Report which line of code the command was executing when the signal arrived."""
    lines = stacks.rpartition(BEGINNING)[2].decode("utf-8", "replace").splitlines()
    places = [line.strip() for line in lines if line.strip().startswith("File ")][:FRAMES]
    where = f"; it was at {', called from '.join(places)}" if places else ""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"error: the command did not end when asked to and is killed{where}\n")
        sys.stderr.flush()


def send(pids: list[int], number: int) -> None:
    for one in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one, number)


def descendants_of(pid: int) -> Family:
    """The descendants of a process, except this watchdog."""
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
    """Parent and start time of each process that is not a zombie."""
    found = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:  # not Linux
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the terminal is meant for the command
    pid, terms, interrupts, follows_stdin = map(int, sys.argv[1:5])
    WatchState(pid, terms, interrupts, bool(follows_stdin)).keep()
