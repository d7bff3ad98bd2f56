"""A running rendezvous point: it writes to the disk before it promises, many promises per sync."""

from __future__ import annotations

import asyncio
import itertools
import logging
from pathlib import Path

from tidings.broker.admission.listen import Door
from tidings.broker.interests import GraphInterests
from tidings.broker.server import CACHE_BYTES, Server
from tidings.filters import Attributes
from tidings.matching import load_kernels
from tidings.model import EnvironmentProblem
from tidings.network import FrameCache, draw_life
from tidings.routing.forwarding import MOST_LISTED, Cache, Forwarding, Label
from tidings.routing.protocol import Limits, Lineage, Times, frames
from tidings.routing.root import Interests, Journal, Memory, Record, Rendezvous
from tidings.store.journal import FileJournal, Retention

TEND_AGAIN = 30.0  # seconds before another attempt to tend to the journal
MOST_SINGLE = 1_000_000  # labels that are kept
MOST_LABELS = 8 << 20  # bytes; if lists are longer, marks start with their nodes alone

_log = logging.getLogger(__name__)


class FramedRendezvous(Rendezvous):
    """A rendezvous point whose notifications leave as frames, encoded once for all neighbours. They
    collect in `released`."""

    def __init__(
        self,
        name: str,
        interests: Interests,
        journal: Journal,
        memory: Memory,
        times: Times | None,
        cache: Cache,
        limits: Limits,
    ) -> None:
        super().__init__(name, interests, journal, memory, times, cache, limits)
        self.released: list[bytes] = []
        # encoded labels by node: those that marks start with,
        self._labels: dict[int, bytes] = self.caches.add({})
        self._alone: dict[int, bytes] = {}  # and the nodes alone, for notifications with many marks

    def release(self, record: Record, nodes: Label) -> None:
        known = self._labels if len(nodes) <= MOST_LISTED else self._alone
        try:
            labels = b"".join(map(known.__getitem__, nodes))
        except KeyError:
            if len(known) > MOST_SINGLE:
                known.clear()
            for node in nodes:
                if node not in known:
                    label = self.first_label(node) if known is self._labels else (node,)
                    known[node] = frames.encode_labels([label])
            labels = b"".join(map(known.__getitem__, nodes))
        if len(labels) > MOST_LABELS:
            labels = frames.encode_labels([(node,) for node in nodes])
        front = record.notification(self.epoch, ())
        self.released.append(frames.encode_marked(front, record.marks, labels))


class RootNode(Server):
    """The rendezvous point of a channel."""

    machine: FramedRendezvous

    def __init__(
        self,
        name: str,
        journal: str | Path,
        door: Door,
        *,
        attributes: Attributes | None = None,
        times: Times | None = None,
        forwarding: Forwarding | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._path = Path(journal)
        self._attributes = attributes
        self._times = times
        self._name = name
        self._cache_bytes = cache_bytes
        self._limits = door.limits
        limits = door.limits
        retention = Retention(
            bytes=limits.kept_bytes,
            marks=limits.kept_marks,
            seconds=limits.kept_seconds,
            disk_bytes=limits.disk_bytes,
        )
        self.journal = FileJournal(self._path, retention, apart=True)
        try:
            self.journal.begin_life(draw_life())
        except BaseException:
            self.journal.close()
            raise
        super().__init__(self._load_machine(), door, forwarding)
        self._writing: asyncio.Task[None] | None = None
        self._tending: asyncio.Task[None] | None = None
        self._tended = float("-inf")  # when tending last failed
        self._tried = 0.0  # when starting a new machine was last tried

    async def start(self) -> None:
        # before anybody waits for a notification: it takes seconds if nothing is cached
        await asyncio.get_running_loop().run_in_executor(None, load_kernels)
        await super().start()

    def _load_machine(self) -> FramedRendezvous:
        """A machine that goes on from what is on the disk."""
        last = Lineage(self.journal.lineage).first_node(self.journal.last_node)
        interests = GraphInterests(self._attributes, self.journal.interests(), last, self._limits)
        memory = self.journal.memory(interests.all_placed())
        self._frames = FrameCache(self._cache_bytes)
        return FramedRendezvous(
            self._name, interests, self.journal, memory, self._times, self._frames, self._limits,
        )  # fmt: skip

    async def stop(self) -> None:
        await super().stop()
        tasks = [one for one in (self._writing, self._tending) if one is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        self.journal.close()

    def after_receiving(self) -> None:
        """Start to write, unless a write is running: what comes meanwhile shares the next sync."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        if self.machine.failed:
            await self._begin_anew()
        while True:
            # after a failed write nothing more may be written
            batch = None if self.machine.failed else self.journal.take()
            if batch is None:
                # messages may wait for what was written before
                self._release_stored(self.machine.written)
                self._tend()
                return
            try:
                await loop.run_in_executor(None, self.journal.write, batch)
            except Exception as problem:  # whatever it is, nobody may be told that it was written
                if isinstance(problem, EnvironmentProblem):
                    _log.error("%s", problem)
                else:
                    _log.exception("the journal %s can't be written", self._path)
                self.dispatch(self.machine.fail(str(problem) or type(problem).__name__))
                return
            self._release_stored(batch.upto)
            self._tend()

    def _tend(self) -> None:
        """Start to tend to the journal if that is due, while publishing goes on."""
        at_work = self._tending is not None and not self._tending.done()
        if not at_work and self.now - self._tended > TEND_AGAIN and self.journal.is_due:
            self._tending = asyncio.get_running_loop().create_task(self._tend_now())

    async def _tend_now(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.journal.tend)
        except Exception as problem:  # the log is whole; a start only takes longer
            self._tended = self.now
            _log.error("%s", problem)

    def _release_stored(self, count: int) -> None:
        self.dispatch(self.machine.mark_stored(count, self.now))
        released, self.machine.released = self.machine.released, []
        if released:
            ends = list(itertools.accumulate(map(len, released)))
            try:
                self.forward(b"".join(released), [0, *ends[:-1]], ends)
            except Exception:  # it is on the disk, and subscribers that miss it ask for it
                _log.exception("%s: notifications could not be forwarded", self._name)

    async def _begin_anew(self) -> None:
        """Go on from what is on the disk, if it can be written again. Until then the machine
        refuses everything that must be written."""
        if self.now - self._tried < self.machine.times.retry:
            return
        self._tried = self.now
        try:
            await asyncio.get_running_loop().run_in_executor(None, self._revive)
        except EnvironmentProblem as problem:
            _log.info("%s", problem)
            return
        self.take_machine(self._load_machine())
        _log.warning("the journal %s can be written again", self._path)

    def _revive(self) -> None:
        """Open the journal again, in a new life: it may be another journal by now."""
        self.journal.revive()
        self.journal.begin_life(draw_life())
