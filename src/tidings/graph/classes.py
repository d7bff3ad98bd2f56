"""The *type-based* preprocessor: nodes are Python classes, notifications are objects.

    class Event            a subscription to Event gets quotes and trades, one to Quote
    class Quote(Event)     gets quotes alone. A class with two bases has two parents.
    class Trade(Event)

Only what a class inherits from counts, its `__mro__`. A class that was registered with an abstract
base class, or that such a class accepts by `__subclasshook__`, is not covered by it: a program may
register classes at any time, and a covering that comes and goes can't be an edge. For the same
reason `__class__` and `isinstance` are not used; the type of an object is `type(object)`.

Cost: `tag` is one look-up for each class that the object's class inherits from, however many nodes
there are; a new class is compared with all nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidings.graph.interest_graph import InterestGraph, InterestNode, name_of
from tidings.model import GraphError, NotificationError

ClassNode = InterestNode[type[Any]]


def inherits(cls: type[Any], base: type[Any]) -> bool:
    """Whether a class is the other or inherits from it, whatever their metaclasses say."""
    return any(one is base for one in cls.__mro__)


class ClassGraph(InterestGraph[type[Any], Any]):
    """Classes beneath a root, which inherits from which. Their keys are their addresses: the nodes
    keep them alive, and not every metaclass lets its classes be hashed."""

    def __init__(self, root: type[Any] = object) -> None:
        super().__init__()
        if not isinstance(root, type):
            raise GraphError(f"found {name_of(root)}, expected a class as the root")
        self.root = root

    def insert(self, interest: type[Any]) -> ClassNode:
        """The node of a class: the one that is there, or a new one in its place."""
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
            self._changed()
        return node

    def node(self, interest: type[Any]) -> ClassNode | None:
        """The node of a class, if there is one."""
        return self._by_key.get(id(interest))

    def matching(self, notification: Any) -> list[ClassNode]:
        """The nodes of all classes that the object's class is or inherits from."""
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
        return (id(node.interest),)  # another one in another process


class TypePreprocessor:
    """Takes any class beneath a root; a notification is an object of such a class."""

    def __init__(self, root: type[Any] = object) -> None:
        """Classes that do not inherit from the root are refused, and so are their objects."""
        self.graph = ClassGraph(root)

    def subscribe(self, interest: type[Any]) -> ClassNode:
        """The node of a class; GraphError when it does not inherit from the root."""
        return self.graph.insert(interest)

    def tag(self, notification: Any) -> list[ClassNode]:
        """The nodes of the lowest classes that the object's class is or inherits from."""
        return self.graph.lowest(self.graph.matching(notification))
