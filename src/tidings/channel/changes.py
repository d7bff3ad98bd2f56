"""What the owner of a channel sends to those who tag for it: a description, and the changes of its
nodes."""

from __future__ import annotations

import msgspec


class Description(msgspec.Struct, frozen=True):
    """The definition of a channel."""

    name: str
    life: int
    """The lineage of its numbers. It changes only when they begin anew, after a break."""
    attributes: dict[str, str] | None
    """The declared attributes with their types, as model/type_text.py reads them; None if nothing
    is declared."""
    extra: str
    """What happens to attributes that are not declared."""


class NodeChange(msgspec.Struct, frozen=True):
    """A node that began or, if `filter` is None, ended. Node numbers are never reused, and nodes
    with higher numbers began later."""

    version: int
    node: int
    filter: str | None
    """As SQL text."""


class Changes(msgspec.Struct, frozen=True):
    """The changes up to a version, in order. All these changes are on the owner's disk."""

    life: int
    version: int
    whole: bool
    """Are these all living nodes at the version, rather than the changes since another one? So it
    is if the owner does not know the changes since then any more, or if its life is another."""
    changes: tuple[NodeChange, ...]
