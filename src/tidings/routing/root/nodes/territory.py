"""The part of a channel that a subscriber with limited rights may see: the nodes that the filters
in its rights cover."""

from __future__ import annotations

from tidings.model import TidingsError
from tidings.routing.protocol import messages as m
from tidings.routing.root.node_history import History
from tidings.routing.root.nodes.shared_objects import NodePart, Parts

MOST_JUDGED = 100_000  # the most results that are cached


class Territory(NodePart):
    """Decides whether the filters that limit a subscriber cover an interest or a node. If it is not
    certain that they do, the answer is no. Cost: one test for each pair of a node and a set of
    filters. Results are cached, because they never change."""

    def __init__(self, parts: Parts, history: History) -> None:
        super().__init__(parts)
        self._history = history
        self._judged: dict[tuple[int, m.Within], bool] = {}

    def refusal(self, message: m.Ask) -> str:
        """Why an interest is refused; empty if the filters that limit the subscriber cover it."""
        if not message.within:
            return ""
        try:
            found = self._interests.refuse_outside(message.stored, message.within)
        except TidingsError:
            return ""  # placing the filter reports the error
        self._context.beyond["outside"] += bool(found)
        return found

    def select(self, ranges: list[m.Range], within: m.Within) -> list[m.Range]:
        """The ranges whose notifications the subscriber may see."""
        return [one for one in ranges if self.has(one.node, within)]

    def has(self, node: int, within: m.Within) -> bool:
        """Whether the subscriber may see a node."""
        # If the node was removed: each node that replaced it covered it.
        there = self._history.stands_for((node,))
        return any(self._judge(one, within) for one in there if one in self._graph)

    def _judge(self, node: int, within: m.Within) -> bool:
        key = node, within
        found = self._judged.get(key)
        if found is None:
            if len(self._judged) >= MOST_JUDGED:
                self._judged.clear()
            found = self._judged[key] = self._interests.lies_within(node, within)
        return found
