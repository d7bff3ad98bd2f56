"""A tree of real routers: a process each, that can be killed and started again.

              root
           /    |   \\
         i0    i1    i2           inner routers
        /  \\    |     |
      e0   e1  e2    e3           edges, where agents are

With several channels, each has a rendezvous point of its own, and the inner routers are linked to
all of them: root, root-tea.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from tests.forking import Forked

from tidings.routing.protocol.times import Times
from tidings.studies.host.ports import free_ports

ROOT = "root"
ABOVE = {"i0": ROOT, "i1": ROOT, "i2": ROOT, "e0": "i0", "e1": "i0", "e2": "i1", "e3": "i2"}
TIMES = Times(beat=0.25, resubscribe=0.5, retry=0.5, silent=2.0, expire=30.0, request=5.0)
"""Short, but for how long one may be away without being forgotten."""
HOME = Path(__file__).parents[3]
_FILE = """\
name = "{name}"
listen = "{host}:{port}"
{more}

[times]
{times}
{tables}"""


def kind_of(name: str) -> str:
    return {"r": "root", "i": "inner", "e": "edge"}[name[0]]


class Process:
    """A process of a run, with what it says on stderr in a file."""

    def __init__(
        self, folder: Path, name: str, command: Sequence[str], within: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._errors = folder / f"{name}.errors"
        path = os.pathsep.join([str(HOME / "src"), str(HOME), os.environ.get("PYTHONPATH", "")])
        with self._errors.open("ab") as errors:
            self.process = Forked(
                [*within, sys.executable, *command],
                stdout=errors,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            )

    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """With SIGKILL: it can do nothing about it."""
        self.process.kill()
        self.process.wait()

    def errors(self) -> str:
        return self._errors.read_text(errors="replace")[-3000:]


class Tree:
    """The routers of a run. `hosts` and `within` say at which address each is, and in which
    namespace; `channels` are the names of several channels."""

    def __init__(
        self,
        folder: Path,
        above: Mapping[str, str],
        *,
        times: Times = TIMES,
        hosts: Mapping[str, str] | None = None,
        within: Callable[[str], Sequence[str]] = lambda _: (),
        journal: str = "journal.db",
        channels: Sequence[str] = ("",),
    ) -> None:
        self.folder = folder
        self.channels = channels
        first, *others = channels
        roots = {ROOT: first, **{f"{ROOT}-{channel}": channel for channel in others}}
        self.names = [*roots, *above]
        self.nodes: dict[str, Process] = {}
        self.within = within
        self.times = times
        hosts = hosts or dict.fromkeys(self.names, "127.0.0.1")
        ports = free_ports(len(self.names))
        places = {
            name: f"{hosts[name]}:{port}" for name, port in zip(self.names, ports, strict=True)
        }
        own = {name: f"/{roots.get(name, first)}".rstrip("/") for name in self.names}
        self.addresses = {name: f"tidings://{place}{own[name]}" for name, place in places.items()}
        lines = "\n".join(f"{k} = {v}" for k, v in msgspec.structs.asdict(times).items())
        for name in self.names:
            host, _, port = places[name].rpartition(":")
            more, tables = f'journal = "{name.removeprefix(ROOT)}{journal}"', ""
            if name in above:
                more = f'upstream = "{places[above[name]]}"'
                hops = {
                    channel: f"{ROOT}-{channel}" if above[name] == ROOT else ""
                    for channel in others
                }
                tables = _table("upstreams", {one: places[one] for one in hops.values() if one})
                tables += _table("channels", hops)
            if first:
                more += f'\nchannel = "{roots.get(name, first)}"'
            text = _FILE.format(
                name=name, host=host, port=port, more=more, times=lines, tables=tables
            )
            (folder / f"{name}.toml").write_text(text)

    def start(self, name: str) -> None:
        config = str(self.folder / f"{name}.toml")
        command = ["-m", "tidings", "router", "--config", config]
        self.nodes[name] = Process(self.folder, name, command, self.within(name))

    def kill(self, name: str) -> None:
        self.nodes.pop(name).kill()

    def check(self) -> None:
        """Nobody may end by itself, and nobody may have anything to complain of."""
        for name, one in self.nodes.items():
            assert one.alive(), f"{name} ended by itself: {one.errors()}"
            assert "Traceback" not in one.errors(), f"{name}: {one.errors()}"

    def end(self) -> None:
        for name in [*self.nodes]:
            self.kill(name)


def _table(name: str, rows: Mapping[str, str]) -> str:
    lines = [f'{key} = "{value}"\n' for key, value in rows.items()]
    return "".join([f"[{name}]\n", *lines]) if lines else ""
