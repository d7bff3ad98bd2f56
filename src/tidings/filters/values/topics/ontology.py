"""Ontologies: a tree or DAG of topics, numbered in preorder.

sports 0
|-- baseball 1          Baseball and all topics under it have the numbers 1 to 2. A subtree is
|   `-- mlb 2           contiguous, so isa(topic, 'baseball') is a test on one interval. A topic
`-- football 3          with two parents is numbered under the first; the topics under the other
                        parent may then form several intervals.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from tidings.model import AttributesError

LONGEST = 10  # the most topics of a cycle that an error message names


class Ontology:
    """Topics and their parents. An ontology is built from a mapping of each topic to its parent or
    parents. `synonyms` maps other names to topics. `retired` maps topics that a revision removed to
    the topics that replace them.

    Cost: numbering takes time linear in the numbers of topics and edges. The spans of a topic are
    computed on first use, in time proportional to the number of topics under it.
    """

    def __init__(
        self,
        parents: Mapping[str, str | Iterable[str] | None],
        synonyms: Mapping[str, str] | None = None,
        retired: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        above: dict[str, tuple[str, ...]] = {}
        if not isinstance(parents, Mapping):
            kind = type(parents).__name__
            raise AttributesError(f"found {kind}, expected a mapping of each topic to its parents")
        for child, given in parents.items():
            if isinstance(given, Mapping):
                raise AttributesError(
                    f"found a mapping as the value of {child!r}, expected its parent or a list of "
                    "its parents; use load_ontology to read a file of nested topics"
                )
            names = (given,) if isinstance(given, str) else tuple(given or ())
            above[child] = tuple(dict.fromkeys(names))
        for names in list(above.values()):
            for name in names:
                above.setdefault(name, ())
        self._parents = above
        self.synonyms = _check_synonyms(synonyms or {}, above)
        self.retired = _check_retired(retired or {}, above)
        self._children: dict[str, list[str]] = {name: [] for name in above}
        for child in sorted(above):
            for parent in above[child]:
                self._children[parent].append(child)
        self._numbers = self._number()
        self._spans: dict[str, list[tuple[int, int]]] = {}
        edges = sorted((child, *sorted(names)) for child, names in above.items())
        others = (sorted(self.synonyms.items()), sorted(self.retired.items()))
        packed = msgspec.msgpack.encode((edges, *others) if any(others) else edges)
        self.fingerprint = hashlib.blake2b(packed, digest_size=8).hexdigest()

    def list_parents(self) -> dict[str, list[str]]:
        """The parents of each topic. The ontology can be rebuilt from the parents, the synonyms and
        the retired topics."""
        return {child: list(parents) for child, parents in self._parents.items()}

    def _number(self) -> dict[str, int]:
        waiting = {name: len(names) for name, names in self._parents.items()}
        ready = [name for name, count in waiting.items() if count == 0]
        done = 0
        while ready:
            done += 1
            for child in self._children[ready.pop()]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    ready.append(child)
        if done < len(waiting):
            name = min(name for name, count in waiting.items() if count)
            way: dict[str, None] = {}
            while name not in way:  # go from parent to parent until a topic occurs again
                way[name] = None
                name = min(parent for parent in self._parents[name] if waiting[parent])
            raise AttributesError(f"the ontology has a cycle: {_describe_cycle(list(way), name)}")
        numbers: dict[str, int] = {}
        stack = sorted((n for n, names in self._parents.items() if not names), reverse=True)
        while stack:
            name = stack.pop()
            if name not in numbers:
                numbers[name] = len(numbers)
                stack.extend(reversed(self._children[name]))
        return numbers

    def parents(self, topic: str) -> tuple[str, ...]:
        """The parents that were declared for a topic."""
        return self._parents[topic]

    def topic_of(self, name: str) -> str:
        """The topic that a name stands for: the target of a synonym, or the name itself."""
        return self.synonyms.get(name, name)

    def __contains__(self, topic: object) -> bool:
        return topic in self._numbers or topic in self.synonyms

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, topic: object) -> int | None:
        """The preorder number of a topic; None if the topic is unknown."""
        return self._numbers.get(self.topic_of(topic)) if isinstance(topic, str) else None

    def isa(self, topic: str, above: str) -> bool | None:
        """Whether a topic equals `above` or lies under it; None if either is unknown. If `above` is
        retired, the answer is also true if the topic equals, or lies under, one of the topics that
        replace `above`."""
        topic, above = self.topic_of(topic), self.topic_of(above)
        if topic not in self._numbers or above not in self._numbers:
            return None
        if above in self.retired:
            return topic == above or any(self.isa(topic, one) for one in self.retired[above])
        stack, seen = [topic], {topic}
        while stack:
            name = stack.pop()
            if name == above:
                return True
            fresh = [p for p in self._parents[name] if p not in seen]
            seen.update(fresh)
            stack.extend(fresh)
        return False

    def spans(self, topic: str) -> list[tuple[int, int]]:
        """The numbers of a topic and of all topics under it, as (first, last) intervals."""
        topic = self.topic_of(topic)
        if topic not in self._spans:
            stack = [topic, *self.retired.get(topic, ())]
            seen = set(stack)
            while stack:
                fresh = [c for c in self._children[stack.pop()] if c not in seen]
                seen.update(fresh)
                stack.extend(fresh)
            spans: list[tuple[int, int]] = []
            for number in sorted(self._numbers[name] for name in seen):
                if spans and spans[-1][1] == number - 1:
                    spans[-1] = (spans[-1][0], number)
                else:
                    spans.append((number, number))
            self._spans[topic] = spans
        return self._spans[topic]

    def near(self, topic: str) -> list[str]:
        """Topics and synonyms with a similar spelling, without retired topics."""
        names = [name for name in (*self._numbers, *self.synonyms) if name not in self.retired]
        return difflib.get_close_matches(topic, names, n=3)


def _check_synonyms(synonyms: Mapping[str, str], topics: Mapping[str, object]) -> dict[str, str]:
    for name, topic in synonyms.items():
        if name in topics:
            raise AttributesError(
                f"found the topic '{name}' as a synonym, expected a name that is not a topic"
            )
        if topic not in topics:
            raise AttributesError(f"found the synonym '{name}' of '{topic}', which is not a topic")
    return dict(synonyms)


def _check_retired(
    retired: Mapping[str, Iterable[str]], topics: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    found = {name: tuple(others) for name, others in retired.items()}
    for name, others in found.items():
        if name not in topics:
            raise AttributesError(
                f"found the retired topic '{name}', which is not in the ontology; expected a topic "
                "of the ontology"
            )
        for other in sorted(set(others) - (topics.keys() - found.keys())):
            raise AttributesError(
                f"found '{other}' as a replacement of the retired topic '{name}', expected a topic "
                "of the ontology that is not retired"
            )
    for child, parents in topics.items():
        if not found.keys().isdisjoint(parents):
            raise AttributesError(
                f"found the topic '{child}' under a retired topic, expected no topic there"
            )
    return found


def _describe_cycle(way: list[str], back: str) -> str:
    """Describe the cycle in a path that has returned to one of its own topics."""
    names = [*way[way.index(back) :], back]
    if len(names) == 2:
        return f"'{back}' lies under itself"
    if len(names) > LONGEST:
        names[LONGEST - 2 : -1] = ["…"]
    first, *others = (name if name == "…" else f"'{name}'" for name in names)
    return f"{first} lies under {', which lies under '.join(others)}"
