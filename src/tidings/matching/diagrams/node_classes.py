"""Classes and groups: all diagrams of a plan, joined at nodes with equal knowledge.

    class    the nodes and leaves, of any units, at which the same facts about the event are known
    group    the nodes of a class that have the same test: they wait together, and move together to
             one class for each outcome

Nodes with equal knowledge imply each other, so they can move as one. Processing a group takes one
step, no matter how many filters wait in the group. If a unit has shared nodes, its nodes are not
joined with nodes of other units: what is known at a shared node is only a hull, which does not
prove that the node is reached.
"""

from __future__ import annotations

from heapq import heappop, heappush

import msgspec

from tidings.matching.diagrams.planning.numbered_conditions import (
    Condition,
    Reducer,
    first_test,
    share_nodes,
)
from tidings.matching.diagrams.planning.plan import DiagramPlan

Knowledge = tuple[tuple[int, int], ...]  # (term, mask of codes), sorted
NONE = -1


class Class(msgspec.Struct):
    known: Knowledge
    exact: bool  # whether the class is reached if and only if `known` holds
    test: int  # the first test that leads to the class; NONE for the root
    groups: list[int] = []
    leaves: list[tuple[int, bool]] = []  # (unit, result) of the units that are decided here


class UnitGroup(msgspec.Struct):
    test: int
    owner: int  # the class
    high: int = NONE
    low: int = NONE
    units: list[int] = []  # the units that wait in the group


class Classes(msgspec.Struct):
    classes: list[Class]
    groups: list[UnitGroup]


def build_classes(plan: DiagramPlan, *, join: bool = True) -> Classes:
    """Join the diagrams of a plan. If `join` is false, each unit keeps its own nodes."""
    builder = _Builder(plan, join)
    builder.run()
    return Classes(builder.classes, builder.groups)


class _Builder:
    def __init__(self, plan: DiagramPlan, join: bool) -> None:
        self._plan = plan
        self._tests = plan.tests
        self._join = join
        self._reducer = Reducer(plan.tests)
        self.classes: list[Class] = [Class((), True, NONE)]
        self.groups: list[UnitGroup] = []
        self._by_knowledge: dict[tuple[Knowledge, int], int] = {}
        self._open: dict[tuple[int, int, int], int] = {}  # groups by (class, test, unit)
        self._members: list[list[tuple[int, Condition]]] = []
        self._queue: list[tuple[int, int]] = []

    def run(self) -> None:
        for unit, condition in enumerate(self._plan.units):
            if self._plan.are_shared[unit]:
                self._add_shared(unit, condition)
            else:
                self._put(0, unit, condition)
        while self._queue:
            # in the order of tests, so that all groups that lead to a class are split before the
            # class's own groups
            test, group = heappop(self._queue)
            self._split(test, group)

    def _put(self, owner: int, unit: int, left: Condition) -> None:
        """Put a unit into a class, with the remaining condition of the unit."""
        if isinstance(left, bool):
            self.classes[owner].leaves.append((unit, left))
            return
        test = first_test(left)
        key = owner, test, self._key_of_unit(unit)
        group = self._open.get(key)
        if group is None:
            group = self._open[key] = self._new_group(owner, test)
            self._members.append([])
            heappush(self._queue, (test, group))
        self._members[group].append((unit, left))

    def _key_of_unit(self, unit: int) -> int:
        """How a unit appears in a key: NONE if units with equal knowledge are joined, otherwise the
        unit itself."""
        return NONE if self._join else unit

    def _new_group(self, owner: int, test: int) -> int:
        self.groups.append(UnitGroup(test, owner))
        self.classes[owner].groups.append(len(self.groups) - 1)
        return len(self.groups) - 1

    def _split(self, test: int, number: int) -> None:
        group = self.groups[number]
        members, self._members[number] = self._members[number], []
        group.units = [unit for unit, _ in members]
        apart = self._key_of_unit(group.units[0])
        self._open.pop((group.owner, test, apart), None)
        term = self._tests.term_of[test]
        known = dict(self.classes[group.owner].known)
        before = known.get(term, self._tests.full[term])
        for outcome in (True, False):
            after = self._reducer.after(before, test, outcome)
            known[term] = after
            target = self._class_of(tuple(sorted(known.items())), apart, test)
            if outcome:
                group.high = target
            else:
                group.low = target
            for unit, left in members:
                self._put(target, unit, self._reducer.reduce(left, term, after))

    def _class_of(self, known: Knowledge, unit: int, test: int) -> int:
        found = self._by_knowledge.setdefault((known, unit), len(self.classes))
        if found == len(self.classes):
            self.classes.append(Class(known, True, test))
        return found

    def _add_shared(self, unit: int, condition: Condition) -> None:
        nodes = share_nodes(condition, self._reducer, 1 << 60)
        assert nodes is not None, "the plan has built it before"
        places: dict[object, int] = {}
        for at, node in enumerate(nodes):
            if at:
                known = tuple(sorted(node.known.items()))
                places[at] = len(self.classes)
                self.classes.append(Class(known, False, NONE))
        for leaf in (True, False):
            places["leaf", leaf] = len(self.classes)
            self.classes.append(Class((), False, NONE, leaves=[(unit, leaf)]))
        for at, node in enumerate(nodes):
            group = self._new_group(places.get(at, 0), node.test)
            self.groups[group].units = [unit]
            self._members.append([])
            for outcome, branch in ((True, node.high), (False, node.low)):
                key = ("leaf", branch) if isinstance(branch, bool) else branch
                target = places[key]
                if self.classes[target].test == NONE:
                    self.classes[target].test = node.test
                if outcome:
                    self.groups[group].high = target
                else:
                    self.groups[group].low = target
