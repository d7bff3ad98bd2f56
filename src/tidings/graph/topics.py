"""The *static* preprocessor: topics under topics, given once, before anyone subscribes.

An ontology says which topic lies under which, and its topics are the nodes. Numbers are the topics'
places in preorder, from 1: every process that reads the same ontology gives the same numbers, so
such preprocessors are never behind each other. Two with equal `fingerprint` have the same ontology.

Cost: building walks once over the topics above each topic; `tag` walks over those above the topics
of a notification.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidings.filters import Ontology
from tidings.graph.interest_graph import InterestGraph, InterestNode
from tidings.graph.lattice import reach, tie
from tidings.model import GraphError, NotificationError

Topics = str | Iterable[str]


class TopicGraph(InterestGraph[str, Topics]):
    """The topics of an ontology. It does not change."""

    def __init__(self, ontology: Ontology) -> None:
        super().__init__()
        self.ontology = ontology
        parents = ontology.declared()
        for topic in sorted(parents, key=lambda name: ontology.number(name) or 0):
            self._new_node(topic, topic)
        for topic, names in parents.items():
            node = self._by_key[topic]
            for name in set(names) - self._over(names) if len(names) > 1 else names:
                tie(self._by_key[name], node)
        self._changed()

    def _over(self, topics: Iterable[str]) -> set[str]:
        """What lies above these by the ontology; not all edges are there yet."""
        seen: set[str] = set()
        stack = list(topics)
        while stack:
            fresh = set(self.ontology.parents(stack.pop())) - seen
            seen |= fresh
            stack.extend(fresh)
        return seen

    def node(self, topic: object) -> InterestNode[str] | None:
        """The node of a topic, if there is one."""
        return self._by_key.get(topic) if isinstance(topic, str) else None

    def matching(self, notification: Topics) -> list[InterestNode[str]]:
        """The topics of the notification, and all above them."""
        named = {self._node_of(topic) for topic in _each(notification)}
        return sorted(named | reach(named, up=True))

    def matching_of(
        self, nodes: Iterable[InterestNode[str]], notification: Topics
    ) -> list[InterestNode[str]]:
        matched = set(self.matching(notification))
        return [node for node in nodes if node in matched]

    def remove(self, node: InterestNode[str]) -> None:
        """A static graph has no changes: GraphError."""
        raise GraphError(f"{node!r} can't be removed: the topics of an ontology stay as they are")

    def _node_of(self, topic: object) -> InterestNode[str]:
        node = self.node(topic)
        if node is None:
            raise NotificationError(unknown_topic_message(topic, self.ontology))
        return node


class StaticPreprocessor:
    """Takes the topics of an ontology, and no others; a notification is a topic, or several."""

    def __init__(self, ontology: Ontology | Mapping[str, str | Iterable[str] | None]) -> None:
        """An ontology, or a mapping of each topic to its parent or parents."""
        self.graph = TopicGraph(ontology if isinstance(ontology, Ontology) else Ontology(ontology))

    @property
    def fingerprint(self) -> str:
        """The same for equal ontologies, whose nodes have equal numbers."""
        return self.graph.ontology.fingerprint

    def subscribe(self, interest: str) -> InterestNode[str]:
        """The node of a topic; GraphError when there is no such topic."""
        node = self.graph.node(interest)
        if node is None:
            raise GraphError(unknown_topic_message(interest, self.graph.ontology))
        return node

    def tag(self, notification: Topics) -> list[InterestNode[str]]:
        """The lowest of the topics; NotificationError when one of them is not there."""
        return self.graph.lowest(self.graph.matching(notification))


def unknown_topic_message(topic: object, ontology: Ontology) -> str:
    """One sentence on a topic that is not there."""
    if not isinstance(topic, str):
        return f"found {type(topic).__name__}, expected a topic, which is a text"
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
