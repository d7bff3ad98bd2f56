"""Draws graphs as trees in the terminal. The part of a graph below a node is drawn only once."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from rich.tree import Tree

from tidings.cli.common.screen import count_of, cut, plain_text, show

BRANCHES, LEVELS = 8, 4  # the most branches and levels that are drawn without --all
DEEPEST = 10  # levels of one tree; deeper nodes are drawn as separate trees


def show_trees(
    title: str,
    roots: list[int],
    below: Callable[[int], list[int]],
    line: Callable[[int], tuple[int, str, str]],
    every: bool = False,
) -> None:
    """Draw a graph from its roots; with `every`, draw the whole graph. `below` returns the children
    of a node; `line` returns the number and text of a node, and a suffix."""
    drawing = _Drawing(below, line, every)
    show(drawing.tree(title, roots))
    while drawing.later:
        place = next(iter(drawing.later))
        del drawing.later[place]
        show("", drawing.tree(f"below node {line(place)[0]}", below(place)))


class _Drawing:
    """Builds trees without recursion, because a path may be as long as the graph has nodes. A tree
    ends at level DEEPEST, because deeper lines would not fit on the screen."""

    def __init__(
        self,
        below: Callable[[int], list[int]],
        line: Callable[[int], tuple[int, str, str]],
        every: bool,
    ) -> None:
        self.later: dict[int, None] = {}
        """Nodes whose children are yet to be drawn as separate trees, in order."""
        self._below, self._line = below, line
        self._most = None if every else BRANCHES
        self._drawn: set[int] = set()

    def tree(self, title: str, places: list[int]) -> Tree:
        top = Tree(plain_text(title, "bold"), guide_style="dim")
        growing = [(top, iter(places[: self._most]), len(places))]
        while growing:
            tree, left, count = growing[-1]
            place = next(left, None)
            if place is not None:
                branch = tree.add(self._text(place))
                children = self._below(place)
                note = self._note(place, len(children), len(growing))
                if note:
                    branch.add(plain_text(note, "dim"))
                elif children:
                    growing.append((branch, iter(children[: self._most]), len(children)))
                continue
            growing.pop()
            if self._most is not None and count > self._most:
                tree.add(plain_text(f"and {count - self._most:,} more (--all shows them)", "dim"))
        return top

    def _text(self, place: int) -> Text:
        number, said, behind = self._line(place)
        text = plain_text(f"{number}  ", "dim")
        text.append_text(plain_text(cut(said, 120), "default"))
        return text.append(f"  ({behind})", "dim")

    def _note(self, place: int, children: int, level: int) -> str:
        """The text that replaces a node's children if they are not drawn here."""
        if not children:
            return ""
        if place in self._drawn:
            return "further below" if place in self.later else "as above"
        if self._most is not None and level == LEVELS:
            return f"{count_of(children, 'node')} below (--all shows them)"
        self._drawn.add(place)
        if level < DEEPEST:
            return ""
        self.later[place] = None
        return "further below"
