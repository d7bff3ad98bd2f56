"""Preprocessors examine the content of a notification once, so that no router has to.

Every kind of preprocessor has two methods: `subscribe` turns an interest into a node, and `tag`
turns a notification into the lowest nodes that match it. The *dynamic* preprocessor in this module
adds each new filter to its graph. The static preprocessor is in topics.py, the type-based one in
classes.py, and the one for objects that an application defines in objects.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from tidings.filters import Attributes, Filter, parse
from tidings.graph.content_graph import ContentGraph
from tidings.graph.lattice import Vertex
from tidings.graph.node import Node
from tidings.model import Event

Interest_contra = TypeVar("Interest_contra", contravariant=True)
Notification_contra = TypeVar("Notification_contra", contravariant=True)


class Preprocessor(Protocol[Interest_contra, Notification_contra]):
    """The methods of every kind of preprocessor."""

    def subscribe(self, interest: Interest_contra, /) -> Vertex:
        """The node of an interest."""

    def tag(self, notification: Notification_contra, /) -> Sequence[Vertex]:
        """The lowest nodes that match a notification."""


class DynamicPreprocessor:
    """Accepts any filter, as text or parsed, and finds or creates its node."""

    def __init__(self, attributes: Attributes | None = None) -> None:
        self.attributes = attributes
        self.graph = ContentGraph()

    def subscribe(self, interest: Filter | str) -> Node:
        if isinstance(interest, str):
            interest = parse(interest, attributes=self.attributes)
        return self.graph.insert(interest)

    def tag(self, notification: Event) -> list[Node]:
        return self.graph.lowest(self.graph.matching(self.read(notification)))

    def read(self, notification: Event) -> Event:
        """The notification with its values converted to the declared types."""
        return notification if self.attributes is None else self.attributes.read(notification)
