"""Finds or creates the node of a filter, and answers the subscriber that asked."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidings.model import TidingsError
from tidings.routing.forwarding.neighbours import Name
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.limits import work_of
from tidings.routing.protocol.stored_interest import DEFAULT_DIALECT, relate_dialect, split_related
from tidings.routing.root.interests import Placed
from tidings.routing.root.nodes.filter_checks import FilterChecks
from tidings.routing.root.nodes.lifecycle import NodeLifecycle
from tidings.routing.root.nodes.set_aside import SetAside
from tidings.routing.root.nodes.shared_objects import NodePart, Parts
from tidings.routing.root.nodes.territory import Territory
from tidings.routing.root.revising import find_steps

NEW_NODE = 100  # a new node costs as much as this many entries of an answer
MOST_NEWER = 200  # the most newer nodes that a suggested filter is compared with
MOST_PLACED = 100_000  # suggested nodes that are remembered


class Placing(NodePart):
    """Finds or creates the nodes of filters at a rendezvous point."""

    def __init__(
        self,
        parts: Parts,
        nodes: NodeLifecycle,
        set_aside: SetAside,
        territory: Territory,
        last_node: int,
    ) -> None:
        super().__init__(parts)
        self._nodes = nodes
        self._set_aside = set_aside
        self._territory = territory
        self._checks = FilterChecks(parts, set_aside.aside, nodes, territory)
        self.last_node = last_node
        """The number of the newest node."""
        # suggested nodes, the oldest first; answers about their filters need no note
        self._suggested: dict[int, None] = {}

    def answer(self, sender: Name, message: m.Ask) -> None:
        """Answer with the node of a filter, or with the reason why there is none."""
        if message.dialect == m.NODE:
            named = self._name_filter(message)
            if named is None:
                text = message.interest[:30].decode(errors="replace")
                refusal = f"found the node {text!r}, expected a node of this channel"
                if message.within:
                    refusal += (
                        " whose filter is covered by the filters that limit your right to subscribe"
                    )
                epoch = self._context.epoch
                self._context.send(sender, m.Answer(epoch, message.request, refusal=refusal))
                return
            message = named
        elif message.node and self.knows(message):
            message = msgspec.structs.replace(message, dialect=DEFAULT_DIALECT)
        else:
            message = msgspec.structs.replace(message, node=0)
        if not self._checks.admit(sender, message):
            return
        refusal, placed = self._place(sender, message)
        if placed is None:
            epoch = self._context.epoch
            self._context.send(sender, m.Answer(epoch, message.request, refusal=refusal))
            return
        node, owner = placed.node, message.owner
        self._rights.grant(sender, node, self._context.within_of(sender))
        if node not in self._subscriptions.wants:
            self._nodes.stop_wanting(node)  # kept for a while, so that the asker can subscribe
        # When this answer is sent, all numbers given so far will be on the disk.
        given = self._counts.given_counts
        counts = {one: given[one] for one in self._nodes.under(node) if one in given}
        steps = find_steps(self._registry.history, message.was, node) if message.was else ()
        self._charges.charge(sender, len(counts) + sum(one.size for one in steps), owner)
        pending = sum(record.matches(node) for record in self._queue.records)
        total = self._counts.totals.get(node, 0) + pending
        epoch, serial = self._context.epoch, self._counts.given
        answer = m.Answer(
            epoch, message.request, node, serial, total, counts, note=placed.note,
            never=placed.never, steps=steps,
        )  # fmt: skip
        self._queue.hold((sender, answer))

    def _name_filter(self, message: m.Ask) -> m.Ask | None:
        """The same question with a filter in place of the node's number, so that rights and limits
        are checked against the filter. Return None if there is no such node, or if the subscriber
        may not see it, because a refusal must not show the filters of others."""
        text = message.interest[:20]
        node = int(text) if text.isdigit() else 0
        if node not in self._graph or (
            message.within and not self._territory.has(node, message.within)
        ):
            return None
        interest, dialect = self._interests.text(node).encode(), DEFAULT_DIALECT
        if self._relating is not None and node in self._relating.bases:
            dialect = relate_dialect(dialect, self._relating.least(node))
        return msgspec.structs.replace(message, interest=interest, dialect=dialect)

    def _place(self, sender: Name, message: m.Ask) -> tuple[str, Placed | None]:
        """Place a filter and record its owner; return the reason for a refusal, and the place or
        None."""
        if self._queue.failed:
            return self._queue.failed, None
        try:
            if message.node:  # `knows` has checked that this node has the filter
                placed = Placed(message.node, (), ())
            else:
                related = split_related(message.stored)
                if related is not None:
                    refusal = self._place_exact(sender, message, related.dialect)
                    if refusal:
                        return refusal, None
                placed = self._interests.place(message.stored)
            is_new = placed.node not in self._graph
            if is_new:
                self._make(sender, placed, message)
        except TidingsError as problem:
            return str(problem), None
        except Exception:
            return self._problems.report("place the filter"), None
        node = placed.node
        self.last_node = max(self.last_node, node)
        self._claims.measure(node, work_of(message.stored))
        self._claim(node, message.owner, is_new=is_new)
        return "", placed

    def _place_exact(self, sender: Name, message: m.Ask, dialect: str) -> str:
        """Place the filter of a related interest as a node of its own, the exact node; return the
        reason for a refusal. The exact node stays as long as the related node does."""
        self._interests.look_up(message.stored)  # raises an error if the interest is refused
        refusal, placed = self._place(sender, msgspec.structs.replace(message, dialect=dialect))
        if placed is not None and placed.node not in self._subscriptions.wants:
            self._nodes.stop_wanting(placed.node)
        return refusal

    # -- filters that a preprocessor has placed ------------------------------------------------

    def knows(self, message: m.Ask) -> bool:
        """Was the node in this question suggested by a preprocessor, for exactly this text?"""
        node = message.node
        return (
            node in self._suggested
            and node in self._graph
            and message.dialect == DEFAULT_DIALECT
            and self._interests.text(node).encode() == message.interest
        )

    def take_suggestion(self, sender: Name, message: m.Suggest) -> None:
        """Create nodes for filters whose places a preprocessor has found, after a comparison with
        newer nodes. Answer with the nodes, or with the reason why a filter was not placed. If an
        owner asks for a suggested node later, it owns the node from then on.

        The answer is sent before the nodes are on the disk; only the later answer to the subscriber
        waits until they are. If a crash loses the node, suggestions that rely on it are refused."""
        history, version = self._registry.history, message.version
        newer: Sequence[int] | None = None
        if message.life == history.life and history.has_changes_since(version):
            newer = self._registry.list_begun(version, MOST_NEWER + len(message.known))
        if newer is not None and message.known:
            newer = sorted({*newer} - {*message.known})
        nodes: list[int] = []
        refusal = ""
        if newer is None or len(newer) > MOST_NEWER:
            refusal = f"version {version} is too old"
        else:
            for one in message.filters:
                said, node = self._place_suggested(sender, one, newer, nodes)
                refusal = refusal or said
                nodes.append(node)
        epoch = self._context.epoch
        self._context.send(sender, m.Suggested(epoch, message.request, tuple(nodes), refusal))

    def _place_suggested(
        self, sender: Name, one: m.Suggestion, newer: Sequence[int], before: Sequence[int]
    ) -> tuple[str, int]:
        """`before` has the nodes that were found for the earlier filters of the message."""
        size = len(one.interest)
        refusal = self._queue.failed or self._checks.admit_suggested(sender, size)
        if refusal:
            return refusal, 0
        history = self._registry.history
        above = sorted(history.stands_for(_resolve(one.above, before)))
        below = sorted(history.lay_below(_resolve(one.below, before)))
        if not all(map(self._graph.__contains__, (*above, *below))):
            return m.UNKNOWN, 0
        ask = m.Ask(0, one.interest)
        try:
            placed = self._interests.place_at(ask.stored, one.key, above, below, newer)
            if placed.node not in self._graph:
                self._make(sender, placed, ask)
                self._suggested[placed.node] = None
        except TidingsError as problem:
            return str(problem), 0
        except Exception:
            return self._problems.report("place the filter"), 0
        node = placed.node
        self.last_node = max(self.last_node, node)
        self._claims.measure(node, work_of(ask.stored))
        if node not in self._subscriptions.wants:
            self._nodes.stop_wanting(node)  # kept for a while, so the agent has time to subscribe
        if len(self._suggested) > MOST_PLACED:
            del self._suggested[next(iter(self._suggested))]
        return "", node

    def _claim(self, node: int, owner: str, *, is_new: bool) -> None:
        """Make the owner that asked for a node its only owner, or one of several."""
        self._nodes.kept.discard(node)  # the owner takes it over from the channel
        if self._set_aside.bring_back(node):  # requested by an owner whose share has room
            self._set_aside.own(node, (owner,))
        elif is_new:
            self._claims.add(node, owner)
        elif self._nodes.is_left(node):
            self._set_aside.own(node, (owner,))  # the previous owners have left
        elif self._claims.add(node, owner):
            self._queue.set_owners(node, self._claims.owners(node))

    def _make(self, sender: Name, placed: Placed, message: m.Ask) -> None:
        """Add a new node, and charge it to those who asked for it."""
        self._nodes.begin(placed, message.stored, message.owner)
        payers = self._charges.payers(sender, message.owner)
        self._nodes.add_maker(placed.node, payers)
        self._charges.charge(sender, NEW_NODE, message.owner)


def _resolve(nodes: Sequence[int], before: Sequence[int]) -> list[int]:
    """Replace references to earlier filters of the same message by the nodes of these filters; 0
    stands for a filter that was not placed."""
    return [
        one if one < m.WITHIN else before[one - m.WITHIN] if one - m.WITHIN < len(before) else 0
        for one in nodes
    ]
