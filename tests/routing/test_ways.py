"""In every mode of forwarding, each neighbour gets the notifications that it wants, with its
node."""

from __future__ import annotations

import random

import pytest
from tests.routing.test_label_graph import Sets, put, random_sets

from tidings.routing.forwarding.label_graph import LabelGraph
from tidings.routing.forwarding.ways import Forwarding, Labels, Mode, Way, first_label, ways_of
from tidings.routing.protocol import messages as m

MODES = {
    "labels": Forwarding(Mode.LABELS),
    "lists": Forwarding(Mode.LISTS),
    "bytes are cheap": Forwarding(Mode.ADAPTIVE, rewrite=1000, byte=1),
    "bytes are dear": Forwarding(Mode.ADAPTIVE, rewrite=10, byte=1),
    "nothing pays": Forwarding(Mode.ADAPTIVE, rewrite=0, byte=1),
}


class Tree:
    """Routers, and subscribers at the last of them, by names such as "ab": beneath "a"."""

    def __init__(self, chance: random.Random, sets: Sets) -> None:
        self.sets = sets
        self.wanted: dict[str, set[int]] = {}
        for name in ("aa", "ab", "ac", "ba", "bb"):
            count = chance.randrange(len(sets) + 1)
            self.wanted[name] = set(chance.sample(sorted(sets), count))
        self.graphs = {name: self._grown(name) for name in ("", "a", "b")}

    def _grown(self, router: str) -> LabelGraph[str]:
        graph: LabelGraph[str] = LabelGraph()
        beneath = {name: nodes for name, nodes in self.wanted.items() if name.startswith(router)}
        for node in sorted(self.sets if not router else set().union(*beneath.values())):
            put(graph, self.sets, node)
        for name, nodes in beneath.items():
            for node in nodes:
                graph.subscribe(node, name[: len(router) + 1])
        return graph

    def told(self, lowest: set[int], forwarding: list[Forwarding]) -> dict[str, Labels]:
        """What arrives at subscribers, after the root and after another router."""
        found = {}
        labels = tuple(first_label(self.graphs[""], node, forwarding[0]) for node in lowest)
        for router, first in ways_of(self.graphs[""], labels, forwarding[0]).items():
            second = ways_of(self.graphs[router], first.labels, forwarding[1])
            found.update({name: way.labels for name, way in second.items()})
        return found


@pytest.mark.parametrize("above", MODES)
@pytest.mark.parametrize("below", MODES)
def test_two_routers_one_after_the_other(seed: int, above: str, below: str) -> None:
    chance = random.Random(seed)
    for _ in range(12):
        sets = random_sets(chance, chance.randrange(2, 25), points=6)
        tree = Tree(chance, sets)
        for point in range(6):
            matched = {node for node, points in sets.items() if point in points}
            lowest = {a for a in matched if not any(sets[a] > sets[b] for b in matched)}
            told = tree.told(lowest, [MODES[above], MODES[below]])
            expected = {name for name, nodes in tree.wanted.items() if nodes & matched}
            assert set(told) == expected
            for name, got in told.items():
                found = {node for label in got for node in label}
                wanted = tree.wanted[name] & matched
                least = {a for a in wanted if not any(sets[a] > sets[b] for b in wanted)}
                assert least <= found <= matched
                if MODES[below].mode is Mode.LABELS:
                    assert not any(sets[a] > sets[b] for one in got for a in one for b in one)


def chain(depth: int) -> LabelGraph[str]:
    graph: LabelGraph[str] = LabelGraph()
    for node in range(1, depth + 1):
        graph.insert(node, [node - 1] if node > 1 else [], [])
        graph.subscribe(node, "F")
    graph.insert(100, (), ())
    graph.subscribe(100, "G")
    return graph


def test_each_choice() -> None:
    graph = chain(3)
    labels = ((3,), (100,))
    as_it_is, anew, listed = Way(None, labels), Way((0,), ((3,),)), Way((0,), ((1, 2, 3),))
    assert ways_of(graph, labels, MODES["labels"])["F"] == anew
    assert ways_of(graph, labels, MODES["lists"])["F"] == listed  # F wants 1 and 2 as well
    assert ways_of(graph, labels, MODES["nothing pays"])["F"] == anew
    assert ways_of(graph, labels, MODES["bytes are dear"])["F"] == anew  # 16 bytes more
    assert ways_of(graph, labels, MODES["bytes are cheap"])["F"] == listed
    assert ways_of(graph, labels, MODES["bytes are cheap"])["G"] == as_it_is
    assert ways_of(graph, labels, MODES["bytes are dear"])["G"] == Way((1,), ((100,),))


def test_a_deep_graph_has_no_lists() -> None:
    assert ways_of(chain(65), ((65,),), MODES["lists"])["F"].labels == ((65,),)
    deep = ways_of(chain(65), ((65,), (100,)), MODES["lists"])
    assert deep["F"] == Way((0,), ((65,),))


def test_the_first_label() -> None:
    graph = chain(3)
    graph.insert(4, [3], [])  # nobody subscribes to it
    assert first_label(graph, 4, MODES["labels"]) == (4,)
    assert first_label(graph, 4, MODES["lists"]) == (1, 2, 3, 4)
    assert first_label(graph, 4, MODES["bytes are cheap"]) == (1, 2, 3, 4)
    assert first_label(graph, 4, MODES["bytes are dear"]) == (4,)
    assert first_label(chain(65), 65, MODES["lists"]) == (65,)


def test_who_is_alone() -> None:
    graph: LabelGraph[str] = LabelGraph()
    assert graph.sole_neighbour() is None
    for node in (1, 2):
        graph.insert(node, (), ())
    graph.subscribe(1, "F")
    assert graph.sole_neighbour() is None  # what matches 2 is for nobody
    graph.subscribe(2, "F")
    assert graph.sole_neighbour() == "F"
    graph.subscribe(2, "G")
    assert graph.sole_neighbour() is None
    graph.unsubscribe(2, "G")
    assert graph.sole_neighbour() == "F"
    graph.unsubscribe(1, "F")
    graph.unsubscribe(2, "F")
    assert graph.sole_neighbour() is None


def test_marks_that_are_left_out() -> None:
    marks = tuple(m.Mark(node, 5, (node,)) for node in (1, 2, 3))
    message = m.Notification(1, 9, marks, b"x")
    assert Way(None, ()).of(message) is message
    changed = Way((0, 2), ((7, 8), (3,))).of(message)
    assert changed.marks == (m.Mark(1, 5, (7, 8)), m.Mark(3, 5, (3,)))
    assert changed.payload == b"x"
