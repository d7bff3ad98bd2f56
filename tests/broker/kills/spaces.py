"""Network namespaces, one per name, connected by a simulated wire."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

import msgspec
import pytest
from tests.broker.kills.tree import HOME
from tests.broker.kills.wire import Weather


class Spaces:
    """Where each of the names is, and what the weather is like between them."""

    def __init__(self, names: Sequence[str], seed: int) -> None:
        self._spaces = {name: f"tidings-{os.getpid()}-{name}" for name in names}
        self.hosts = {name: f"10.77.0.{at}" for at, name in enumerate(names, start=1)}
        self._seed = seed
        self._wire: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Make them; the test is skipped where that can't be done."""
        try:
            for space in self._spaces.values():
                command = ["ip", "netns", "add", space]
                subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as problem:
            said = getattr(problem, "stderr", "") or problem
            pytest.skip(f"no network namespace can be made here: {str(said).strip()}")
        places = [f"{space}={self.hosts[name]}" for name, space in self._spaces.items()]
        path = os.pathsep.join([str(HOME / "src"), str(HOME)])
        self._wire = subprocess.Popen(
            [sys.executable, "-m", "tests.broker.kills.wire", str(self._seed), *places],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self._wire.stdout is not None
        if not self._wire.stdout.readline():
            assert self._wire.stderr is not None
            lines = self._wire.stderr.read().decode().strip().splitlines() or ["it ended"]
            pytest.skip(f"no wire can be made between network namespaces: {lines[-1]}")

    def within(self, name: str) -> Sequence[str]:
        """What is put before a command."""
        return ("ip", "netns", "exec", self._spaces[name])

    def be(self, weather: Weather) -> None:
        cut = [self._spaces[name] for name in weather.cut]
        assert self._wire is not None
        assert self._wire.stdin is not None
        told = msgspec.structs.replace(weather, cut=cut)
        self._wire.stdin.write(msgspec.json.encode(told) + b"\n")
        self._wire.stdin.flush()

    def connections(self, name: str, other: str) -> int:
        """How many connections a place believes it has with another."""
        command = [*self.within(name), "cat", "/proc/net/tcp"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        wanted = "".join(f"{int(one):02X}" for one in reversed(self.hosts[other].split(".")))
        fields = (line.split() for line in lines.splitlines()[1:])
        return sum(one[3] == "01" and one[2].startswith(f"{wanted}:") for one in fields)

    def end(self) -> None:
        if self._wire is not None:
            self._wire.kill()
            self._wire.communicate()
        with contextlib.suppress(OSError):  # where there is no such program
            for space in self._spaces.values():
                subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


@contextlib.contextmanager
def made(names: Sequence[str], seed: int) -> Iterator[Spaces]:
    """Namespaces that are gone afterwards."""
    spaces = Spaces(names, seed)
    try:
        spaces.begin()
        yield spaces
    finally:
        spaces.end()
