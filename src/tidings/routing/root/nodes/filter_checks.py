"""Decides whether a filter is accepted, before it is placed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.model import TidingsError
from tidings.routing.forwarding.neighbours import Name
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.limits import LONG, long_bytes, work_of
from tidings.routing.root.nodes.lifecycle import NodeLifecycle
from tidings.routing.root.nodes.shared_objects import NodePart, Parts
from tidings.routing.root.nodes.territory import Territory
from tidings.routing.root.ownership import describe


class FilterChecks(NodePart):
    """Checks filters against limits. A filter that exceeds a limit is refused with a message. If
    there may be room for the filter later, the request is ignored instead, and the subscriber asks
    again."""

    def __init__(
        self, parts: Parts, aside: Mapping[int, Any], nodes: NodeLifecycle, territory: Territory
    ) -> None:
        super().__init__(parts)
        self._territory = territory
        self._aside = aside
        self._nodes = nodes

    def admit(self, sender: Name, message: m.Ask) -> bool:
        """Whether a filter may be placed. If it may not, this method sends the refusal, or ignores
        the question."""
        context, limits = self._context, self._context.limits
        payers = self._charges.payers(sender, message.owner)
        size = len(message.interest)
        self._charges.charge(sender, work_of(message.stored), message.owner)
        is_full = self._nodes.count_asked() >= limits.all_nodes
        makes_many = len(self._nodes.makers) >= limits.all_new_nodes or any(
            one.account.made >= one.most(limits.new_nodes, limits.all_new_nodes) for one in payers
        )
        refusal = ""
        if size > limits.filter_bytes:
            refusal = f"found a filter of {size:,} bytes, expected at most {limits.filter_bytes:,}"
            context.beyond["filter_bytes"] += 1
        elif (is_full or makes_many) and self._would_be_new(message.stored):
            if not is_full:
                context.beyond["new_nodes"] += 1
                return False
            refusal = (
                f"found {self._nodes.count_asked():,} filters in the channel, expected fewer than "
                f"{limits.all_nodes:,}; try again later"
            )
            context.beyond["all_nodes"] += 1
        elif self._queue.promised > limits.burst:
            context.beyond["work"] += 1
            return False
        else:
            refusal = self._territory.refusal(message) or self._exceeds_share(message)
        if refusal:
            context.send(sender, m.Answer(context.epoch, message.request, refusal=refusal))
        return not refusal

    def admit_suggested(self, sender: Name, size: int) -> str:
        """Why a filter that a preprocessor placed is not accepted; empty if it is accepted. The
        filter is not parsed, so it must be so short that it can only have a few parts."""
        context, limits = self._context, self._context.limits
        payers = self._charges.payers(sender)
        self._charges.charge(sender, size)
        makes_many = len(self._nodes.makers) >= limits.all_new_nodes or any(
            one.account.made >= one.most(limits.new_nodes, limits.all_new_nodes) for one in payers
        )
        if size > min(limits.filter_bytes, limits.filter_parts, LONG):
            return "the filter is too long to be placed without parsing it"
        if self._nodes.count_asked() >= limits.all_nodes or makes_many:
            context.beyond["suggestions"] += 1
            return "there are too many new nodes" if makes_many else "the channel is full"
        return ""

    def _would_be_new(self, interest: bytes) -> bool:
        try:
            return self._interests.look_up(interest)[1] is None
        except TidingsError:
            return False  # placing the filter reports the error

    def _exceeds_share(self, message: m.Ask) -> str:
        """Why an owner may not have this filter; empty if it may, or already has it."""
        limits, beyond, owner = self._context.limits, self._context.beyond, message.owner
        held = self._claims.holding(owner)
        size = held.size + work_of(message.stored)
        long = long_bytes(work_of(message.stored))
        long += held.long if long else 0
        most_long = limits.long_filter_bytes * limits.long_percent // 100
        is_much = size > limits.filters_bytes or long > most_long or held.nodes >= limits.nodes
        if not held.aside and not is_much:
            return ""
        try:
            key, node = self._interests.look_up(message.stored)
        except TidingsError:
            return ""  # placing the filter reports the error
        there = node is not None and node not in self._aside
        if there and owner in self._claims.owners(node or 0):
            return ""
        if size > limits.filters_bytes:
            beyond["filters_bytes"] += 1
            return (
                f"found {size:,} bytes of filters for {describe(owner)}, including this one, "
                f"expected at most {limits.filters_bytes:,} (bytes beyond the first 1,024 of a "
                f"filter count eightfold); drop other filters first"
            )
        if long > most_long:
            beyond["long_filter_bytes"] += 1
            return (
                f"found {long:,} bytes of filters longer than {LONG:,} bytes for "
                f"{describe(owner)}, including this one, expected at most {most_long:,}; "
                f"drop other filters first"
            )
        if held.nodes >= limits.nodes:
            beyond["nodes"] += 1
            return (
                f"found {held.nodes:,} filters for {describe(owner)} besides this one, expected "
                f"fewer than {limits.nodes:,}; drop other filters first"
            )
        refusal = self._claims.refusal_for(owner, key)
        beyond["marks"] += bool(refusal)
        return refusal
