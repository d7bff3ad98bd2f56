"""The interface of a rendezvous point's preprocessor: it finds nodes for interests and events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, overload

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.model import TidingsError
from tidings.routing.forwarding.label_graph import Label

Numbers = npt.NDArray[np.int64]


class Placed(msgspec.Struct, frozen=True):
    """A node and its place in the content graph. `note` says whether it is proven that the interest
    always matches, or never matches; in the latter case, `never` is true."""

    node: int
    parents: Label
    children: Label
    note: str = ""
    never: bool = False


class Places(Sequence[Placed]):
    """Nodes and their parents, but not their children, as columns; each node comes after its
    parents. A caller that has only a few nodes can use this object as a sequence."""

    def __init__(self, numbers: Numbers, starts: Numbers, parents: Numbers) -> None:
        """The parents of numbers[i] are parents[starts[i] : starts[i + 1]]."""
        self.numbers, self.starts, self.parents = numbers, starts, parents

    @classmethod
    def of(cls, placed: Sequence[Placed]) -> Places:
        if isinstance(placed, cls):
            return placed
        numbers = np.fromiter((one.node for one in placed), np.int64, len(placed))
        starts = np.zeros(len(placed) + 1, np.int64)
        np.cumsum([len(one.parents) for one in placed], out=starts[1:])
        above = (parent for one in placed for parent in one.parents)
        return cls(numbers, starts, np.fromiter(above, np.int64, starts[-1]))

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> Placed: ...
    @overload
    def __getitem__(self, at: slice) -> list[Placed]: ...
    def __getitem__(self, at: int | slice) -> Placed | list[Placed]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        parents = self.parents[self.starts[at] : self.starts[at + 1]]
        return Placed(int(self.numbers[at]), tuple(parents.tolist()), ())


class TooMuchWork(TidingsError):
    """Matching a notification takes too long. `tag_fairly` finds out whose filters are slow."""


class Fair(msgspec.Struct, frozen=True):
    """The matches of a notification if each owner's filters get a limited share of the time."""

    nodes: list[int]  # the lowest matching nodes, without the nodes in `over`
    over: dict[int, str]  # nodes that were not tested, and the owner whose time was used up


class TaggedMany(NamedTuple):
    """The lowest nodes of the first n notifications: nodes[starts[i] : starts[i + 1]], ascending. A
    refused notification has no nodes; `refused` has the error, by position."""

    starts: Numbers  # [n + 1]
    nodes: Numbers
    refused: dict[int, TidingsError]


class Interests(Protocol):
    """The preprocessor of a channel: it maps interests and notifications to nodes. An interest
    includes its dialect; see `unpack_interest`."""

    def place(self, interest: bytes) -> Placed:
        """The node of an interest, created if there is none; raises TidingsError if it is
        refused."""

    def place_at(
        self, interest: bytes, key: bytes, above: Sequence[int], below: Sequence[int],
        newer: Sequence[int],
    ) -> Placed:  # fmt: skip
        """Like `place`, for an interest with this identity whose place is known: between the nodes
        `above`, which cover it, and the nodes `below`, which it covers. Only the `newer` nodes must
        still be compared with the interest."""

    def tag(self, content: bytes) -> Iterable[int]:
        """The lowest nodes that match a notification. Raises TidingsError if the notification is
        refused, and TooMuchWork if matching takes too long; then call `tag_fairly`."""

    def tag_many(self, contents: Sequence[bytes]) -> TaggedMany:
        """Like `tag`, for many notifications. Where `tag` would raise an error, the error is in
        `refused`. If tagging takes a long time, the result may contain only the first few
        notifications, but at least one."""

    def among(self, content: bytes, nodes: Sequence[int]) -> Iterable[int]:
        """The nodes among `nodes` that match a notification; meant for few nodes. Raises
        TidingsError if the notification is refused, and TooMuchWork if the filter of one of the
        nodes may take long to evaluate."""

    def tag_fairly(self, content: bytes, owners: Callable[[int], Sequence[str]]) -> Fair:
        """Like `tag`, with a share of time for each owner's filters. `owners` returns the owners of
        a node."""

    def remove(self, node: int) -> int:
        """Remove a node that nobody wants any more. Return the number of this change, which comes
        from the same counter as the numbers of nodes."""

    def take_number(self) -> int:
        """The number of a change that neither adds nor removes a node. The number comes from the
        same counter as the numbers of nodes."""

    def set_aside(self, nodes: Iterable[int]) -> None:
        """Stop tagging with these nodes, until they are removed or brought back."""

    def bring_back(self, node: int) -> None:
        """Resume tagging with a node that was set aside."""

    def look_up(self, interest: bytes) -> tuple[bytes, int | None]:
        """The identity of an interest, and its node if there is one; raises TidingsError if it is
        refused."""

    def identity(self, node: int) -> bytes:
        """The identity of the interest of a node."""

    def text(self, node: int) -> str:
        """The interest of a node as text, for followers."""

    def refuse_outside(self, interest: bytes, within: Sequence[str]) -> str:
        """Why an interest is refused to a subscriber whose interests must be covered by every
        filter of `within`; empty if every filter covers it. Raise TidingsError if the interest is
        refused to all subscribers."""

    def lies_within(self, node: int, within: Sequence[str]) -> bool:
        """Is it proven that all filters of `within` cover a node?"""

    def type_of(self, content: bytes) -> str:
        """The declared type of an accepted notification; empty if the channel has no types."""

    def find_type(self, type_: str) -> tuple[bytes, int | None]:
        """The interest in a declared type, and a node with the same meaning if there is one."""

    def type_at(self, node: int) -> str:
        """The type that the interest of a node asks for; empty if it asks for anything else."""

    def equal(self, node: int) -> Sequence[int]:
        """The other nodes that are known to equal a node: it covers them, and they cover it."""
