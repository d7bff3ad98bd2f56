"""The rendezvous point, the routers and the preprocessor of the chain; each has its own process.

             root ── preprocessor
            /    \\
        north    south
          |
        east
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tidings.model import EnvironmentProblem
from tidings.studies.host.ports import free_ports
from tidings.studies.host.sessions import Session

ROOT, PREPROCESSOR = "root", "preprocessor"
ABOVE = {"north": ROOT, "south": ROOT, "east": "north"}


class ChainNodes:
    """The processes. A node keeps its port when it is killed and started again."""

    def __init__(
        self, folder: Path, columns: Mapping[str, str], above: Mapping[str, str] = ABOVE
    ) -> None:
        self.folder = folder
        self.names = [ROOT, *above]
        self.running: dict[str, Session] = {}
        ports = dict(zip(self.names, free_ports(len(self.names)), strict=True))
        self.addresses = {name: f"tidings://127.0.0.1:{port}" for name, port in ports.items()}
        declared = "\n".join(f'{name} = "{kind}"' for name, kind in columns.items())
        for name, port in ports.items():
            more = f'journal = "journal"\n[columns]\n{declared}\n'
            if name in above:
                more = f'upstream = "127.0.0.1:{ports[above[name]]}"\n'
            text = f'name = "{name}"\nlisten = "127.0.0.1:{port}"\n{more}'
            self._file(name).write_text(text)

    def start(self, *names: str) -> None:
        """Start the given nodes, by default all except the preprocessor, which needs a root that
        already listens."""
        for name in names or self.names:
            command = ["router", "--config", str(self._file(name))]
            if name == PREPROCESSOR:
                command = ["preprocessor", self.addresses[ROOT], "--name", name]
            command = [sys.executable, "-m", "tidings", *command]
            command.append("--until-stdin-ends")  # no process outlives this one
            self.running[name] = Session(command, self._errors(name), has_stdin=True)

    def kill(self, name: str) -> None:
        self.running.pop(name).end()

    def check(self) -> None:
        """Raise EnvironmentProblem if a node ended although it was not killed."""
        for name, one in self.running.items():
            if not one.alive():
                said = self._errors(name).read_text(errors="replace").strip()[-2000:]
                raise EnvironmentProblem(f"{name} ended by itself: {said}")

    def end(self) -> None:
        for name in [*self.running]:
            self.kill(name)

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.toml"

    def _errors(self, name: str) -> Path:
        return self.folder / f"{name}.errors"
