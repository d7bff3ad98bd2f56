"""Draws the content graph of a snapshot as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.cli.common.screen import count_of
from tidings.cli.common.text_trees import show_trees

if TYPE_CHECKING:
    from tidings.snapshots import Shape, Snapshot


def show_tree(opened: Snapshot, shape: Shape, every: bool = False) -> None:
    """Draw the graph of a snapshot from its roots; with `every`, draw the whole graph."""
    stats = opened.stats()
    title = (
        f"{count_of(stats['nodes'], 'node')}, {count_of(stats['subscriptions'], 'subscription')}"
    )

    def below(place: int) -> list[int]:
        found: list[int] = shape.children(place).tolist()
        return found

    def line(place: int) -> tuple[int, str, str]:
        text = opened.matcher.filter(place).sql()
        return int(shape.numbers[place]), text, f"{shape.members[place]:,}"

    show_trees(title, shape.rank(shape.roots).tolist(), below, line, every)
