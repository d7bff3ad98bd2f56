"""Kills the processes of the chain with SIGKILL, one kind after the other, and starts them again.

driver     the Python driver; a new one starts while the old Java process and workers may still run
jvm        the Java process; its driver then ends, and a new one starts
worker     a Python worker; Spark starts another, and the stream continues
root       the rendezvous point
north ...  a router
preprocessor   tags the rows that are published at a router
broker     has the rows, if they are in Kafka
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

from tidings.model import EnvironmentProblem
from tidings.studies.chain.chain_nodes import ABOVE, PREPROCESSOR, ROOT, ChainNodes
from tidings.studies.chain.chain_stream import PipelineRun
from tidings.studies.host.kafka_broker import Broker
from tidings.studies.host.sessions import Session, send

ROLES = ("driver", ROOT, "jvm", "north", "worker", "south", PREPROCESSOR, "east")
BROKER = "broker"
LEFT = 3.0  # the longest time in seconds until a killed node is restarted, or orphans are killed
PATIENCE = 180.0  # seconds within which a driver must notice that its Java process is gone


class Killer:
    """Kills processes, and counts the kills of each kind."""

    def __init__(
        self, nodes: ChainNodes, stream: PipelineRun, broker: Broker | None, seed: int
    ) -> None:
        self.killed: Counter[str] = Counter()
        self._nodes, self._stream, self._broker = nodes, stream, broker
        self._roles = ROLES if broker is None else (*ROLES, BROKER)
        self._chance = random.Random(seed)
        self._orphans: list[Session] = []

    def kill_next(self) -> str:
        """Kill the next process in turn, and start it again; return its role."""
        role = self._roles[self.killed.total() % len(self._roles)]
        kinds: dict[str, Callable[[], None]] = {
            "driver": self._kill_driver, "jvm": self._kill_java, "worker": self._kill_worker,
            BROKER: self._kill_broker,
        }  # fmt: skip
        if role in kinds:
            kinds[role]()
        else:
            assert role in (ROOT, PREPROCESSOR) or role in ABOVE
            self._nodes.kill(role)
            self._pause()
            self._nodes.start(role)
        self.killed[role] += 1
        return role

    def end(self) -> None:
        for one in self._orphans:
            one.end()

    def _pause(self) -> None:
        time.sleep(self._chance.uniform(0, LEFT))

    def _kill_driver(self) -> None:
        old = self._stream.session
        old.process.kill()
        old.process.wait()
        self._orphans.append(old)
        self._stream.start()
        self._pause()
        old.end()

    def _kill_java(self) -> None:
        old = self._stream.session
        for pid in self._wait_for_part("jvm"):
            send(pid)
        limit = time.monotonic() + PATIENCE
        while old.alive():
            if time.monotonic() > limit:
                raise EnvironmentProblem("the driver does not notice that its Java process is gone")
            time.sleep(0.05)
        old.end()
        self._stream.start()

    def _kill_worker(self) -> None:
        for pid in self._wait_for_part("worker")[:1]:
            send(pid)

    def _kill_broker(self) -> None:
        assert self._broker is not None
        self._broker.kill()
        self._pause()
        self._broker.start()

    def _wait_for_part(self, role: str) -> list[int]:
        limit = time.monotonic() + PATIENCE
        while not (found := self._stream.session.part(role)):
            if time.monotonic() > limit:
                raise EnvironmentProblem(f"found no process to kill: {role}")
            self._stream.check()
            time.sleep(0.05)
        return found
