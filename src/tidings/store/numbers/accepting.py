"""Numbers the notifications of committed batches, each batch once.

    numbers/lock    held while a batch is accepted
    numbers/*.log   AcceptedBatch: outbox, batch, attempt, the number before the first, counts
                    Counters: the state at the beginning of a file, so that older files can go

A pipeline commits a batch to its outbox, and then calls `accept`. For each node of the batch, the
answer has the last number before the batch. The answer is on the disk before `accept` returns. A
driver that died before it stored the answer asks again, and gets the same answer, because the log
has the last batch of every outbox. The request also names the attempt: an outbox that was restored
from a copy can commit another batch with the same batch number and other rows. Such a batch gets
new numbers.

Numbers only rise. If this log does not know an outbox, or has another last batch for it, the outbox
passes its own last numbers (`floor`), and gets higher numbers from then on. Such differences occur
with outboxes of older releases, which numbered notifications themselves, and after a folder was
restored.

Cost: a write and a sync for each batch. A new file begins with all counters, and older files are
removed. A file ends at SEGMENT_BYTES, or at four times the size of the counters if that is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tidings.files import hold_lock, make_durable_folder
from tidings.model import EnvironmentProblem, TidingsError
from tidings.store.groups import START, GroupLog
from tidings.store.numbers.node_counts import pack_counts, unpack_counts

SEGMENT_BYTES = 8 << 20
NEVER = 1 << 62  # bytes, more than any file has: this module begins files, not the log
LOCK = "lock"

Numbers = dict[int, int]
Floor = Callable[[], Mapping[int, int]]


class AcceptedBatch(msgspec.Struct, frozen=True, array_like=True, tag="taken"):
    """A batch that was accepted: the last number of each node before the batch, and how many
    numbers each node got."""

    outbox: str
    batch: int
    attempt: str
    before: bytes
    counts: bytes


class Counters(msgspec.Struct, frozen=True, array_like=True, tag="counters"):
    """The last number of each node, and the last batch of each outbox."""

    counters: bytes
    taken: list[AcceptedBatch]


_decoder: msgspec.msgpack.Decoder[AcceptedBatch | Counters] = msgspec.msgpack.Decoder(
    AcceptedBatch | Counters
)


class Accepting:
    """The log in a folder, for any number of threads and processes of one machine."""

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self._segment_bytes = segment_bytes
        self._log: GroupLog | None = None  # None if nothing was read yet, or after a failure
        self._counters: Numbers = {}
        self._taken: dict[str, AcceptedBatch] = {}
        self._state_bytes = 0  # the size of the counters when they were last written

    def accept(
        self,
        outbox: str,
        batch: int,
        attempt: str,
        counts: Mapping[int, int],
        *,
        after: int | None,
        floor: Floor,
    ) -> Numbers:
        """The last number of each node before a batch; the batch is on the disk when this returns.
        `outbox` is the id of the outbox, and `attempt` identifies the committed rows. `after` is
        the last batch whose numbers are in the outbox; None if there is no such batch. `floor` is
        called if the log has a different last batch of this outbox, or none at all."""
        with self._holding() as log:
            known = self._taken.get(outbox)
            if known is not None and (known.batch, known.attempt) == (batch, attempt):
                return unpack_counts(known.before)
            states = log.end.offset >= max(self._segment_bytes, 4 * self._state_bytes)
            if states:
                log.begin_segment()
            if known is None or known.batch != after:
                # the answer of `floor` includes nodes that are not in this batch
                for node, number in floor().items():
                    states = states or number > self._counters.get(node, 0)
                    self._counters[node] = max(self._counters.get(node, 0), number)
            found = {node: self._counters.get(node, 0) for node in counts}
            taken = AcceptedBatch(outbox, batch, attempt, pack_counts(found), pack_counts(counts))
            self._append(log, taken, states=states)
            return found

    def counters(self) -> Numbers:
        """The last number of each node."""
        with self._holding():
            return dict(self._counters)

    # -- the log --------------------------------------------------------------------------------

    @contextmanager
    def _holding(self) -> Iterator[GroupLog]:
        """Hold the lock, and catch up with other processes. After a failure, the log is read again,
        because its content is uncertain."""
        try:
            make_durable_folder(self.folder)
            with hold_lock(self.folder / LOCK):
                log = self._catch_up()
                try:
                    yield log
                finally:
                    log.close(sync=False)  # somebody could replace the folder before the next call
        except OSError as problem:
            self._log = None
            raise EnvironmentProblem(
                f"can't number notifications in '{self.folder}': {problem.strerror}"
            ) from problem
        except BaseException:
            self._log = None
            raise

    def _catch_up(self) -> GroupLog:
        """Read what others wrote, and prepare to write."""
        known = self._log
        if (
            known is not None
            and known.marked == known.read_mark()
            and not known.has_more(known.end)
        ):
            return known  # nobody else wrote
        log = GroupLog(self.folder, segment_bytes=NEVER)
        mark, after = log.read_mark(), START
        if known is not None and mark and known.id == mark.log and \
                known.end.segment >= mark.oldest and known.end.number <= mark.number:  # fmt: skip
            after = known.end
        else:
            self._counters, self._taken, self._state_bytes = {}, {}, 0
        self._log = None
        walk = log.walk(after)
        for group in walk:
            for record in group.records:
                if record is not None:
                    self._apply(self._decode(record), len(record))
        losses = log.losses(walk)
        if losses:
            raise TidingsError(
                f"the numbers in '{self.folder}' are damaged: {losses[0]}; restore the folder from "
                "a backup, or remove it: then each outbox continues after its own last numbers"
            )
        log.take_end(walk)
        self._log = log
        return log

    def _decode(self, record: bytes) -> AcceptedBatch | Counters:
        try:
            return _decoder.decode(record)
        except msgspec.DecodeError as problem:
            raise TidingsError(
                f"a later release of tidings wrote the numbers in '{self.folder}' ({problem}); use "
                "that release"
            ) from None

    def _apply(self, thing: AcceptedBatch | Counters, size: int) -> None:
        if isinstance(thing, Counters):
            self._counters = unpack_counts(thing.counters)
            self._taken = {one.outbox: one for one in thing.taken}
            self._state_bytes = size
            return
        before = unpack_counts(thing.before)
        for node, count in unpack_counts(thing.counts).items():
            self._counters[node] = before[node] + count
        self._taken[thing.outbox] = thing

    def _append(self, log: GroupLog, taken: AcceptedBatch, *, states: bool) -> None:
        """Append a batch; if `states` is true, append all counters before the batch."""
        record = msgspec.msgpack.encode(taken)
        if not states:
            log.append([record], value=taken.batch)
        else:
            state = Counters(pack_counts(self._counters), [*self._taken.values()])
            first = msgspec.msgpack.encode(state)
            segment = log.end.segment
            log.append([first, record], value=taken.batch)
            self._state_bytes = len(first)
            if log.end.segment > segment:
                log.drop_before(log.end.segment)
        self._apply(taken, len(record))
