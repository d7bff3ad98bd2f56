"""Publications: each is tagged, numbered and journalled once, and then acknowledged.

    Publish ──> expected stamp? ──> tag ──> number ──> journal ──(on the disk)──> acknowledge
                      │
                      └─ an earlier stamp: acknowledge again; a later stamp: ignore, because the
                         publisher will repeat all from the missing one on

State changes only after all steps that can fail: a publisher's stamp advances when the journal has
its notification.
"""

from __future__ import annotations

import msgspec

from tidings.model import TidingsError, Undecided
from tidings.routing.forwarding.neighbours import Context, Name, ReturnPaths, Sent
from tidings.routing.protocol import messages as m
from tidings.routing.root.counts import Counts
from tidings.routing.root.nodes import TypeNodes
from tidings.routing.root.problems import Problems
from tidings.routing.root.publishing.root_tagger import Outdated, Tagger
from tidings.routing.root.publishing.stamps import MOST_FIRST, Stamps
from tidings.routing.root.records import Block, Record
from tidings.routing.root.write_queue import WriteQueue


class Intake:
    """Accepts the publications of a channel."""

    def __init__(
        self,
        context: Context,
        stamps: Stamps,
        tagger: Tagger,
        counts: Counts,
        queue: WriteQueue,
        return_paths: ReturnPaths,
        problems: Problems,
        type_nodes: TypeNodes,
    ) -> None:
        self._context = context
        self._stamps = stamps
        self._tagger = tagger
        self._counts = counts
        self._queue = queue
        self._return_paths = return_paths
        self._problems = problems
        self._type_nodes = type_nodes
        # by publisher: the first and the last stamp to acknowledge, and the serial of the last one
        self._unacknowledged: dict[str, tuple[int, int, int]] = {}

    def publish(self, sender: Name, message: m.Publish) -> None:
        """Accept a publication. The sender gets an answer when the publication is on the disk.
        Raise Undecided, and change nothing, if predicates must be called first."""
        who, stamp = message.publisher, message.stamp
        if len(self._stamps.known) > self._return_paths.many:
            self._stamps.hear(who)
        expected = self._expect(sender, message)
        if expected is None:
            return
        if stamp < expected:  # a repetition; the acknowledgment may be on its way
            self._repeat(sender, message, expected - 1)
            return
        if self._queue.failed:
            self._skip(sender, message, self._queue.failed)
            return
        if stamp > expected:  # an earlier publication was lost; this one will be repeated too
            return
        refusal = ""
        try:
            try:
                record = self._record(message)
            except (Outdated, Undecided):
                raise
            except TidingsError as problem:  # the refusal is final, so the stamp is used up
                refusal, record = str(problem), Record(0, who, stamp, (), (), b"")
            self._queue.append(record, len(message.payload) + len(message.content))
        except Undecided:
            raise
        except Outdated as problem:  # the stamp is not used up; see `_repeat`
            self._skip(sender, message, str(problem), problem.version)
            return
        except TidingsError as problem:
            self._skip(sender, message, str(problem))
            return
        except Exception:
            self._skip(sender, message, self._problems.report("match the notification"))
            return
        self._stamps.advance(who, stamp, refused=bool(refusal))
        # recorded only now, because a forged stamp must not redirect the acknowledgments
        self._return_paths.add(who, sender)
        if refusal:
            self._queue.hold((sender, m.Published(self._context.epoch, who, stamp, refusal)))
        else:
            self._counts.give(record)
            self._queue.hold_record(record)

    def _expect(self, sender: Name, message: m.Publish) -> int | None:
        """The stamp that a publisher must send next. If what the message says in `first` can't be
        true, return None, and tell the publisher."""
        who, first = message.publisher, message.first
        expected = self._stamps.expect(who, first, message.stamp)
        if expected is None and who in self._stamps.known:
            lacks = self._stamps.known[who] + 1
            self._context.send(sender, m.Published(self._context.epoch, who, 0, expected=lacks))
        elif expected is None:
            refusal = f"found {first:,} as the first stamp, expected at most {MOST_FIRST:,}"
            self._refuse(sender, message, refusal)
        return expected

    def _record(self, message: m.Publish) -> Record:
        """Build the record of a publication. The serial and the stamp of the record are not used up
        yet."""
        lowest, body = self._tagger.tag_body(message)
        if self._type_nodes.add((message.content,)):
            lowest, body = self._tagger.tag_body(message)
        return Record(
            self._counts.given + 1, message.publisher, message.stamp, self._counts.number(lowest),
            self._tagger.add_ancestors(lowest), body,
        )  # fmt: skip

    def _skip(self, sender: Name, message: m.Publish, refusal: str, version: int = 0) -> None:
        """Refuse a publication without writing to the journal."""
        self._stamps.skip(message.publisher, message.stamp, message.first)
        self._refuse(sender, message, refusal, version)

    def _refuse(self, sender: Name, message: m.Publish, refusal: str, version: int = 0) -> None:
        who, stamp, epoch = message.publisher, message.stamp, self._context.epoch
        self._context.send(sender, m.Published(epoch, who, stamp, refusal, version=version))

    def _repeat(self, sender: Name, message: m.Publish, last: int) -> None:
        """Answer a repeated publication again. An acknowledgment covers all stamps up to `last`.
        Reasons for refusals are not stored: the publication is tagged again, and refused again. But
        a publication without attributes is acknowledged, because its tag may have become too old
        since the publication was accepted. This acknowledgment is safe: a refusal does not use up
        the stamp, so no later stamp is accepted before the publisher has got the refusal."""
        who, stamp, epoch = message.publisher, message.stamp, self._context.epoch
        since = self._stamps.solid_since(who, stamp)
        if since is None:
            try:
                if message.content or not message.tag:
                    self._tagger.tag(message)
            except Undecided:
                raise
            except TidingsError as problem:
                self._refuse(sender, message, str(problem))
                return
            except Exception:
                self._problems.report("match the notification")
                return  # the sender will try again
            last = since = stamp
        acknowledged = m.Published(epoch, who, last, since=since, serial=self._counts.given)
        self._queue.hold((sender, acknowledged))

    # -- after a write -------------------------------------------------------------------------

    def acknowledge(self, record: Record) -> None:
        """Record that a notification is on the disk. Consecutive notifications are acknowledged
        together."""
        self._note(record.publisher, record.stamp, record.stamp, record.serial)

    def acknowledge_block(self, block: Block) -> None:
        """Record that the publications of a block are on the disk."""
        self._note(block.source, block.stamp, block.last_stamp, block.last_serial)

    def _note(self, publisher: str, stamp: int, upto: int, serial: int) -> None:
        first, last, _ = self._unacknowledged.get(publisher, (stamp, stamp - 1, 0))
        if stamp != last + 1:
            self._send_acknowledgment(publisher)
            first = stamp
        self._unacknowledged[publisher] = first, upto, serial

    def send_acknowledgments(self) -> None:
        for publisher in [*self._unacknowledged]:
            self._send_acknowledgment(publisher)

    def _send_acknowledgment(self, publisher: str) -> None:
        first, last, serial = self._unacknowledged.pop(publisher)
        solid = self._stamps.solid_since(publisher, first)
        since = first if solid is None else solid
        epoch = self._context.epoch
        self._return_paths.send(m.Published(epoch, publisher, last, since=since, serial=serial))

    # -- after a failed write ------------------------------------------------------------------

    def take_back(self, what: Record | Sent, reason: str) -> None:
        """Tell a client that the write that it waits for did not reach the disk."""
        epoch = self._context.epoch
        if isinstance(what, Record):
            self._stamps.take_back(what.publisher, what.stamp)
            self._return_paths.send(m.Published(epoch, what.publisher, what.stamp, reason))
            return
        to, message = what
        if isinstance(message, m.Answer):
            self._context.send(to, m.Answer(epoch, message.request, refusal=reason))
        elif isinstance(message, m.Taken):
            refused = msgspec.structs.replace(message, refusal=reason, later=True)
            self._context.send(to, refused)
        elif isinstance(message, m.Published) and message.refusal:
            self._stamps.take_back(message.publisher, message.stamp)
            self._context.send(to, message)  # the message already has the reason for the refusal
