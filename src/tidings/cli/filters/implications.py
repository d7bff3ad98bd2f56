"""Shows which tests were evaluated for an event and which were inferred, and prints diagrams."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from tidings import Filter
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.screen import count_of, emit, plain_text, show, table
from tidings.filters.canonical import AllOf, Node, Test, express_test, tree_of
from tidings.filters.language import Expression, term_value, text_of
from tidings.filters.values import key
from tidings.matching.diagrams import Decision, Frontier, ImplicationGraph, graph_of

MOST = 200  # the most filters whose implications are shown


class FilterDiagrams:
    """The diagrams of some filters by id, and the texts of their tests."""

    def __init__(self, filters: Sequence[tuple[Hashable, Filter]], where: str) -> None:
        if len(filters) > MOST:
            raise BadInput(f"{where}: found {len(filters):,} filters, expected at most {MOST}")
        self.trees: dict[Hashable, Node] = {id_: tree_of(one.form) for id_, one in filters}
        self.terms: dict[str, Expression] = {}
        for _, one in filters:
            self.terms.update(one.form.terms)
        self.graph: ImplicationGraph = graph_of(self.trees)

    def text(self, test: Test) -> str:
        return text_of(express_test(self.terms[test.term], test.values))

    def run(self, event: Mapping[str, Any]) -> tuple[Frontier, dict[Hashable, bool]]:
        """Evaluate the filters on an event. If a filter was split into parts, the results of its
        parts are combined."""
        values = {text: key(term_value(node, event)) for text, node in self.terms.items()}
        frontier = Frontier(self.graph, values)
        results: dict[Hashable, bool] = {}
        for owner, result in frontier.run():
            name = name_of(owner)
            if name not in results or owner == name:
                results[name] = result
            elif isinstance(self.trees[name], AllOf):
                results[name] = results[name] and result
            else:
                results[name] = results[name] or result
        return frontier, results


def name_of(owner: Hashable) -> Hashable:
    """The id of the filter to which a diagram belongs; the owner of a split filter's part is a pair
    (id, number)."""
    return owner[0] if isinstance(owner, tuple) else owner


def show_implications(
    filters: Sequence[tuple[Hashable, Filter]], event: Mapping[str, Any], where: str, json: bool
) -> None:
    """Print which tests were evaluated and which were inferred, for all filters on one event."""
    diagrams = FilterDiagrams(filters, where)
    frontier, results = diagrams.run(event)
    by_test: dict[Test, list[Hashable]] = {test: [] for test in frontier.outcomes}
    for step in frontier.steps:
        if step.by is None and name_of(step.owner) not in by_test[step.test]:
            by_test[step.test].append(name_of(step.owner))
    evaluated = [(test, frontier.outcomes[test], owners) for test, owners in by_test.items()]
    if json:
        emit(
            {
                "results": [{"id": id_, "matched": result} for id_, result in results.items()],
                "evaluated": [
                    {"test": diagrams.text(test), "outcome": outcome, "filters": owners}
                    for test, outcome, owners in evaluated
                ],
                "inferred": [
                    {"test": diagrams.text(step.test), "outcome": step.outcome,
                     "filter": name_of(step.owner), "from": name_of(step.by)}
                    for step in frontier.inferred
                ],
                "node_steps": frontier.node_steps,
            }
        )  # fmt: skip
        return
    rows = [
        ("evaluated", diagrams.text(test), _outcome(outcome), ", ".join(map(str, owners)), "")
        for test, outcome, owners in evaluated
    ]
    rows += [
        ("inferred", diagrams.text(step.test), _outcome(step.outcome),
         str(name_of(step.owner)), str(name_of(step.by)))
        for step in frontier.inferred
    ]  # fmt: skip
    show(table(["", "test", "outcome", "filters", "from"], rows), "")
    matched = [str(id_) for id_, result in results.items() if result]
    counts = f"{count_of(len(evaluated), 'test')} evaluated, {len(frontier.inferred)} inferred"
    show(plain_text(f"{counts}; matches: {', '.join(matched) or 'none'}"))


def _outcome(outcome: bool | None) -> Text:
    return Text("?") if outcome is None else Text("true" if outcome else "false")


def show_diagrams(filters: Sequence[tuple[Hashable, Filter]], where: str, json: bool) -> None:
    """Print the diagrams of filters, and the implication edges between them."""
    diagrams = FilterDiagrams(filters, where)
    numbers = number_nodes(diagrams.graph)
    edges = list(list_edges(diagrams.graph))
    if json:
        for root in diagrams.graph.roots.values():
            for node in root.walk():
                emit(_node_row(node, numbers, diagrams))
        for source, target in edges:
            emit({"from": numbers[id(source)], "to": numbers[id(target)]})
        return
    for owner, root in diagrams.graph.roots.items():
        show(plain_text(f"filter {owner}", "bold"))
        rows = [
            (numbers[id(node)], _label(node, diagrams), _place(node.high, numbers),
             _place(node.low, numbers))
            for node in root.walk()
        ]  # fmt: skip
        show(table(["node#", "test", "if true#", "if false#"], rows), "")
    implied = [
        (numbers[id(source)], numbers[id(target)],
         f"{_label(source, diagrams)}  ->  {_label(target, diagrams)}")
        for source, target in edges
    ]  # fmt: skip
    show(
        table(["from#", "to#", "implication"], implied)
        if implied
        else plain_text("no implications")
    )


def number_nodes(graph: ImplicationGraph) -> dict[int, int]:
    """Numbers for all nodes, starting at 1."""
    nodes = [node for root in graph.roots.values() for node in root.walk()]
    return {id(node): number for number, node in enumerate(nodes, 1)}


def list_edges(graph: ImplicationGraph) -> Iterator[tuple[Decision, Decision]]:
    """All edges of the graph. From each node, edges lead to the other members of its class, and to
    the targets of the edges of its class."""
    for root in graph.roots.values():
        for node in root.walk():
            if node.parent is not None:
                for target in graph.targets_of(node):
                    yield node, target


def _label(node: Decision, diagrams: FilterDiagrams) -> str:
    if node.test is None:
        return "matches" if node.value else "does not match"
    return diagrams.text(node.test)


def _place(node: Decision | None, numbers: Mapping[int, int]) -> str:
    return "" if node is None else str(numbers[id(node)])


def _node_row(
    node: Decision, numbers: Mapping[int, int], diagrams: FilterDiagrams
) -> dict[str, Any]:
    row: dict[str, Any] = {"node": numbers[id(node)], "filter": node.owner}
    if node.test is None or node.high is None or node.low is None:
        return {**row, "result": node.value}
    return {
        **row,
        "test": diagrams.text(node.test),
        "high": numbers[id(node.high)],
        "low": numbers[id(node.low)],
    }
