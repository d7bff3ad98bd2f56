"""Starts and controls the processes that contain the agents of the chain."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.model import EnvironmentProblem
from tidings.studies.chain.chain_rows import WrittenInterest
from tidings.studies.chain.listener import COMMAND, RECORD, ListenerAnswer, NewInterest, Order

TOLD = np.dtype(
    [("interest", "<u4"), ("digest", "<u4"), ("id", "<i8"), ("serial", "<i8"), ("came", "<i8")]
)
assert TOLD.itemsize == RECORD.size


class Listeners:
    """Processes with agents. Agent n is in process n modulo the number of processes."""

    def __init__(self, folder: Path, processes: int) -> None:
        self.folder = folder
        self.problems: list[str] = []
        self.in_force: dict[int, int] = {}  # interest -> the time from which it is in force
        self._processes: list[subprocess.Popen[bytes]] = []
        for number in range(processes):
            command = [sys.executable, "-c", COMMAND]
            with self._errors(number).open("wb") as errors:
                self._processes.append(
                    subprocess.Popen(
                        [*command, str(folder), f"listener{number}"],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=errors,
                    )
                )

    def subscribe(self, wishes: Sequence[tuple[int, str, WrittenInterest]]) -> None:
        """Subscribe agents; when this returns, their interests are in force."""
        count = len(self._processes)
        self._ask("subscribe", [
            [NewInterest(*one) for one in wishes if one[0] % count == at] for at in range(count)
        ])  # fmt: skip

    def count(self) -> int:
        """How many notifications have been delivered so far."""
        return self._ask("count", [[] for _ in self._processes])

    def end(self) -> npt.NDArray[np.void]:
        """End the processes; return all deliveries, in the order of arrival."""
        self._ask("end", [[] for _ in self._processes])
        files = [self.folder / f"listener{at}.told" for at in range(len(self._processes))]
        self.kill()
        return np.concatenate([np.fromfile(file, TOLD) for file in files])

    def kill(self) -> None:
        for one in self._processes:
            one.kill()
            one.wait()
            for pipe in (one.stdin, one.stdout):
                if pipe is not None:
                    pipe.close()
        self._processes = []

    def _ask(self, what: str, wishes: list[list[NewInterest]]) -> int:
        """Send each process an order; return the total number of deliveries."""
        for at, process in enumerate(self._processes):
            assert process.stdin is not None
            try:
                process.stdin.write(msgspec.json.encode(Order(what, wishes[at])) + b"\n")
                process.stdin.flush()
            except BrokenPipeError:
                raise self._describe_end(at) from None
        told, problems = 0, list[str]()
        for at, process in enumerate(self._processes):
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise self._describe_end(at)
            answer = msgspec.json.decode(line, type=ListenerAnswer)
            told += answer.told
            problems += answer.problems
            self.in_force.update(answer.in_force)
        self.problems = problems
        return told

    def _errors(self, at: int) -> Path:
        return self.folder / f"listener{at}.errors"

    def _describe_end(self, at: int) -> EnvironmentProblem:
        said = self._errors(at).read_text(errors="replace").strip()
        return EnvironmentProblem(f"a process with agents ended: {said[-2000:]}")
