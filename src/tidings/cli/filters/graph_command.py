"""`tidings graph`: shows which filters of a file cover which others, as a table, a tree or a
picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated

import typer

from tidings import ContentGraph, Filter
from tidings.cli.common import input_files, options
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.declared_types import read_types
from tidings.cli.common.screen import MOST_ROWS, count_of, emit, say, show, show_rest, table, track
from tidings.cli.common.subscription_files import (
    FileSubscription,
    note_odd,
    parse_all,
    read_subscriptions,
)
from tidings.cli.common.text_trees import show_trees
from tidings.graph import layers_of

MANY = 5_000  # if there are more filters than this, the graph is built in bulk
MOST_IDS = 20  # ids shown at a node of the picture


def show_graph(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The filters.", hidden=True)],
    svg: Annotated[
        str | None,
        typer.Option(
            "--svg",
            metavar="FILE",
            help="Write an SVG picture; - is standard output.",
            show_default=False,
        ),
    ] = None,
    bdd: Annotated[
        bool,
        typer.Option(
            "--bdd", help="Show the decision diagrams of the filters, with their implications."
        ),
    ] = False,
    filters_format: options.FiltersFormat = None,
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = options.DEFAULT_DIALECT,
    every: options.All = False,
    json: options.Json = False,
) -> int:
    """Show which filters of a file cover which others.

    FILE has the format that `tidings match --filters` reads. A node is one distinct filter,
    however many subscriptions it has. The depth of a node is the length of the longest path to it
    from a filter that no other filter covers.

    With --svg, the command draws a picture in layers: boxes with the beginning of each filter, or
    dots if there are many filters. Hover over a box or a dot to read its filter.

    Notes on stderr name filters that can never match or always match. A filter that can never match
    is covered by every other filter.

    With --bdd, the command shows the decision diagrams of the filters (at most 200), and the
    implications between their nodes: if the evaluation of one filter reaches the first node of an
    implication, the evaluation of the other filter reaches the second node.

    With --json, one line per node: node, filter, ids, depth, parents, children, never (true if it
    can never match). With --bdd, each line has node, filter, and either test, high and low, or
    result; then one line per implication follows: from, to.

    Exit code: 0, or 2 on bad input.
    """
    if json and svg == input_files.STDOUT:
        raise BadInput(
            "`--json` and `--svg -` both write to standard output; name a file for `--svg`"
        )
    declared = read_types(types, others)
    listed = track(read_subscriptions(file, filters_format), "reading filters")
    parsed = parse_all(listed, dialect, declared)
    note_odd(parsed)
    filters = [filter_ for _, filter_ in parsed]
    if bdd:
        return _show_bdd([(one.id, filter_) for one, filter_ in parsed], file, svg, json)
    if len(filters) > MANY:
        graph = ContentGraph.build(track(filters, "comparing", len(filters)))
    else:
        graph = ContentGraph(track(filters, "comparing", len(filters)))
    asking: dict[int, list[FileSubscription]] = {node.id: [] for node in graph}
    for one, filter_ in parsed:
        node = graph.node(filter_)
        assert node is not None
        asking[node.id].append(one)
    seen = _GraphView(graph, asking)
    if svg is not None:
        from tidings.graph import draw

        picture = draw(
            graph, Path(input_files.name_of(file)).name, lambda node: _list_ids(asking[node.id])
        )
        if svg == input_files.STDOUT:
            print(picture, end="")
            return 0
        _write(picture, svg, file)
    if json:
        seen.emit()
    elif svg is None:
        seen.show(every)
    else:
        say(f"{svg}: {seen.counts}")
    return 0


def _show_bdd(
    filters: list[tuple[Hashable, Filter]], file: str, svg: str | None, json: bool
) -> int:
    from tidings.cli.filters.diagram_picture import draw_diagrams
    from tidings.cli.filters.implications import FilterDiagrams, show_diagrams

    if svg is not None:
        picture = draw_diagrams(FilterDiagrams(filters, file))
        if svg == input_files.STDOUT:
            print(picture, end="")
            return 0
        _write(picture, svg, file)
    if svg is None or json:
        show_diagrams(filters, file, json)
    return 0


def _write(picture: str, svg: str, filters: str) -> None:
    path = Path(svg)
    if filters != input_files.STDIN and path.exists() and path.samefile(filters):
        raise BadInput(f"{svg}: this is the file of filters, expected another file for the picture")
    try:
        path.write_text(picture, "utf-8")
    except OSError as problem:
        raise BadInput(f"{svg}: the picture can't be written: {problem.strerror}") from None


class _GraphView:
    """Prints a graph: a table and trees for people, JSON lines for programs."""

    def __init__(self, graph: ContentGraph, asking: dict[int, list[FileSubscription]]) -> None:
        self._graph, self._asking = graph, asking
        self._nodes = list(graph)
        self._place = {node.id: place for place, node in enumerate(self._nodes)}
        self._below = [[self._place[c.id] for c in graph.children(n)] for n in self._nodes]
        self._layers = layers_of(self._below)

    @property
    def counts(self) -> str:
        edges = sum(map(len, self._below))
        nodes = count_of(len(self._nodes), "node")
        return f"{nodes}, {count_of(edges, 'edge')}, depth {max(self._layers)}"

    def emit(self) -> None:
        for place, node in enumerate(self._nodes):
            emit(
                {
                    "node": node.id,
                    "filter": node.filter.sql(),
                    "ids": [one.id for one in self._asking[node.id]],
                    "depth": self._layers[place],
                    "parents": [parent.id for parent in self._graph.parents(node)],
                    "children": [self._nodes[child].id for child in self._below[place]],
                    "never": node.filter.never,
                }
            )

    def show(self, every: bool) -> None:
        nodes = Counter(self._layers)
        asked: Counter[int] = Counter()
        down: Counter[int] = Counter()
        for place, layer in enumerate(self._layers):
            asked[layer] += len(self._asking[self._nodes[place].id])
            down[layer] += len(self._below[place])
        rows = [(d, f"{nodes[d]:,}", f"{asked[d]:,}", f"{down[d]:,}") for d in sorted(nodes)]
        shown = rows if every else rows[:MOST_ROWS]
        show(table(["depth#", "nodes#", "subscriptions#", "edges down#"], shown), "")
        show_rest(len(rows) - len(shown), "more layer")
        above = {child for below in self._below for child in below}
        roots = [place for place in range(len(self._nodes)) if place not in above]
        roots.sort(key=lambda place: -len(self._below[place]))
        show_trees(self.counts, roots, self._below.__getitem__, self._line, every)

    def _line(self, place: int) -> tuple[int, str, str]:
        node = self._nodes[place]
        return node.id, node.filter.sql(), f"{len(self._asking[node.id]):,}"


def _list_ids(subscriptions: list[FileSubscription]) -> str:
    ids = ", ".join(str(one.id) for one in subscriptions[:MOST_IDS])
    rest = len(subscriptions) - MOST_IDS
    return f"id {ids}" + (f" and {rest:,} more" if rest > 0 else "")
