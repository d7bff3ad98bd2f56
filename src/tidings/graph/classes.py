"""The *type-based* preprocessor: nodes are Python classes, notifications are objects.

    class Event            a subscription to Event gets quotes and trades;
    class Quote(Event)     a subscription to Quote gets only quotes.
    class Trade(Event)     A class with two bases has two parents.

Only real inheritance counts, that is, the `__mro__`. An abstract base class does not cover a class
that was registered with it, or that its `__subclasshook__` accepts. A program may register classes
at any time, and edges must not depend on such registrations. For the same reason `__class__` and
`isinstance` are not used; the type of an object is always `type(object)`.

Cost: `tag` does one lookup for each class in the object's `__mro__`, however many nodes there are.
Adding a class compares it with all nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidings.graph.interest_graph import InterestGraph, InterestNode, name_of
from tidings.model import GraphError, NotificationError

ClassNode = InterestNode[type[Any]]


def inherits(cls: type[Any], base: type[Any]) -> bool:
    """Whether `cls` is `base` or inherits from it, regardless of their metaclasses."""
    return any(one is base for one in cls.__mro__)


class ClassGraph(InterestGraph[type[Any], Any]):
    """The classes below a root class, and the inheritance between them. The key of a class is its
    `id()`: nodes keep their classes alive, and some metaclasses make classes unhashable."""

    def __init__(self, root: type[Any] = object) -> None:
        super().__init__()
        if not isinstance(root, type):
            raise GraphError(f"found {name_of(root)}, expected a class as the root")
        self.root = root

    def insert(self, interest: type[Any]) -> ClassNode:
        """The node of a class, which is added if it is new."""
        if not isinstance(interest, type):
            raise GraphError(f"found {name_of(interest)}, expected a class")
        node = self.node(interest)
        if node is None:
            if not inherits(interest, self.root):
                raise GraphError(
                    f"the class {name_of(interest)} does not inherit from {name_of(self.root)}"
                )
            above = set(self._over(interest))
            below = {one for one in self._nodes.values() if inherits(one.interest, interest)}
            node = self._new_node(interest, id(interest))
            self._link(node, above, below)
            self._count_change()
        return node

    def node(self, interest: type[Any]) -> ClassNode | None:
        """The node of a class; None if it has none."""
        return self._by_key.get(id(interest))

    def matching(self, notification: Any) -> list[ClassNode]:
        """The nodes of the object's class and of all classes that it inherits from."""
        return sorted(self._over(self._class_of(notification)))

    def matching_of(self, nodes: Iterable[ClassNode], notification: Any) -> list[ClassNode]:
        cls = self._class_of(notification)
        return [node for node in nodes if inherits(cls, node.interest)]

    def _over(self, cls: type[Any]) -> list[ClassNode]:
        found = (self._by_key.get(id(base)) for base in cls.__mro__)
        return [node for node in found if node is not None]

    def _class_of(self, notification: Any) -> type[Any]:
        cls = type(notification)
        if not inherits(cls, self.root):
            given = isinstance(notification, type)
            what = f"the class {name_of(notification)}" if given else f"an object of {name_of(cls)}"
            raise NotificationError(
                f"found {what}, expected an object of a class that inherits from "
                f"{name_of(self.root)}"
            )
        return cls

    def _keys_of(self, node: ClassNode) -> tuple[int]:
        return (id(node.interest),)  # an id differs from process to process


class TypePreprocessor:
    """Accepts any class below a root class; a notification is an instance of such a class."""

    def __init__(self, root: type[Any] = object) -> None:
        """Classes that do not inherit from the root are refused, and so are their instances."""
        self.graph = ClassGraph(root)

    def subscribe(self, interest: type[Any]) -> ClassNode:
        """The node of a class; raises GraphError if it does not inherit from the root."""
        return self.graph.insert(interest)

    def tag(self, notification: Any) -> list[ClassNode]:
        """The lowest of the nodes of the object's class and of all classes that it inherits
        from."""
        return self.graph.lowest(self.graph.matching(notification))
