"""A running rendezvous point. It acknowledges only what is on the disk.

Many acknowledgments share one sync.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from tidings.broker.admission.listen import Door
from tidings.broker.admission.permissions import Permissions
from tidings.broker.links import Lane
from tidings.broker.queues.preparing import Preparing
from tidings.broker.recompiling import Recompiling
from tidings.broker.released.block_frames import FrameRun, encode_block, joined_frames
from tidings.broker.released.warming import load_block_kernels
from tidings.broker.server import CACHE_BYTES, Server
from tidings.channel.interests import ArrayInterests, ExtraFields, load_interest_kernels
from tidings.filters import Attributes
from tidings.matching import load_kernels
from tidings.model import EnvironmentProblem, pause_gc, write_path
from tidings.network import FrameCache, ask_for_kernels, draw_life
from tidings.routing.forwarding import MOST_LISTED, Cache, Forwarding, Label, NodeCache
from tidings.routing.protocol import Limits, Times, frames, messages as m
from tidings.routing.root import (
    Block,
    Definition,
    Interests,
    Journal,
    Memory,
    Record,
    Rendezvous,
    Run,
    find_runs,
)
from tidings.store.journal import FileJournal, Retention

FEW = 8  # if a buffer has fewer frames, they are read one by one
LOAD_AGAIN = 10.0  # seconds before another attempt to load kernels
TEND_AGAIN = 30.0  # seconds before another attempt to tend to the journal
MOST_SINGLE = 1_000_000  # labels in the cache
MOST_LABELS = 8 << 20  # bytes of labels; if there are more, each label is just its mark's node

_log = logging.getLogger(__name__)


class FramedRendezvous(Rendezvous):
    """A rendezvous point that encodes each notification as a frame, once for all neighbours, and
    collects the frames in `released`."""

    def __init__(
        self,
        name: str,
        interests: Interests,
        journal: Journal,
        memory: Memory,
        times: Times | None,
        cache: Cache,
        limits: Limits,
        definition: Definition,
    ) -> None:
        super().__init__(name, interests, journal, memory, times, cache, limits, definition)
        self.released: list[bytes | FrameRun] = []
        # the encoded first labels of nodes
        self._labels: NodeCache[bytes] = self.caches.add(NodeCache())
        self._alone: dict[int, bytes] = {}  # labels of one node, for notifications with many marks

    def release(self, record: Record, nodes: Label) -> None:
        known: dict[int, bytes] = self._labels if len(nodes) <= MOST_LISTED else self._alone
        labels = b"".join(self._labels_of(nodes, known))
        if len(labels) > MOST_LABELS:
            labels = frames.encode_labels([(node,) for node in nodes])
        front = record.notification(self.epoch, ())
        self.released.append(frames.encode_marked(front, record.marks, labels))

    def release_block(self, block: Block) -> None:
        """Encode the notifications of a block, one by one if any of them has many marks."""
        widest = int(np.diff(block.marks.starts).max(initial=0))
        if widest > MOST_LISTED:
            super().release_block(block)
        elif len(block.marks.nodes):
            labels = self._labels_of(block.marks.distinct.tolist(), self._labels)
            self.released.append(encode_block(block, self.epoch, labels))

    def _labels_of(self, nodes: Sequence[int], known: dict[int, bytes]) -> list[bytes]:
        """The encoded first labels of nodes."""
        try:
            return [*map(known.__getitem__, nodes)]
        except KeyError:
            if len(known) > MOST_SINGLE:
                known.clear()
            for node in nodes:
                if node not in known:
                    label = self.first_label(node) if known is self._labels else (node,)
                    known[node] = frames.encode_labels([label])
            return [*map(known.__getitem__, nodes)]


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
        self.extra = ExtraFields()  # shared by all state machines of this node
        self._times = times
        self._name = name
        self._cache_bytes = cache_bytes
        self._limits = door.limits
        self._definition = _define(door.channel, attributes)
        limits = door.limits
        retention = Retention(
            bytes=limits.kept_bytes,
            marks=limits.kept_marks,
            seconds=limits.kept_seconds,
            disk_bytes=limits.disk_bytes,
        )
        with pause_gc():
            self.journal = FileJournal(self._path, retention, apart=True)
            try:
                self.journal.begin_life(draw_life())
            except BaseException:
                self.journal.close()
                raise
            machine = self._load_machine()
        super().__init__(machine, door, forwarding)
        self._writing: asyncio.Task[None] | None = None
        self._tending: asyncio.Task[None] | None = None
        self._tended = float("-inf")  # when tending last failed
        self._takes_parts = False  # are the kernels for parts and runs loaded?
        self._tried = 0.0  # when a restart of the machine was last tried
        self._recompiling = Recompiling()
        self._preparing = Preparing(self._prepare, super().take_question)

    async def start(self) -> None:
        # load the kernels before clients connect: without a cache this takes seconds
        await asyncio.get_running_loop().run_in_executor(None, load_kernels)
        await asyncio.get_running_loop().run_in_executor(None, load_interest_kernels)
        await super().start()
        self._spawn(self._load_block_kernels())

    def take_question(self, link: Lane, message: m.Message) -> None:
        if isinstance(message, m.Ask):
            self._preparing.put(link, message)
        else:
            super().take_question(link, message)

    def _prepare(self, filters: Sequence[bytes]) -> list[float]:
        return self._interests.prepare(filters)

    def forget_lane(self, lane: Lane) -> None:
        super().forget_lane(lane)
        self._preparing.forget(lane)

    async def _load_block_kernels(self) -> None:
        """Load the kernels for parts and for runs of publications. Nothing else waits for them. If
        that fails, because the disk is full for example, try again later."""
        while True:
            try:
                await asyncio.get_running_loop().run_in_executor(None, load_block_kernels)
            except Exception:
                _log.exception("can't load the kernels for parts; trying again in %d s", LOAD_AGAIN)
                await asyncio.sleep(LOAD_AGAIN)
            else:
                self._takes_parts = True
                return

    def take_runs(self, lane: Lane, buffer: bytes, starts: list[int]) -> bool:
        if not self._takes_parts or len(starts) < FEW:
            return False
        ask_for_kernels()  # many publications come at once, so frames should be found fast too
        link = lane.link
        for at, run in find_runs(buffer, starts):
            found = self.connections.permissions_of(link)
            if run is None:
                self._take_frame(link, lane, buffer, starts[at])
            elif found is None or _must_split(run, found):
                for start in starts[at : at + len(run)]:
                    self._take_frame(link, lane, buffer, start)
            else:
                if not found.may_tag:
                    run.drop_tags()
                link.told_in += len(run)
                self.publications.put(lane, run)
        return True

    def take_part(self, link: Lane, message: m.HandOver) -> None:
        if self._takes_parts:
            super().take_part(link, message)
        else:
            taken = m.Taken(self.machine.epoch, message.source, message.batch, message.part)
            reason = "the rendezvous point was just started, and can't take parts yet"
            link.send(msgspec.structs.replace(taken, refusal=reason, later=True))

    def _load_machine(self) -> FramedRendezvous:
        """A machine that continues from the state on disk."""
        last = self.journal.history.base
        interests = self._interests = ArrayInterests(
            self._attributes,
            self.journal.interests(),
            last,
            self._limits,
            self.extra,
            Path(f"{self._path}.interests"),
        )
        self._renew(interests)
        memory = self.journal.memory(interests.all_placed())
        self._frames = FrameCache(self._cache_bytes)
        return FramedRendezvous(
            self._name, interests, self.journal, memory, self._times, self._frames, self._limits,
            self._definition,
        )  # fmt: skip

    @property
    def undeclared(self) -> int:
        return self.extra.fields

    def _renew(self, interests: ArrayInterests) -> None:
        """If stored filters are read differently than before, programs that tag must start over."""
        hidden, what = tuple(sorted(interests.refused)), self._definition
        declared = what.attributes is not None
        text = msgspec.json.encode((what.attributes, what.extra)) if declared else b""
        declaration = text.decode()
        history = self.journal.history
        if (hidden, declaration) != (history.hidden, history.declaration):
            self.journal.renew(interests.take_number(), hidden, declaration)

    async def stop(self) -> None:
        await super().stop()
        await self._preparing.stop()
        tasks = [one for one in (self._writing, self._tending) if one is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._recompiling.stop()
        self.journal.close()

    def after_receiving(self) -> None:
        """Start a write unless one is running; records that arrive meanwhile share the next
        sync."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        if self.machine.failed:
            await self._restart_machine()
        while True:
            # after a failed write nothing more may be written
            batch = None if self.machine.failed else self.journal.take()
            if batch is None:
                # messages may wait for records of an earlier write
                self._release_stored(self.machine.written)
                self._tend()
                return
            try:
                await loop.run_in_executor(None, self.journal.write, batch)
            except Exception as problem:  # after any failure, nothing may be acknowledged
                if isinstance(problem, EnvironmentProblem):
                    _log.error("%s", problem)
                else:
                    _log.exception("the journal %s can't be written", self._path)
                self.dispatch(self.machine.fail(str(problem) or type(problem).__name__))
                return
            while (upto := self.machine.next_stop(batch.upto)) < batch.upto:
                self._release_stored(upto)
                await asyncio.sleep(0)  # let other tasks run between blocks
            self._release_stored(batch.upto)
            self._tend()

    def _tend(self) -> None:
        """Tend to the journal and to the filters in the background if that is due."""
        self._recompiling.tend(self._interests)
        at_work = self._tending is not None and not self._tending.done()
        if not at_work and self.now - self._tended > TEND_AGAIN and self.journal.is_due:
            self._tending = asyncio.get_running_loop().create_task(self._tend_now())

    async def _tend_now(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.journal.tend)
        except Exception as problem:  # the log is intact; only the next start takes longer
            self._tended = self.now
            _log.error("%s", problem)

    def _release_stored(self, count: int) -> None:
        self.dispatch(self.machine.mark_stored(count, self.now))
        released, self.machine.released = self.machine.released, []
        for run in joined_frames(released):
            try:
                self.forward(run.data, run.starts, run.ends)
            except Exception:  # all are on the disk; subscribers ask for missing notifications
                _log.exception("%s: notifications could not be forwarded", self._name)

    async def _restart_machine(self) -> None:
        """Continue from the state on disk if the journal can be written again. Until then the
        machine refuses everything that must be written."""
        if self.now - self._tried < self.machine.times.retry:
            return
        self._tried = self.now
        try:
            machine = await asyncio.get_running_loop().run_in_executor(None, self._revive)
        except EnvironmentProblem as problem:
            _log.info("%s", problem)
            return
        self.take_machine(machine)
        _log.warning("the journal %s can be written again", self._path)

    def _revive(self) -> FramedRendezvous:
        """Reopen the journal and begin a new life, because the file may have been replaced."""
        self.journal.revive()
        self.journal.begin_life(draw_life())
        return self._load_machine()


def _must_split(run: Run, found: Permissions) -> bool:
    """Must the publications of a run be checked one by one? Otherwise all of them are accepted,
    because they have the same publisher."""
    return bool(found.refusal(run.message(0))) or (not found.may_tag and run.lacks_contents)


def _define(channel: str, attributes: Attributes | None) -> Definition:
    if attributes is None:
        return Definition(channel)
    types = {write_path((name,)): str(kind) for name, kind in attributes.tree.items()}
    return Definition(channel, types, attributes.extra)
