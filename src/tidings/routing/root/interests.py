"""What a rendezvous point knows of its preprocessor: interests and notifications become nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from tidings.model import TidingsError
from tidings.routing.forwarding.label_graph import Label


class Placed(msgspec.Struct, frozen=True):
    """A node and its place in the content graph; and the new places of others, where it showed
    that they are the same as it is."""

    node: int
    parents: Label
    children: Label
    also: tuple[Placed, ...] = ()


class TooMuchWork(TidingsError):
    """Finding the filters of a notification takes longer than is usual."""


class Fair(msgspec.Struct, frozen=True):
    """What was found of a notification where each owner pays for its own filters."""

    nodes: list[int]  # the lowest that match, as far as they were computed
    over: dict[int, str]  # those that were not, and whose share they would be beyond


class Interests(Protocol):
    """The preprocessor of a channel: interests and notifications to nodes."""

    def place(self, interest: bytes) -> Placed:
        """The node of an interest, made where there is none; TidingsError where it is refused."""

    def tag(self, content: bytes) -> Iterable[int]:
        """The lowest nodes that match a notification; TidingsError where it is refused,
        TooMuchWork where it must be found out whose filters take so long."""

    def tag_fairly(self, content: bytes, owners: Callable[[int], Sequence[str]]) -> Fair:
        """The same, with no owner's filters taking longer than a share; TidingsError where it is
        refused. `owners` has those of a node."""

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
