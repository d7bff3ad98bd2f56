"""The names of owners.

The router or root to which an owner is linked says who the owner is. Each further node on the way
to the root prepends the name of the router below it. So `edge/alice` and `west/alice` are two
owners.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import TypeVar

import msgspec

from tidings.routing.forwarding.neighbours.context import Context, Name
from tidings.routing.protocol import messages as m

Owned = TypeVar("Owned", m.Ask, m.Apply)
SHORTENED = 100  # if an owner's name is too long, the router's name is cut to this length
UNKNOWN = "?"  # an owner that its router did not name


def name_owner_behind(router: object, owner: str) -> str:
    """The full name of an owner behind a router. A router can name only owners below itself: the
    same name behind another router is another owner."""
    if not owner:
        return ""
    found = f"{router}/{owner}"
    if len(found) > m.LONGEST_NAME:
        found = f"{router}"[:SHORTENED] + "/" + sha256(found.encode()).hexdigest()
    return found


def is_owner_behind(router: object, owner: str) -> bool:
    """Whether `name_owner_behind` gave this name to an owner behind a router."""
    return owner.startswith((f"{router}/", f"{router}"[:SHORTENED] + "/"))


def name_owner(context: Context, sender: Name, message: Owned) -> Owned:
    """Return the question with its owner. Only routers may ask on behalf of other owners."""
    owner = context.owner_of(sender) or name_owner_behind(sender, message.owner)
    return msgspec.structs.replace(message, owner=owner)


def ask_for_owners(context: Context, nodes: Iterable[int]) -> dict[str, list[int]]:
    """The directly linked owners that want some of the given nodes, and the nodes that they want.
    The owners behind a router are not known here: the router is asked."""
    asked, found = set(nodes), dict[str, list[int]]()
    for name, known in context.neighbours.items():
        mine = sorted(asked & known.nodes)
        owner = context.owner_of(name)
        if mine and owner:
            found.setdefault(owner, []).extend(mine)
        elif mine:
            context.send(name, m.Who(context.epoch, tuple(mine)))
    return found
