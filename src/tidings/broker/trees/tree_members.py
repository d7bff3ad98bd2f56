"""The nodes of a tree: their names, addresses and places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from tidings.broker.admission.listen import Address
from tidings.broker.config import (
    ConfigError,
    address_of,
    find_column_problems,
    find_preprocessor_problems,
    list_addresses,
)
from tidings.broker.trees.tree_settings import ANYWHERE, HERE, Member, TreeTables
from tidings.files import find_problems
from tidings.model import Problem
from tidings.routing.protocol import Limits

# the name is also used in file names
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _above(file: TreeTables) -> dict[str, list[str]]:
    """For each router, the names of the nodes above it."""
    return {
        name: [file.root.name] if one.upstream is None else list_addresses(one.upstream)
        for name, one in file.router.items()
    }


def find_member_problems(file: TreeTables) -> Iterator[Problem]:
    """The problems with names, addresses and the shape of the tree."""
    root, above = file.root, _above(file)
    others = {other_root(channel): channel for channel in file.channels}
    for place, name in (
        (("root",), root.name),
        *((("router", name), name) for name in above),
        *((("channels", channel), channel) for channel in others.values()),
        *((("preprocessors", name), name) for name in file.preprocessors),
    ):
        if not _NAME.fullmatch(name):
            yield Problem(
                place,
                f"{'.'.join(place)}: found the name {name!r}, expected at most 64 ASCII letters, "
                "digits, dots, dashes and underscores, starting with a letter or a digit",
            )
    if root.name in above:
        yield Problem(
            ("router", root.name),
            f"router.{root.name}: found the name of the rendezvous point, expected another name",
        )
    for name, channel in others.items():
        sentence = ""
        if channel == file.channel:
            sentence = f"found the channel {channel!r} twice, expected another name"
        elif name in above or name == root.name:
            sentence = f"its node needs the name {name!r}, which another node of the tree has"
        if sentence:
            yield Problem(("channels", channel), f"channels.{channel}: {sentence}")
        table = file.channels[channel]
        for one in find_column_problems({"columns": table.columns}):
            place = ("channels", channel, *one.place)
            yield Problem(place, f"channels.{channel}.{one.sentence}")
        for one in find_preprocessor_problems(table.preprocessor):
            place = ("channels", channel, *one.place)
            yield Problem(place, f"channels.{channel}: {one.sentence}")
        yield from find_problems(table.limits, Limits, ("channels", channel, "limits"))
    yield from find_problems(root.limits, Limits, ("root", "limits"))
    yield from _find_tagger_problems(file, {root.name, *above, *others})
    for name, upstreams in above.items():
        place = ("router", name, "upstream")
        if not upstreams or len({*upstreams}) < len(upstreams):
            found = "the same upstream twice" if upstreams else "no upstream"
            yield Problem(place, f"router.{name}: found {found}, expected different names of nodes")
        for upstream in upstreams:
            if upstream not in above and upstream != root.name:
                known = ", ".join([root.name, *(one for one in above if one != name)])
                yield Problem(
                    place,
                    f"router.{name}: found the upstream {upstream!r}, expected one of {known}",
                )
    taken: dict[Address, str] = {}
    listens = {root.name: (root.listen, "root")}
    listens |= {name: (one.listen, f"router.{name}") for name, one in file.router.items()}
    listens |= {
        other_root(name): (one.listen, f"channels.{name}") for name, one in file.channels.items()
    }
    listens |= {
        name: (one.listen, f"preprocessors.{name}") for name, one in file.preprocessors.items()
    }
    for name, router in file.router.items():
        try:
            address_of(router.public or f"{HERE}:0", f"router.{name}: public")
        except ConfigError as problem:
            yield Problem(("router", name, "public"), str(problem))
    for name, (listen, where) in listens.items():
        place = (*where.split(".", 1), "listen")
        try:
            address = _address(listen, where)
        except ConfigError as problem:
            yield Problem(place, str(problem))
            continue
        other = taken.setdefault(address, name) if address.port else name
        if other != name:
            at = f"{address.host}:{address.port}"
            yield Problem(place, f"{other} and {name} can't both listen on {at}")
    left = dict(above)
    known_above = {root.name}
    while left:
        ready = [name for name, upstreams in left.items() if known_above.issuperset(upstreams)]
        if not ready:
            named = {upstream for upstreams in above.values() for upstream in upstreams}
            if named <= above.keys() | {root.name}:
                circle = _circle(left)
                place = ("router", circle.partition(" ")[0], "upstream")
                yield Problem(place, f"found a cycle of upstreams: {circle}")
            return
        known_above.update(ready)
        for name in ready:
            del left[name]


def _find_tagger_problems(file: TreeTables, names: set[str]) -> Iterator[Problem]:
    """The problems with preprocessors; `names` are the names of the other nodes."""
    for name, one in file.preprocessors.items():
        where, place = f"preprocessors.{name}", ("preprocessors", name)
        if name in names:
            yield Problem(place, f"{where}: found the name of another node, expected a new name")
        if one.channel not in (None, file.channel, *file.channels):
            known = ", ".join(f'"{channel}"' for channel in (file.channel, *file.channels))
            sentence = f"{where}: found the channel {one.channel!r}, expected one of {known}"
            yield Problem((*place, "channel"), sentence)
        if one.key is not None and not file.is_guarded:
            yield Problem(
                (*place, "key"),
                f"{where}: found key and no [tokens], expected [tokens] that say who may have "
                "grants",
            )
        with suppress(ConfigError):  # a bad address is reported elsewhere
            host = _address(one.listen, where).host
            if one.host is None and host in ANYWHERE:
                yield Problem(
                    (*place, "listen"),
                    f"{where}: listen: found {host}, which is not a host that agents can connect "
                    "to, expected `host` in addition",
                )
    for name in file.tickets.keys() & {*names, *file.preprocessors}:
        sentence = f"tickets.{name}: found the name of a node of this tree, expected another name"
        yield Problem(("tickets", name), sentence)


def list_members(file: TreeTables) -> list[Member]:
    """The nodes of a checked file; each comes after the nodes above it."""
    root, above = file.root, _above(file)
    members = {root.name: Member(root.name, _address(root.listen, "root"), None, 0)}
    for channel, one in file.channels.items():
        address = _address(one.listen, f"channels.{channel}")
        name = other_root(channel)
        members[name] = Member(name, address, None, 0, channel)
    while above:
        for name in [name for name, found in above.items() if members.keys() >= {*found}]:
            upstream, *others = upstreams = above.pop(name)
            router = file.router[name]
            depth = 1 + max(members[one].depth for one in upstreams)
            members[name] = Member(
                name, _address(router.listen, f"router.{name}"), upstream, depth,
                public=router.public, places=router.places, others=tuple(others),
            )  # fmt: skip
    for name, tagger in file.preprocessors.items():
        channel = tagger.channel or ""
        channel = channel if channel in file.channels else ""
        upstream = other_root(channel) if channel else root.name
        address = _address(tagger.listen, f"preprocessors.{name}")
        members[name] = Member(name, address, upstream, 1, channel, tagger=tagger)
    return list(members.values())


def other_root(channel: str) -> str:
    """The name of the rendezvous point of another channel."""
    return f"root-{channel}"


def _circle(above: dict[str, list[str]]) -> str:
    """A cycle of nodes, such as "a -> b -> a", in which each node is below the next one."""
    seen = [next(iter(above))]
    while (upstream := next(one for one in above[seen[-1]] if one in above)) not in seen:
        seen.append(upstream)
    circle = seen[seen.index(upstream) :]
    return " -> ".join([*circle, circle[0]])


def _address(listen: str | int, where: str) -> Address:
    text = f"{HERE}:{listen}" if isinstance(listen, int) else listen
    return address_of(text, f"{where}: listen")
