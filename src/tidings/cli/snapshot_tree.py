"""The content graph of a snapshot, drawn as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from rich.tree import Tree

from tidings.cli.screen import counted, cut, plain, show

if TYPE_CHECKING:
    from tidings.snapshots import Snapshot
    from tidings.snapshots.shape import Shape

BRANCHES, LEVELS = 8, 4  # that are drawn
DEEPEST = 10  # levels of one tree: what is further down is drawn as a tree of its own


def show_tree(opened: Snapshot, shape: Shape, every: bool = False) -> None:
    """Draw the graph of a snapshot from its top; the whole of it with `every`."""
    stats = opened.stats()
    title = f"{counted(stats['nodes'], 'node')}, {counted(stats['subscriptions'], 'subscription')}"
    drawing = _Drawing(opened, shape, every)
    show(drawing.tree(title, shape.ranked(shape.roots).tolist()))
    while drawing.later:
        place = next(iter(drawing.later))
        del drawing.later[place]
        show("", drawing.tree(f"below node {shape.numbers[place]}", drawing.below(place)))


class _Drawing:
    """Trees of a graph, in which each node is drawn with what it covers once.

    Paths can be as long as there are nodes: trees grow without recursion, and are cut at DEEPEST,
    beyond which there would be no room for a line.
    """

    def __init__(self, opened: Snapshot, shape: Shape, every: bool) -> None:
        self.later: dict[int, None] = {}
        """Nodes whose children are still to be drawn, in a tree of their own; in this order."""
        self._opened, self._shape = opened, shape
        self._most = None if every else BRANCHES
        self._drawn: set[int] = set()

    def below(self, place: int) -> list[int]:
        found: list[int] = self._shape.children(place).tolist()
        return found

    def tree(self, title: str, places: list[int]) -> Tree:
        top = Tree(plain(title, "bold"), guide_style="dim")
        growing = [(top, iter(places[: self._most]), len(places))]
        while growing:
            tree, left, count = growing[-1]
            place = next(left, None)
            if place is not None:
                branch = tree.add(self._line(place))
                children = self.below(place)
                note = self._note(place, len(children), len(growing))
                if note:
                    branch.add(plain(note, "dim"))
                elif children:
                    growing.append((branch, iter(children[: self._most]), len(children)))
                continue
            growing.pop()
            if self._most is not None and count > self._most:
                tree.add(plain(f"and {count - self._most:,} more (--all shows them)", "dim"))
        return top

    def _line(self, place: int) -> Text:
        text = plain(f"{self._shape.numbers[place]}  ", "dim")
        text.append_text(plain(cut(self._opened.matcher.filter(place).sql(), 120), "default"))
        return text.append(f"  ({self._shape.members[place]:,})", "dim")

    def _note(self, place: int, children: int, level: int) -> str:
        """What stands in the place of a node's children, if they are not drawn here."""
        if not children:
            return ""
        if place in self._drawn:
            return "further below" if place in self.later else "as above"
        if self._most is not None and level == LEVELS:
            return f"{counted(children, 'node')} below (--all shows them)"
        self._drawn.add(place)
        if level < DEEPEST:
            return ""
        self.later[place] = None
        return "further below"
