"""How subscribers move from one meaning of their interest to the next when a channel is revised.

    serial            ... 60 │ 61 ...
    node of `mlb`          4 │ 17        4 is gone, and its step leads to 17
    due                    4 and the     17 and the nodes below it now, from the numbers on
                           nodes below   that they had at 60: `begins`
                           it, up to the numbers at 60: `ends`

A revision happens between two lives, when all writes are on the disk. So the counts at the serial
of the revision are known. Up to that serial, each subscriber gets the notifications that match the
old meaning of its interest; after that serial, those that match the new meaning. The history keeps
the steps, and the cursors of named subscriptions keep theirs.

Cost: for each replaced node, an entry for each node below it that has received notifications. If
there are too many entries, the largest steps are left out; the subscribers of these nodes start
over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tidings.model import GraphError
from tidings.routing.forwarding.label_graph import LabelGraph
from tidings.routing.forwarding.neighbours import Name
from tidings.routing.protocol import messages as m
from tidings.routing.root.interests import Placed, Places
from tidings.routing.root.journal import Memory
from tidings.routing.root.node_history import History, RemovedNode

MOST_CARRIED = 200_000  # the most entries that all steps of one revision may have


def make_steps(
    replaced: Mapping[int, int],
    before: LabelGraph[Name],
    after: LabelGraph[Name],
    memory: Memory,
    equal_to: Callable[[int], Iterable[int]],
    alike: Callable[[int], Iterable[int]],
    most: int = MOST_CARRIED,
) -> dict[int, m.Step]:
    """The steps from replaced nodes to the nodes that subscribers get instead.

    `replaced` maps old numbers to new ones. `after` is the graph that results from the new meaning,
    with the old numbers. `equal_to` returns all nodes with the same interest as a node of that
    graph; of these, subscribers get the one with the lowest number. `alike` returns all nodes with
    the same meaning; their interests may differ. `memory` has the counts at the revision.
    """
    counts, ended = memory.counts, _find_ended(replaced, before, memory.history.gone)
    found: dict[int, m.Step] = {}
    for old in replaced:
        if old not in before:  # the previous meaning is not known
            continue
        node, source = min((replaced.get(one, one), one) for one in equal_to(old))
        below, now_below = before.descendants(old) | {old}, after.descendants(source) | {source}
        # among nodes with the same meaning, higher numbers lie above lower ones, so a new node lies
        # above all nodes that stay
        stay = {one for one in alike(source) if one not in replaced} if source in replaced else ()
        if stay:
            now_below |= after.descendants(max(stay)) | stay
        gone = {one: memory.history.gone[one] for one in ended.get(old, ())}
        ends = {one: counts[one] for one in below if one in counts}
        ends |= {number: one.count for number, one in gone.items()}
        begins = {one: counts[one] for one in now_below if one in counts and one not in replaced}
        total = 0 if source in replaced else memory.totals.get(source, 0)
        found[old] = m.Step(
            memory.serial, node, memory.totals.get(old, 0), total, ends, begins,
            {number: one.latest for number, one in gone.items()},
        )  # fmt: skip
    room = most
    for old, step in sorted(found.items(), key=lambda one: one[1].size):
        room -= step.size
        if room < 0:
            del found[old]
    return found


def _find_ended(
    nodes: Mapping[int, int], graph: LabelGraph[Name], gone: Mapping[int, RemovedNode]
) -> dict[int, list[int]]:
    """The removed nodes that had notifications, by the nodes that covered them."""
    found: dict[int, list[int]] = {}
    for number, one in gone.items():
        if one.count:
            for above in lay_above(one, gone, graph) & nodes.keys():
                found.setdefault(above, []).append(number)
    return found


def lay_above(
    removed: RemovedNode, gone: Mapping[int, RemovedNode], graph: LabelGraph[Name]
) -> set[int]:
    """The nodes that covered a removed node, including nodes that were also removed. A node whose
    number is higher than the version of the removal began after the removal, so it never covered
    the removed node; but nodes above it may have covered that node."""
    found: set[int] = set()
    todo = [*removed.above]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            if node in gone:
                todo += gone[node].above
            elif node in graph:
                todo += graph.parents(node)
    return {node for node in found if node < removed.version}


def find_steps(history: History, was: int, node: int) -> m.Steps:
    """The steps from a replaced node to another node; empty if no steps lead there."""
    found: list[m.Step] = []
    while was != node:
        gone = history.gone.get(was)
        if gone is None or gone.step is None or len(found) == m.MOST_STEPS:
            return ()
        found.append(gone.step)
        was = gone.step.node
    return tuple(found)


def load_graph(placed: Sequence[Placed], history: History | None = None) -> LabelGraph[Name]:
    """The graph of a rendezvous point with these nodes; with a history, also with the edges that
    only removed nodes proved."""
    graph, places = LabelGraph[Name](), Places.of(placed)
    graph.load(places.numbers, places.starts, places.parents)
    if history is not None:
        recall_coverings(graph, history, {})
    return graph


def recall_coverings(graph: LabelGraph[Name], history: History, equal: dict[int, set[int]]) -> None:
    """Restore the edges and equalities that only removed nodes proved: the nodes above a removed
    node cover the nodes below it, and the nodes equal to it are equal to each other. Tags that were
    made with older versions rely on these edges and equalities. Removals from before the last
    change to how filters are interpreted prove nothing any more, and tags from that time are not
    used.
    """
    for gone in history.gone.values():
        if gone.version <= history.renewed:
            continue
        same = {one for one in history.stands_for(gone.equal) if one in graph}
        for one in same if len(same) > 1 else ():
            equal.setdefault(one, set()).update(same)
        if not gone.below:
            continue
        above = {one for one in history.stands_for(gone.above) if one in graph}
        below = {one for one in history.lay_below(gone.below) if one in graph} - above
        for one in sorted(above):
            for other in sorted(below):
                try:
                    graph.insert(one, (), (other,))
                except GraphError:  # each covers the other
                    equal.setdefault(one, {one}).add(other)
                    equal.setdefault(other, {other}).add(one)
