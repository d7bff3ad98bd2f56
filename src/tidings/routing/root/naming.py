"""Answers subscribers that come back under a name, and journals what they confirm.

    Resume ──> cursor, or a new one ──> journal ──(on the disk)──> Resumption
    Confirm ──> cursor moves on, or is dropped ──> journal ──(on the disk)──> Confirmed
               └─ of a lower term than the highest that was heard of ──> displaced

An answer is sent when the new cursor is on the disk. If two programs use a name at the same time,
the name belongs to the program that resumed it last, no matter which routers they are linked to. So
a program that is restarted is not locked out by the remains of its previous run.
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from tidings.model import TidingsError
from tidings.routing.forwarding.neighbours import Charges, Context, Name
from tidings.routing.protocol import messages as m
from tidings.routing.root.counts import Counts
from tidings.routing.root.cursors import Confirmation, Cursor, Cursors, key_of
from tidings.routing.root.interests import Interests
from tidings.routing.root.nodes import NodeLifecycle
from tidings.routing.root.write_queue import WriteQueue

DISPLACED = (
    "the subscription {!r} was continued by another program, or by another call of this one, so "
    "this one has ended"
)
DAMAGED = "the rendezvous point has lost data since the subscription last confirmed something"
CHANGED = "the node of the subscription was removed: its filter was refused, or data was lost"


class Naming:
    """The named subscriptions of a rendezvous point."""

    def __init__(
        self,
        context: Context,
        charges: Charges,
        cursors: Cursors,
        nodes: NodeLifecycle,
        counts: Counts,
        queue: WriteQueue,
        wants: Container[int],
        interests: Interests,
    ) -> None:
        """`wants` contains the nodes that a neighbour wants."""
        self._wants = wants
        self._interests = interests
        self.cursors = cursors
        self._context = context
        self._charges = charges
        self._nodes = nodes
        self._counts = counts
        self._queue = queue

    def answer(self, sender: Name, message: m.Resume | m.Confirm, serial: int) -> None:
        """`serial` is the serial of the last notification on the disk."""
        if isinstance(message, m.Resume):
            self._resume(sender, message, serial)
        else:
            self._confirm(sender, message, serial)

    def _resume(self, sender: Name, message: m.Resume, serial: int) -> None:
        context = self._context
        key = key_of(message.owner, message.name)
        known, refusal, note = self.cursors.known.get(key), self._queue.failed, ""
        if known is not None and not self._is_same(known, message):
            refusal = refusal or (
                f"found another filter for the name {message.name!r}, expected one that equals "
                f"{known.interest[:200].decode(errors='replace')!r}; drop the name first, with "
                f"`tidings subscribe --durable {message.name} --drop`"
            )
        if not refusal:
            try:
                if known is None:
                    self.cursors.need_room()
                if known is None or known.node != message.node:
                    note = CHANGED if known is not None else ""
                    known = self._begin(message, serial)
                elif known.is_broken:
                    note = DAMAGED
                known = msgspec.structs.replace(known, term=self.cursors.next_term())
                self._queue.set_cursor(key, known)
                self.cursors.put(key, known)
                self._nodes.kept.discard(known.node)
            except TidingsError as problem:
                refusal = str(problem)
        if refusal or known is None:
            context.send(sender, m.Resumption(context.epoch, message.request, refusal=refusal))
            return
        entries = len(known.counts) + len(known.gaps) + sum(one.size for one in known.steps)
        self._charges.charge(sender, entries)
        self._queue.hold((sender, m.Resumption(
            context.epoch, message.request, known.serial, known.total, known.counts, note=note,
            steps=known.steps, term=known.term, upto=known.upto, gaps=known.gaps,
        )))  # fmt: skip

    def _is_same(self, known: Cursor, message: m.Resume) -> bool:
        """Does the filter in the message mean the same as the filter of the cursor? Two texts are
        the same filter if they have the same node, or would have the same node if the old node had
        not ended."""
        if known.node == message.node or known.interest == message.interest:
            return True
        try:
            found = self._interests.look_up(known.interest)
            return found == (self._interests.identity(message.node), message.node)
        except TidingsError:
            return False  # the stored filter is refused under the present rules

    def _begin(self, message: m.Resume, serial: int) -> Cursor:
        node = message.node
        counts = self._nodes.counts_of(node, self._nodes.under(node), 0)
        total = self._counts.totals.get(node, 0)
        return Cursor(node, message.interest, serial, total, counts)

    def _confirm(self, sender: Name, message: m.Confirm, serial: int) -> None:
        context, refusal = self._context, self._queue.failed
        key = key_of(message.owner, message.name)
        known = self.cursors.known.get(key)
        if not refusal and known is None and not message.drop:
            refusal = f"found no subscription named {message.name!r}; subscribe first"
        is_displaced = False
        if not refusal and (message.term or not message.drop):
            is_displaced = not self.cursors.claim(key, message.term)
            refusal = DISPLACED.format(message.name) if is_displaced else ""
        answer = m.Confirmed(context.epoch, message.request, refusal, is_displaced)
        if refusal:
            context.send(sender, answer)
            return
        try:
            if known is not None and message.drop:
                self._queue.set_cursor(key, None)
                self.cursors.remove(key)
                if not self.cursors.holds(known.node) and known.node not in self._wants:
                    self._nodes.unwanted.setdefault(known.node, context.now)
            elif known is not None:
                self._move(sender, key, known, message, serial)
        except TidingsError as problem:
            context.send(sender, m.Confirmed(context.epoch, message.request, refusal=str(problem)))
            return
        self._queue.hold((sender, answer))

    def _move(self, sender: Name, key: str, known: Cursor, message: m.Confirm, serial: int) -> None:
        """Move a cursor forward if the confirmation is later than the cursor, and its serials
        exist."""
        one = Confirmation(
            message.serial, message.total, message.counts, message.upto, message.gaps
        )
        if known.is_before(one) and max(one.serial, one.upto) <= serial:
            self._charges.charge(sender, len(one.counts) + len(one.gaps))
            cursor = known.confirm(one)
            self._queue.confirm(key, one)
            self.cursors.put(key, cursor)
