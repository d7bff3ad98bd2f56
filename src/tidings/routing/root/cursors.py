"""Named subscriptions: how far each has been confirmed.

    (owner, name) ──> filter and node, the serial up to which everything is confirmed, and the
                      numbers of the nodes below at that serial; what is confirmed after it

    serials       1 2 3 4 5 6 7      the payload of 3 and 6 came in pieces, and is not confirmed:
    confirmed     ────┤ . ──┤        serial = 2, upto = 5, gaps = 3

The application sees a cursor as one serial. A subscriber that comes back under the name also gets
the numbers. From the numbers, it finds out which notifications have come since then, and continues
as if it had never left.

Several programs may use one name, at different routers. Each resumption gets a *term* that is
higher than all earlier ones. A subscriber claims the name with its term, and the subscriber with
the highest claimed term has the name. A resumption alone claims nothing, because it may be a late
message of a program that is gone.

After a loss of data, a cursor may be ahead of the counts that are left (`after_loss`). The numbers
of its nodes then continue from these counts. Each subscriber that resumes the name gets a note
about the loss, until a subscriber confirms a notification.

A cursor keeps its node even if no subscriber is linked. The notifications of that node are also
kept, within the limits. Cost: an entry for each node below, in memory and in checkpoints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from tidings.model import TidingsError
from tidings.routing.protocol.messages import Step


class Confirmation(msgspec.Struct, frozen=True):
    """A confirmation by a subscriber; see `Confirm`. Confirmations by older agents have no
    `upto`."""

    serial: int
    total: int
    counts: Mapping[int, int]
    upto: int = 0
    gaps: tuple[int, ...] = ()


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """How far a named subscription was confirmed. `total` counts the notifications of the node up
    to `serial`. If the channel was revised since that serial, `total` and `counts` belong to an
    earlier node, and `steps` lead from that node to `node`. If `upto` is set, all serials up to it
    are confirmed, except those in `gaps`."""

    node: int
    interest: bytes
    serial: int
    total: int
    counts: dict[int, int]
    steps: tuple[Step, ...] = ()
    term: int = 0  # the term that the last resumption got
    upto: int = 0
    gaps: tuple[int, ...] = ()
    is_broken: bool = False  # has data been lost since the last confirmation?

    @property
    def last(self) -> int:
        """The highest serial that the cursor has seen."""
        return max(self.serial, self.upto, *(one.serial for one in self.steps))

    @property
    def nodes(self) -> set[int]:
        """The nodes whose numbers the cursor has."""
        found = {self.node, *self.counts}
        return found.union(*({one.node, *one.begins} for one in self.steps))

    def count_after(self, totals: Mapping[int, int]) -> int:
        """How many notifications matched the subscription after `serial`, given the totals of
        nodes. Notifications up to `upto` count even if they are confirmed."""
        found, before = 0, self.total
        for one in self.steps:
            found, before = found + max(0, one.closing - before), one.total
        return found + max(0, totals.get(self.node, 0) - before)

    def after_loss(self, counts: Mapping[int, int], totals: Mapping[int, int]) -> Cursor:
        """The cursor after data was lost. `counts` and `totals` are those of the nodes that were
        not lost. Higher numbers will be given to other notifications, so they do not count as
        confirmed."""

        def cut(numbers: Mapping[int, int]) -> dict[int, int]:
            return {node: min(number, counts.get(node, number))
                    for node, number in numbers.items()}  # fmt: skip

        steps = tuple(
            msgspec.structs.replace(
                one, begins=cut(one.begins), total=min(one.total, totals.get(one.node, one.total))
            )
            for one in self.steps
        )
        # if there are steps, the total is that of the node before the first step
        total = self.total if steps else min(self.total, totals.get(self.node, self.total))
        return msgspec.structs.replace(
            self, total=total, counts=cut(self.counts), steps=steps, is_broken=True
        )

    def is_before(self, one: Confirmation) -> bool:
        """Does a confirmation move this cursor forward?"""
        last = max(self.upto, self.serial)
        return self.serial <= one.serial and (self.serial < one.serial or last < one.upto)

    def confirm(self, one: Confirmation) -> Cursor:
        """The cursor after another confirmation. Numbers never decrease. After a revision, `total`
        is that of the new node, and counting continues from the counts at the revision."""
        serial, upto, gaps = one.serial, one.upto, one.gaps
        before, least, steps = self.counts, self.total, self.steps
        if upto < self.upto:  # an older agent does not send `upto`
            upto, gaps = self.upto, self.gaps
        gaps = tuple(sorted({at for at in gaps if serial < at <= upto}))
        while steps and steps[0].serial < serial:
            before, least, steps = steps[0].begins, steps[0].total, steps[1:]
        new = {node: max(count, before.get(node, 0)) for node, count in one.counts.items()}
        return msgspec.structs.replace(
            self, serial=serial, total=max(one.total, least), counts={**before, **new}, steps=steps,
            upto=upto, gaps=gaps, is_broken=False,
        )  # fmt: skip


def key_of(owner: str, name: str) -> str:
    return f"{owner}\0{name}"


def read_key(key: str) -> tuple[str, str]:
    """The owner and the name that a key was made from."""
    owner, _, name = key.partition("\0")
    return owner, name


class Cursors:
    """The cursors of a channel, by owner and name."""

    def __init__(
        self,
        known: Mapping[str, Cursor],
        most: int,
        held: frozenset[int] = frozenset(),
        term: int = 0,
    ) -> None:
        """`held` has the nodes of named subscriptions that have no cursor: those that commands make
        (nodes/holding.py). `term` is the highest term so far, including the terms of dropped
        names."""
        self.known = dict(known)
        self._held = {*held}
        self._most = most
        self._nodes = Counter(one.node for one in known.values())
        self._term = max(term, *(one.term for one in known.values()), 0)
        self._claimed: dict[str, int] = {}  # the highest claimed term of each name

    def next_term(self) -> int:
        """The term of the next resumption. All names share one counter, so a name that was dropped
        and is used again gets higher terms than before."""
        self._term += 1
        return self._term

    def claim(self, key: str, term: int) -> bool:
        """Claim a name; return False if a higher term has claimed it. Claims are not stored: after
        a restart, the subscribers claim their names again."""
        known = self.known.get(key)
        if known is None or term < self._claimed.get(key, 0):
            return known is None
        # subscribers may have higher terms, from before the journal went back in time
        self._claimed[key] = min(term, known.term)
        return True

    def holds(self, node: int) -> bool:
        """Does a named subscription have this node?"""
        return node in self._held or self._nodes[node] > 0

    def count(self, node: int) -> int:
        """How many named subscriptions a node has; all those that commands made count as one."""
        return self._nodes[node] + (node in self._held)

    def hold(self, node: int) -> None:
        """Record the node of a named subscription that has no cursor."""
        self._held.add(node)

    def let_go(self, node: int) -> None:
        """Record that no named subscription without a cursor needs a node any more."""
        self._held.discard(node)

    @property
    def nodes(self) -> set[int]:
        return {node for node, many in self._nodes.items() if many}

    def find_confirmed(self, serial: int) -> int:
        """The serial up to which all cursors are confirmed; `serial` if there are no cursors."""
        return min((one.serial for one in self.known.values()), default=serial)

    def need_room(self) -> None:
        if len(self.known) >= self._most:
            raise TidingsError(
                f"found {len(self.known):,} named subscriptions, expected fewer than "
                f"{self._most:,}, the limit `names`"
            )

    def put(self, key: str, cursor: Cursor) -> None:
        self._take_out(key)
        self.known[key] = cursor
        self._nodes[cursor.node] += 1

    def remove(self, key: str) -> Cursor | None:
        """Forget the cursor of a name, and who has claimed it."""
        self._claimed.pop(key, None)
        return self._take_out(key)

    def _take_out(self, key: str) -> Cursor | None:
        found = self.known.pop(key, None)
        if found is not None:
            self._nodes[found.node] -= 1
        return found
