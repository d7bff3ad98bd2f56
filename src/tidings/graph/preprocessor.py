"""Preprocessors: where content is looked at, once, so that no router ever has to.

Two verbs, whatever the kind: `subscribe` turns an interest into a node, `tag` turns a notification
into the lowest nodes that cover it. The *dynamic* one here grows its graph with the filters it
meets.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from tidings.filters import Attributes, Filter, parse
from tidings.graph.content_graph import ContentGraph
from tidings.graph.node import Node
from tidings.model import Event

Interest_contra = TypeVar("Interest_contra", contravariant=True)
Notification_contra = TypeVar("Notification_contra", contravariant=True)


class Preprocessor(Protocol[Interest_contra, Notification_contra]):
    """What every kind can do."""

    def subscribe(self, interest: Interest_contra) -> Node:
        """The node of an interest."""

    def tag(self, notification: Notification_contra) -> list[Node]:
        """The lowest nodes that cover a notification."""


class DynamicPreprocessor:
    """Takes any filter, as text or parsed, and finds or makes its node."""

    def __init__(self, attributes: Attributes | None = None) -> None:
        self.attributes = attributes
        self.graph = ContentGraph()

    def subscribe(self, interest: Filter | str) -> Node:
        if isinstance(interest, str):
            interest = parse(interest, attributes=self.attributes)
        return self.graph.insert(interest)

    def tag(self, notification: Event) -> list[Node]:
        if self.attributes is not None:
            notification = self.attributes.read(notification)
        return self.graph.lowest(self.graph.matching(notification))
