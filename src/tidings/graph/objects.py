"""The *application-defined* preprocessor: interests are objects that know what they cover.

    class Range:
        def covers(self, other): ...        whether all that matches the other matches this
        def matches(self, notification): ...
        def key(self): ...                  equal keys, one node

Nothing is taken on trust. A new object is compared with every node, both ways, before anything is
changed, and the answers must fit the paths that are there:

- what covers something above it covers it; what is covered by something below it is covered by it
- what is above it covers what is below it

Where they do not fit, or a method raises, GraphError names the objects and the graph is as it was.
So each path is an answer "yes", and each "yes" a path. Objects that cover each other share a node.

Cost: two calls of `covers` for each node and new object, and `matches` for each node whose parents
match: what lies under a node that does not match is not looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tidings.graph.interest_graph import InterestGraph, InterestNode, name_of
from tidings.graph.lattice import reach
from tidings.model import GraphError


class SubscriptionObject(Protocol):
    """What an interest of an application must provide. Its answers may not change with time."""

    def covers(self, other: Any) -> bool:
        """Whether every notification that matches the other matches this one."""

    def matches(self, notification: Any) -> bool:
        """Whether a notification matches."""

    def key(self) -> Hashable:
        """The same for equal interests."""


ObjectNode = InterestNode[Any]  # Any: what the application put in


class ObjectGraph(InterestGraph[Any, Any]):
    """Objects of an application, which covers which."""

    def __init__(self) -> None:
        super().__init__()
        self._asking = False

    def insert(self, interest: SubscriptionObject) -> ObjectNode:
        """The node of an object: the one that is there, or a new one in its place."""
        key = _key_of(interest)
        known = self._by_key.get(key)
        if known is not None:
            return known
        nodes = list(self._nodes.values())
        with self._closed():
            above = {node for node in nodes if _covers(node.interest, interest)}
            below = {node for node in nodes if _covers(interest, node.interest)}
        self._need_order(interest, above, below)
        same = above & below
        if same:
            (node,) = same  # two nodes would cover each other, and so be one
            node._keys += (key,)
            self._by_key[key] = node
        else:
            node = self._new_node(interest, key)
            self._link(node, above, below)
        self._changed()
        return node

    def _need_order(
        self, new: SubscriptionObject, above: set[ObjectNode], below: set[ObjectNode]
    ) -> None:
        """GraphError unless the answers, with all answers before, form an order."""
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
        """The node of an object with an equal key, if there is one."""
        return self._by_key.get(_key_of(interest))

    def remove(self, node: ObjectNode) -> None:
        self._need_open()
        super().remove(node)

    def matching(self, notification: Any) -> list[ObjectNode]:
        """All nodes that match, looked for from the top down."""
        found: set[ObjectNode] = set()
        with self._closed():
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
                    f"a notification matches {name_of(node.interest)} and not "
                    f"{name_of(parent.interest)}, which covers it; expected both"
                )
        return sorted(found)

    def matching_of(self, nodes: Iterable[ObjectNode], notification: Any) -> list[ObjectNode]:
        with self._closed():
            return [node for node in nodes if _matches(node.interest, notification)]

    @contextmanager
    def _closed(self) -> Iterator[None]:
        """Refuse changes of the graph while an application's methods run."""
        self._need_open()
        self._asking = True
        try:
            yield
        finally:
            self._asking = False

    def _need_open(self) -> None:
        if self._asking:
            raise GraphError("a graph can't be used by the objects that it is asking")


class ObjectPreprocessor:
    """Takes objects of the application that have `covers`, `matches` and `key`."""

    def __init__(self) -> None:
        self.graph = ObjectGraph()

    def subscribe(self, interest: SubscriptionObject) -> ObjectNode:
        """The node of an object; GraphError when its coverings do not form an order."""
        return self.graph.insert(interest)

    def tag(self, notification: Any) -> list[ObjectNode]:
        """The lowest nodes that match."""
        return self.graph.lowest(self.graph.matching(notification))


def _covers(one: SubscriptionObject, other: SubscriptionObject) -> bool:
    try:
        return _need_answer(one.covers(other))
    except Exception as problem:
        what = f"covers, of {name_of(one)} and {name_of(other)}"
        raise GraphError(f"{what}, {_failure(problem)}") from problem


def _matches(one: SubscriptionObject, notification: Any) -> bool:
    try:
        return _need_answer(one.matches(notification))
    except Exception as problem:
        raise GraphError(f"matches, of {name_of(one)}, {_failure(problem)}") from problem


class _NoAnswer(Exception):
    """Something that is neither True nor False."""


def _need_answer(answer: object) -> bool:
    if answer is True or answer is False:
        return answer
    raise _NoAnswer(name_of(answer))


def _failure(problem: Exception) -> str:
    if isinstance(problem, _NoAnswer):
        return f"gave {problem}, expected True or False"
    try:
        return f"raised {type(problem).__name__}: {problem}"
    except Exception:  # its text is the application's too
        return f"raised {type(problem).__name__}"


def _key_of(interest: SubscriptionObject) -> Hashable:
    for name in ("covers", "matches", "key"):
        if isinstance(interest, type) or not callable(getattr(interest, name, None)):
            raise GraphError(
                f"found {name_of(interest)}, expected an object with covers, matches and key"
            )
    try:
        key = interest.key()
        hash(key)
    except Exception as problem:
        raise GraphError(
            f"key, of {name_of(interest)}, {_failure(problem)}; expected something hashable"
        ) from problem
    return key


def _not_transitive(a: object, b: object, c: object) -> GraphError:
    one, other, third = name_of(a), name_of(b), name_of(c)
    return GraphError(
        f"covers is not transitive: {one} covers {other}, which covers {third}, but {one} does "
        f"not cover {third}"
    )
