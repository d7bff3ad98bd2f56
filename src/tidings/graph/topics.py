"""The *static* preprocessor: a hierarchy of topics that is fixed before anyone subscribes.

An ontology says which topic lies under which, and its topics are the nodes. A node's number is its
topic's position in preorder, from 1. Every process that reads the same ontology assigns the same
numbers, so static preprocessors always agree. Ontologies with equal fingerprints are equal.

Cost: building visits, for each topic, the topics above it once; `tag` visits the topics above those
of the notification.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidings.filters import Ontology
from tidings.graph.interest_graph import InterestGraph, InterestNode
from tidings.graph.lattice import reach, tie
from tidings.model import GraphError, NotificationError

Topics = str | Iterable[str]


class TopicGraph(InterestGraph[str, Topics]):
    """The topics of an ontology as a graph that never changes."""

    def __init__(self, ontology: Ontology) -> None:
        super().__init__()
        self.ontology = ontology
        parents = ontology.list_parents()
        for topic in sorted(parents, key=lambda name: ontology.number(name) or 0):
            self._new_node(topic, topic)
        for topic, names in parents.items():
            node = self._by_key[topic]
            for name in set(names) - self._over(names) if len(names) > 1 else names:
                tie(self._by_key[name], node)
        self._count_change()

    def _over(self, topics: Iterable[str]) -> set[str]:
        """The topics that lie above the given topics in the ontology. The graph itself can't be
        used to find these topics, because its edges are not complete yet."""
        seen: set[str] = set()
        stack = list(topics)
        while stack:
            fresh = set(self.ontology.parents(stack.pop())) - seen
            seen |= fresh
            stack.extend(fresh)
        return seen

    def node(self, topic: object) -> InterestNode[str] | None:
        """The node of a topic, or None if the topic is unknown."""
        return self._by_key.get(self.ontology.topic_of(topic)) if isinstance(topic, str) else None

    def matching(self, notification: Topics) -> list[InterestNode[str]]:
        """The topics of the notification, and all topics above them."""
        named = {self._node_of(topic) for topic in _each(notification)}
        return sorted(named | reach(named, up=True))

    def matching_of(
        self, nodes: Iterable[InterestNode[str]], notification: Topics
    ) -> list[InterestNode[str]]:
        matched = set(self.matching(notification))
        return [node for node in nodes if node in matched]

    def remove(self, node: InterestNode[str]) -> None:
        """Always raise GraphError: a static graph never changes."""
        raise GraphError(f"{node!r} can't be removed: the topics of an ontology are fixed")

    def _node_of(self, topic: object) -> InterestNode[str]:
        node = self.node(topic)
        if node is None:
            raise NotificationError(unknown_topic_message(topic, self.ontology))
        return node


class StaticPreprocessor:
    """Accepts only the topics of an ontology; a notification is one topic or several."""

    def __init__(self, ontology: Ontology | Mapping[str, str | Iterable[str] | None]) -> None:
        """`ontology` may also be a mapping from each topic to its parent or parents."""
        self.graph = TopicGraph(ontology if isinstance(ontology, Ontology) else Ontology(ontology))

    @property
    def fingerprint(self) -> str:
        """A digest of the ontology. If two ontologies have the same digest, each topic has the same
        number in both."""
        return self.graph.ontology.fingerprint

    def subscribe(self, interest: str) -> InterestNode[str]:
        """The node of a topic; raises GraphError if there is no such topic."""
        node = self.graph.node(interest)
        if node is None:
            raise GraphError(unknown_topic_message(interest, self.graph.ontology))
        return node

    def tag(self, notification: Topics) -> list[InterestNode[str]]:
        """The nodes of the notification's lowest topics; raises NotificationError if one of its
        topics is unknown."""
        return self.graph.lowest(self.graph.matching(notification))


def unknown_topic_message(topic: object, ontology: Ontology) -> str:
    """The error message for an unknown topic."""
    if not isinstance(topic, str):
        return f"found {type(topic).__name__}, expected the name of a topic"
    near = ontology.near(topic)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "expected a known topic"
    return f"there is no topic '{topic}'; {hint}"


def _each(notification: object) -> Iterable[object]:
    if isinstance(notification, str):
        return (notification,)
    if not isinstance(notification, Iterable) or isinstance(notification, (bytes, Mapping)):
        found = type(notification).__name__
        raise NotificationError(f"found {found}, expected a topic or several topics")
    return notification
