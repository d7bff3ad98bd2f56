"""Graphs of an application's own interests, each found by its key."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from tidings.graph.lattice import Lattice, Vertex

I = TypeVar("I")  # noqa: E741
N = TypeVar("N")


class InterestNode(Vertex, Generic[I]):
    """The node of an application's interest: a topic, a class, or an object that the application
    defines."""

    __slots__ = ("_keys", "interest")

    def __init__(self, number: int, interest: I, key: Hashable) -> None:
        super().__init__(number)
        self.interest = interest
        self._keys: tuple[Hashable, ...] = (key,)  # the keys of all interests that share this node

    def __repr__(self) -> str:
        return f"Node({self.id}, {name_of(self.interest)})"


def name_of(thing: object) -> str:
    """A short name for an application's object; never raises."""
    try:
        text = thing.__qualname__ if isinstance(thing, type) else repr(thing)
    except Exception:
        text = f"a {type(thing).__name__}"
    return text if len(text) <= 100 else f"{text[:99]}…"


class InterestGraph(Lattice[InterestNode[I], N]):
    """A graph whose nodes are found by the keys of their interests."""

    def _new_node(self, interest: I, key: Hashable) -> InterestNode[I]:
        node = InterestNode(self._next, interest, key)
        self._next += 1
        self._nodes[node.id] = self._by_key[key] = node
        return node

    def _keys_of(self, node: InterestNode[I]) -> tuple[Hashable, ...]:
        return node._keys
