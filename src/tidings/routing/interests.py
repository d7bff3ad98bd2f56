"""What a rendezvous point knows of its preprocessor: interests and notifications become nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from tidings.model import TidingsError
from tidings.routing.label_graph import Label


class Placed(msgspec.Struct, frozen=True):
    """A node and its place in the content graph; and the new places of others, where it showed
    that they are the same as it is."""

    node: int
    parents: Label
    children: Label
    also: tuple[Placed, ...] = ()


class TooMuchWork(TidingsError):
    """Finding the filters of a notification takes too long, because of those of some nodes."""

    def __init__(self, sentence: str, nodes: Mapping[int, int]) -> None:
        """`nodes`: how much of the work is due to each."""
        super().__init__(sentence)
        self.nodes = nodes


class Interests(Protocol):
    """The preprocessor of a channel: interests and notifications to nodes."""

    def place(self, interest: bytes) -> Placed:
        """The node of an interest, made where there is none; TidingsError where it is refused."""

    def tag(self, content: bytes) -> Iterable[int]:
        """The lowest nodes that match a notification; TidingsError where it is refused,
        TooMuchWork where that is due to the filters of some nodes."""

    def remove(self, node: int) -> None:
        """Nobody wants a node any more."""

    def set_aside(self, nodes: Iterable[int]) -> None:
        """Nothing is tagged with these any more; they are removed later, or brought back."""

    def bring_back(self, node: int) -> None:
        """A node that was set aside counts again."""

    def look_up(self, interest: bytes) -> tuple[bytes, int | None]:
        """The identity of an interest, and its node if there is one; TidingsError where it is
        refused."""

    def identity(self, node: int) -> bytes:
        """That of the interest of a node."""
