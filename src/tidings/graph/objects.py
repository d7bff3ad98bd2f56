"""The *application-defined* preprocessor: interests are objects with a method `covers`.

    class Range:
        def covers(self, other): ...        whether all that matches `other` also matches this
        def matches(self, notification): ...
        def key(self): ...                  objects with equal keys share a node

The results of `covers` are checked. A new object is compared with every node, in both directions,
before the graph changes. The answers must agree with the paths that exist already:

- if a node covers the object, all nodes above that node cover it too
- if the object covers a node, it also covers all nodes below that node
- every node that covers the object covers every node that the object covers

If the answers disagree, or a method raises an error, GraphError names the objects and the graph
stays unchanged. So there is a path from one node to another if, and only if, the first covers the
second. Objects that cover each other share a node.

Cost: a new object needs two calls to `covers` for each node. Tagging calls `matches` only on nodes
without parents, and on nodes with a parent that matches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tidings.graph.interest_graph import InterestGraph, InterestNode, name_of
from tidings.graph.lattice import reach
from tidings.model import GraphError


class SubscriptionObject(Protocol):
    """The methods that an application's interest must have. The results of these methods must never
    change."""

    def covers(self, other: Any) -> bool:
        """Whether every notification that matches `other` also matches this object."""

    def matches(self, notification: Any) -> bool:
        """Whether the notification matches this object."""

    def key(self) -> Hashable:
        """A hashable value; equal interests have equal values."""


ObjectNode = InterestNode[Any]  # Any: the application's object


class ObjectGraph(InterestGraph[Any, Any]):
    """Objects of an application, and the coverings between them."""

    def __init__(self) -> None:
        super().__init__()
        self._asking = False

    def insert(self, interest: SubscriptionObject) -> ObjectNode:
        """Return the node of an object, which is added if it is new."""
        key = _key_of(interest)
        known = self._by_key.get(key)
        if known is not None:
            return known
        nodes = list(self._nodes.values())
        with self._close_meanwhile():
            above = {node for node in nodes if _covers(node.interest, interest)}
            below = {node for node in nodes if _covers(interest, node.interest)}
        self._need_order(interest, above, below)
        same = above & below
        if same:
            (node,) = same  # two such nodes would cover each other, and would therefore be one node
            node._keys += (key,)
            self._by_key[key] = node
        else:
            node = self._new_node(interest, key)
            self._link(node, above, below)
        self._count_change()
        return node

    def _need_order(
        self, new: SubscriptionObject, above: set[ObjectNode], below: set[ObjectNode]
    ) -> None:
        """Raise GraphError unless the new answers and the earlier ones form a partial order."""
        for node in sorted(above):
            for parent in sorted(node._parents - above):
                raise _not_transitive(parent.interest, node.interest, new)
        for node in sorted(below):
            for child in sorted(node._children - below):
                raise _not_transitive(new, node.interest, child.interest)
        lowest = [node for node in above if node._children.isdisjoint(above)]
        for node in sorted(lowest):
            for other in sorted(below - reach({node}, up=False) - {node}):
                raise _not_transitive(node.interest, new, other.interest)

    def node(self, interest: SubscriptionObject) -> ObjectNode | None:
        """The node of an object with an equal key; None if there is none."""
        return self._by_key.get(_key_of(interest))

    def remove(self, node: ObjectNode) -> None:
        self._need_open()
        super().remove(node)

    def matching(self, notification: Any) -> list[ObjectNode]:
        """All nodes that match, found by searching from the top down."""
        found: set[ObjectNode] = set()
        with self._close_meanwhile():
            stack = [node for node in self._nodes.values() if not node._parents]
            seen = set(stack)
            while stack:
                node = stack.pop()
                if _matches(node.interest, notification):
                    found.add(node)
                    fresh = node._children - seen
                    seen |= fresh
                    stack.extend(fresh)
        for node in sorted(found):
            for parent in sorted(node._parents - found):
                raise GraphError(
                    f"a notification matches {name_of(node.interest)} but not "
                    f"{name_of(parent.interest)}; expected both to match, because the second "
                    "covers the first"
                )
        return sorted(found)

    def matching_of(self, nodes: Iterable[ObjectNode], notification: Any) -> list[ObjectNode]:
        with self._close_meanwhile():
            return [node for node in nodes if _matches(node.interest, notification)]

    @contextmanager
    def _close_meanwhile(self) -> Iterator[None]:
        """While the application's methods run, make every use of the graph raise GraphError."""
        self._need_open()
        self._asking = True
        try:
            yield
        finally:
            self._asking = False

    def _need_open(self) -> None:
        if self._asking:
            raise GraphError(
                "the graph was used while covers() or matches() of one of its objects was running; "
                "use it outside these methods"
            )


class ObjectPreprocessor:
    """Accepts the application's objects if they have the methods `covers`, `matches` and `key`."""

    def __init__(self) -> None:
        self.graph = ObjectGraph()

    def subscribe(self, interest: SubscriptionObject) -> ObjectNode:
        """The node of an object; raises GraphError if its coverings do not form a partial order."""
        return self.graph.insert(interest)

    def tag(self, notification: Any) -> list[ObjectNode]:
        """The lowest nodes that match."""
        return self.graph.lowest(self.graph.matching(notification))


def _covers(one: SubscriptionObject, other: SubscriptionObject) -> bool:
    try:
        return _need_answer(one.covers(other))
    except Exception as problem:
        what = f"covers({name_of(other)}) of {name_of(one)}"
        raise GraphError(f"{what} {_failure(problem)}") from problem


def _matches(one: SubscriptionObject, notification: Any) -> bool:
    try:
        return _need_answer(one.matches(notification))
    except Exception as problem:
        raise GraphError(f"matches() of {name_of(one)} {_failure(problem)}") from problem


class _NoAnswer(Exception):
    """The method returned something other than True or False."""


def _need_answer(answer: object) -> bool:
    if answer is True or answer is False:
        return answer
    raise _NoAnswer(name_of(answer))


def _failure(problem: Exception) -> str:
    if isinstance(problem, _NoAnswer):
        return f"returned {problem}, expected True or False"
    try:
        return f"raised {type(problem).__name__}: {problem}"
    except Exception:  # the application's `__str__` may raise too
        return f"raised {type(problem).__name__}"


def _key_of(interest: SubscriptionObject) -> Hashable:
    for name in ("covers", "matches", "key"):
        if isinstance(interest, type) or not callable(getattr(interest, name, None)):
            raise GraphError(
                f"found {name_of(interest)}, expected an object with the methods covers(), "
                f"matches() and key()"
            )
    try:
        key = interest.key()
        hash(key)
    except Exception as problem:
        raise GraphError(
            f"key() of {name_of(interest)} {_failure(problem)}; expected a hashable value"
        ) from problem
    return key


def _not_transitive(a: object, b: object, c: object) -> GraphError:
    one, other, third = name_of(a), name_of(b), name_of(c)
    return GraphError(
        f"covers is not transitive: {one} covers {other}, which covers {third}, but {one} does "
        f"not cover {third}"
    )
