"""The messages of a channel's owner to programs that tag for it: a description of the channel, and
the changes to its nodes."""

from __future__ import annotations

import msgspec


class Description(msgspec.Struct, frozen=True):
    """The definition of a channel."""

    name: str
    life: int
    """This changes only after a break, when the channel's nodes get new numbers."""
    attributes: dict[str, str] | None
    """The declared attributes with their types, as model/type_text.py reads them; None if nothing
    is declared."""
    extra: str
    """What happens to attributes that are not declared."""
    preprocessor: str = ""
    """The kind of interest, as JSON; empty for content."""


class NodeChange(msgspec.Struct, frozen=True):
    """A node that was added or, if `filter` is None, removed. Node numbers are never reused, and
    nodes with higher numbers are newer."""

    version: int
    node: int
    filter: str | None
    """The SQL text of the filter."""


class Changes(msgspec.Struct, frozen=True):
    """The changes up to a version, in order. All these changes are on the owner's disk."""

    life: int
    version: int
    whole: bool
    """Are these all nodes at the version, rather than the changes since an earlier version? All
    nodes are sent if the owner no longer knows the changes since then, or has begun a new life."""
    changes: tuple[NodeChange, ...]
