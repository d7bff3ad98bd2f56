"""The content graph of a snapshot, drawn as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.tree import Tree

from tidings.cli.screen import counted, cut, plain, show

if TYPE_CHECKING:
    from tidings.snapshots import Snapshot
    from tidings.snapshots.shape import Shape

BRANCHES, LEVELS = 8, 4  # that are drawn


def show_tree(opened: Snapshot, shape: Shape, every: bool = False) -> None:
    """Draw the graph of a snapshot from its top; the whole of it with `every`."""
    most = None if every else BRANCHES
    stats = opened.stats()
    title = f"{counted(stats['nodes'], 'node')}, {counted(stats['subscriptions'], 'subscription')}"
    top = Tree(plain(title, "bold"), guide_style="dim")
    drawn: set[int] = set()

    def grow(tree: Tree, places: list[int], level: int) -> None:
        for place in places[:most]:
            text = plain(f"{shape.numbers[place]}  ", "dim")
            text.append_text(plain(cut(opened.matcher.filter(place).sql(), 120), "default"))
            text.append(f"  ({shape.members[place]:,})", "dim")
            branch = tree.add(text)
            below = shape.children(place).tolist()
            if place in drawn and below:
                branch.add(plain("as above", "dim"))
            elif most is not None and level == LEVELS and below:
                branch.add(plain(f"{counted(len(below), 'node')} below (--all shows them)", "dim"))
            else:
                drawn.add(place)
                grow(branch, below, level + 1)
        if most is not None and len(places) > most:
            tree.add(plain(f"and {len(places) - most:,} more (--all shows them)", "dim"))

    grow(top, shape.ranked(shape.roots).tolist(), 1)
    show(top)
