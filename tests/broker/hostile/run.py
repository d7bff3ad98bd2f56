"""A tree of real routers with an honest publisher and subscriber, and all attackers at once.

               root            everybody with a token may connect to each of them
             /   |  \\
          edge side  liar      the honest pair is at the edge; evil and liar have `route`
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
from tests.broker.hostile.attacker import ATTACKS
from tests.broker.hostile.cores import Cores
from tests.broker.hostile.pair import Latencies, Seen
from tests.broker.kills.tree import HOME

from tidings.studies.host.ports import free_ports

GUESTS = """\
guests = "*"
mallorys = {name = "mallory", may = ["publish", "subscribe"]}
trudys = {name = "trudy", may = ["publish", "subscribe"]}
evils = {name = "evil", may = ["publish", "subscribe", "route"]}
sparks = {name = "spark", may = ["preprocess"]}
reads = {name = "reader", may = ["publish", "subscribe"]}
writes = {name = "writer", may = ["publish", "subscribe"]}
"""
ROOT = """\
name = "root"
listen = "127.0.0.1:{port}"
journal = "journal"
[tokens]
edges = {{name = "edge", may = ["publish", "subscribe", "route"]}}
sides = {{name = "side", may = ["publish", "subscribe", "route"]}}
liars = {{name = "liar", may = ["publish", "subscribe", "route"]}}
"""
ROUTER = """\
name = "{name}"
listen = "127.0.0.1:{port}"
upstream = "127.0.0.1:{above}"
token = "{name}s"
[tokens]
"""
ROUTERS = ("root", "edge", "side")
WAY = ("root", "edge", "pair")  # the processes that a notification of the honest pair passes
QUIET = 5.0  # seconds that the pair has for itself before
START = 300.0  # seconds in which all attackers must begin


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[int(part * (len(values) - 1))] if values else float("inf")


class Run:
    """All processes of a run, and what was seen of them."""

    def __init__(self, folder: Path, seed: int, attacks: list[str] | None = None) -> None:
        self.folder = folder
        self.seed = seed
        self.attacks = attacks or [*ATTACKS]
        self.ports = dict(zip(ROUTERS, free_ports(3), strict=True))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.most: Counter[str] = Counter()  # megabytes of each process
        self.quiet_until = 0.0  # when the first attacker was started,
        self.begun_at = 0.0  # and when all of them had begun
        self.cores = Cores()

    def go(self, seconds: float) -> None:
        try:
            self._start_routers()
            self.cores.begin()
            self._start("pair", "tests.broker.hostile.pair", str(self.ports["edge"]),
                        str(self.folder / "pair.json"))  # fmt: skip
            self._watch(QUIET)
            self.quiet_until = time.monotonic()
            for number, name in enumerate(self.attacks):
                ports = (str(self.ports[one]) for one in ROUTERS)
                out = str(self.folder / f"{name}.json")
                self._start(name, "tests.broker.hostile.attacker", name, *ports,
                            str(self.seed + number), out, nice=True)  # fmt: skip
            self._await_strokes()
            self.begun_at = time.monotonic()
            self._watch(seconds)
            self._end(["pair"], 90)  # while the attacks go on
            self._end(self.attacks, 20)
            self._end(["side", "edge", "root"], 20)
        finally:
            self.cores.end()
            for one in self.processes.values():
                if one.poll() is None:
                    one.kill()
                    one.wait()

    def _await_strokes(self) -> None:
        """Wait until all attack: on a busy machine, processes of low priority start late, and what
        the pair sees until then would hide what it sees under attack."""
        until = time.monotonic() + START
        for name in self.attacks:
            while not (self.folder / f"{name}.json.begun").exists():
                assert self.processes[name].poll() is None, self.log(name)
                assert time.monotonic() < until, f"{name} did not begin: the machine is too busy"
                time.sleep(0.1)

    def _start_routers(self) -> None:
        ports = self.ports
        for name in ROUTERS:
            text = ROOT if name == "root" else ROUTER
            path = self.folder / f"{name}.toml"
            path.touch(0o600)
            path.write_text(text.format(name=name, port=ports[name], above=ports["root"]) + GUESTS)
            self._start(name, "tidings", "router", "--config", str(path))
            while "listens" not in self.log(name):
                assert self.processes[name].poll() is None, self.log(name)
                time.sleep(0.05)

    def _start(self, name: str, *command: str, nice: bool = False) -> None:
        path = os.pathsep.join([str(HOME / "src"), str(HOME)])
        before = ["nice", "-n", "19"] if nice else []
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [*before, sys.executable, "-m", *command], stdout=log, stderr=log,
                env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
        if name in WAY:
            self.cores.add(name, self.processes[name].pid)

    def _watch(self, seconds: float) -> None:
        """See what memory each process takes, each second."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for name, one in self.processes.items():
                status = Path(f"/proc/{one.pid}/status")
                text = status.read_text() if one.poll() is None else ""
                if "VmRSS:" in text:
                    now = int(text.split("VmRSS:")[1].split()[0]) // 1024
                    self.most[name] = max(self.most[name], now)
            time.sleep(1)

    def _end(self, names: list[str], seconds: float) -> None:
        for name in names:
            self.processes[name].send_signal(signal.SIGTERM)
        until = time.monotonic() + seconds
        for name in names:
            try:
                self.processes[name].wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.processes[name].kill()
                self.processes[name].wait()

    # -- what is told of it --------------------------------------------------------------------

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def counts(self, name: str) -> Counter[str]:
        path = self.folder / f"{name}.json"
        return Counter(json.loads(path.read_text()) if path.exists() else {})

    def pair(self) -> Seen:
        path = self.folder / "pair.json"
        assert path.exists(), f"the honest pair did not end: {self.log('pair')[-2000:]}"
        return msgspec.json.decode(path.read_bytes(), type=Seen)

    def parted(self, found: Latencies) -> tuple[list[float], list[float]]:
        """In seconds: before the first attack began, and since all of them have."""
        before = [seconds for when, seconds in found if when < self.quiet_until]
        return before, [seconds for when, seconds in found if when >= self.begun_at]

    def with_cores(self, found: Latencies) -> list[float]:
        """In seconds, since the attacks began: without the time in which there was no core."""
        return [
            seconds - self.cores.longest(when, when + seconds)
            for when, seconds in found
            if when >= self.begun_at
        ]

    def table(self) -> str:
        lines = ["", f"honest pair {'':19} count      p50      p99      max   (ms)"]
        pair = self.pair()
        shown_of = {"publish to told": pair.told, "to acknowledgment": pair.acknowledged}
        for said, found in shown_of.items():
            seen = zip(("quiet", "attacked"), self.parted(found), strict=True)
            for when, some in (*seen, ("with cores", self.with_cores(found))):
                figures = (percentile(some, part) * 1000 for part in (0.5, 0.99, 1))
                shown = " ".join(f"{one:8.1f}" for one in figures)
                lines.append(f"  {said:18} {when:10}{len(some):6} {shown}")
        in_force = pair.in_force
        shown = " ".join(f"{percentile(in_force, part) * 1000:8.1f}" for part in (0.5, 0.99, 1))
        lines.append(f"  {'subscribed':18} {'':9} {len(in_force):6} {shown}")
        lines.append("")
        lines.append("waited for a core, of all time: " + ", ".join(
            f"{name} {self.cores.share(name, self.begun_at):.0%}" for name in WAY))  # fmt: skip
        lines.append("memory, at most (MB): " + ", ".join(
            f"{name} {size:,}" for name, size in self.most.most_common()))  # fmt: skip
        lines.append("")
        for name in self.attacks:
            counts = self.counts(name)
            refused = {key: n for key, n in counts.items() if key.startswith("refused")}
            rest = {key: n for key, n in counts.items() if key not in refused}
            lines.append(f"{name:13} " + ", ".join(f"{key} {n:,}" for key, n in rest.items()))
            for key, n in sorted(refused.items(), key=lambda one: -one[1])[:6]:
                lines.append(f"{'':13}   {n:8,} {key}")
        for name in ROUTERS:
            last = [line for line in self.log(name).splitlines() if "refused so far" in line]
            lines.append(f"{name}: {last[-1].split('refused so far: ')[-1] if last else ''}")
        return "\n".join(lines)
