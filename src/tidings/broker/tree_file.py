"""A whole tree of nodes in one file, read and checked.

    channel = "quotes"
    folder = "quotes"                for the journal, the logs and the nodes' own files
    patience = 30                    seconds without a sign of life after which a node is killed
    ticket_key = "tickets.key"       the private key with which all nodes sign tickets, as in a
                                     router's file

    [root]                           the rendezvous point; may be left out
    name = "root"
    listen = "127.0.0.1:7400"        or the port alone; a free port if left out

    [router.edge-1]
    listen = 7401
    upstream = "root"                the rendezvous point if left out
    public = "edge-1.example:7401"   `public` and `places` are as in a router's file

    [channels.tea]                   another channel, with a rendezvous point of its own: the node
    listen = 7500                    root-tea
    extra = "keep"                   [channels.tea.columns] has its declared attributes, and
                                     [channels.tea.preprocessor] its kind of interest

    [direct]                              most, links: as in the file of a rendezvous point
    [columns] [preprocessor] extra        of the main channel, as in a router's file
    [tokens] [grants] [times] policy      of all nodes, as in a router's file

Paths are relative to the file; without `folder`, the folder is named after the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from tidings.broker.admission.listen import Address, Direct
from tidings.broker.admission.permissions import Grant
from tidings.broker.config import (
    ConfigError,
    PreprocessorTable,
    address_of,
    find_column_problems,
    find_grant_problems,
    find_preprocessor_problems,
    find_time_problems,
    find_token_problems,
    read_kind,
    read_ticket_key,
)
from tidings.files import SecretError, check_secret, find_problems, read_toml
from tidings.model import Extra, Problem

HERE = "127.0.0.1"
_ANYWHERE = {"0.0.0.0": HERE, "::": "::1"}  # host to listen on -> host to connect to
# the name is also used in file names
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Member(NamedTuple):
    """A node of the tree, as the file describes it."""

    name: str
    listen: Address  # port 0 means any free port
    upstream: str | None
    depth: int
    channel: str = ""  # for a rendezvous point in `[channels]`
    public: str | None = None  # as in a router's file
    places: Literal["upstream", "preprocessor"] = "upstream"

    @property
    def reached(self) -> str:
        """The host to connect to from this machine."""
        return _ANYWHERE.get(self.listen.host, self.listen.host)


class OtherRoot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rendezvous point of another channel."""

    listen: str | int = 0
    columns: dict[str, Any] = {}
    extra: Extra | None = None
    preprocessor: PreprocessorTable = PreprocessorTable()


class Tree(msgspec.Struct, frozen=True):
    """The content of a tree's file."""

    path: Path
    folder: Path
    channel: str
    policy: str
    columns: dict[str, Any]
    extra: Extra | None
    preprocessor: PreprocessorTable
    tokens: dict[str, str | Grant] | None
    grants: dict[str, str] | None  # public keys whose grants are accepted, by name
    times: dict[str, float]
    patience: float
    members: tuple[Member, ...]  # each member comes after the one above it; the root is the first
    channels: dict[str, OtherRoot] = {}  # other channels
    direct: Direct | None = None
    ticket_key: Path | None = None
    warnings: tuple[str, ...] = ()  # warnings about files that others may read

    @property
    def open_to_others(self) -> list[Member]:
        """The nodes to which anybody on another machine can connect."""
        if self.tokens is not None:
            return []
        return [one for one in self.members if not _is_local(one.listen.host)]


class _Root(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = "root"
    listen: str | int = 0


class _Router(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    listen: str | int = 0
    upstream: str | None = None
    public: str | None = None
    places: Literal["upstream", "preprocessor"] = "upstream"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    channel: str = ""
    folder: str | None = None
    policy: Literal["drop", "disconnect"] = "drop"
    columns: dict[str, Any] = {}
    extra: Extra | None = None
    preprocessor: PreprocessorTable = PreprocessorTable()
    tokens: dict[str, str | Grant] | None = None
    grants: dict[str, str] | None = None
    times: dict[str, float] = {}
    patience: Annotated[float, msgspec.Meta(ge=3)] = 30.0
    root: _Root = _Root()
    router: dict[str, _Router] = {}
    channels: dict[str, OtherRoot] = {}
    direct: Direct | None = None
    ticket_key: str | None = None


def load_tree(path: str | Path) -> Tree:
    """Read a tree's file; raise ConfigError, with all problems, if it can't be used."""
    path = Path(path)
    raw = read_toml(path, ConfigError)
    problems = list(find_problems(raw.data, _File))
    problems += find_column_problems(raw.data)
    problems += find_time_problems(raw.data)
    if problems:
        raise ConfigError(raw.describe(problems))
    file = msgspec.convert(raw.data, _File)
    folder = path.parent / (path.stem if file.folder is None else file.folder)
    problems = [*_problems(file, folder), *find_token_problems(file.tokens or {})]
    if problems:
        raise ConfigError(raw.describe(problems))
    read_kind(path, file.preprocessor, file.columns, file.extra)
    for one in file.channels.values():
        read_kind(path, one.preprocessor, one.columns, one.extra)
    try:
        return _tree(path, file, folder)
    except SecretError as problem:  # the message already names the file
        raise ConfigError(str(problem)) from None


def _problems(file: _File, folder: Path) -> Iterator[Problem]:
    """The problems that a check of types can't find."""
    if file.tokens == {}:
        yield Problem(
            ("tokens",),
            "tokens: found an empty table, expected at least one token, or no table",
        )
    if folder.exists() and not folder.is_dir():
        yield Problem(
            ("folder",), f"folder: {folder} is a file; expected a folder or an unused path"
        )
    if file.ticket_key is not None and file.tokens is None:
        yield Problem(
            ("ticket_key",),
            "found ticket_key and no [tokens], expected [tokens] that say who may connect",
        )
    yield from find_grant_problems(file.grants)
    yield from find_preprocessor_problems(file.preprocessor)
    if file.direct is not None and file.direct.address:
        try:
            address_of(file.direct.address, "direct.address")
        except ConfigError as problem:
            yield Problem(("direct", "address"), str(problem))
    yield from _member_problems(file)


def _with_absolute_path(table: PreprocessorTable, path: Path) -> PreprocessorTable:
    """The table for a file in another folder than `path`."""
    if table.ontology is None:
        return table
    return msgspec.structs.replace(table, ontology=str((path.parent / table.ontology).absolute()))


def _tree(path: Path, file: _File, folder: Path) -> Tree:
    key, warning = None, ""
    if file.ticket_key is not None:
        key = (path.parent / file.ticket_key).absolute()
        _, warning = read_ticket_key(path, key)
    return Tree(
        path=path,
        folder=folder.absolute(),
        channel=file.channel,
        policy=file.policy,
        columns=file.columns,
        extra=file.extra,
        preprocessor=_with_absolute_path(file.preprocessor, path),
        tokens=file.tokens,
        grants=file.grants,
        times=file.times,
        patience=file.patience,
        members=tuple(_members(file)),
        channels={
            name: msgspec.structs.replace(
                one, preprocessor=_with_absolute_path(one.preprocessor, path)
            )
            for name, one in file.channels.items()
        },
        direct=file.direct,
        ticket_key=key,
        warnings=tuple(filter(None, [check_secret(path) if file.tokens else "", warning])),
    )


def _above(file: _File) -> dict[str, str]:
    """For each router, the name of the node above it."""
    return {
        name: file.root.name if one.upstream is None else one.upstream
        for name, one in file.router.items()
    }


def _member_problems(file: _File) -> Iterator[Problem]:
    """The problems with names, addresses and the shape of the tree."""
    root, above = file.root, _above(file)
    others = {other_root(channel): channel for channel in file.channels}
    for place, name in (
        (("root",), root.name),
        *((("router", name), name) for name in above),
        *((("channels", channel), channel) for channel in others.values()),
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
        if name in above or name == root.name or channel == file.channel:
            sentence = f"channels.{channel}: the name {name!r} or the channel is used already"
            yield Problem(("channels", channel), sentence)
        table = file.channels[channel]
        for one in find_column_problems({"columns": table.columns}):
            place = ("channels", channel, *one.place)
            yield Problem(place, f"channels.{channel}.{one.sentence}")
        for one in find_preprocessor_problems(table.preprocessor):
            place = ("channels", channel, *one.place)
            yield Problem(place, f"channels.{channel}: {one.sentence}")
    for name, upstream in above.items():
        if upstream not in above and upstream != root.name:
            known = ", ".join([root.name, *(one for one in above if one != name)])
            yield Problem(
                ("router", name, "upstream"),
                f"router.{name}: found the upstream {upstream!r}, expected one of {known}",
            )
    taken: dict[Address, str] = {}
    listens = {root.name: (root.listen, "root")}
    listens |= {name: (one.listen, f"router.{name}") for name, one in file.router.items()}
    listens |= {
        other_root(name): (one.listen, f"channels.{name}") for name, one in file.channels.items()
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
        ready = [name for name, upstream in left.items() if upstream in known_above]
        if not ready:
            if all(upstream in above or upstream == root.name for upstream in above.values()):
                circle = _circle(left)
                place = ("router", circle.partition(" ")[0], "upstream")
                yield Problem(place, f"found a cycle of upstreams: {circle}")
            return
        known_above.update(ready)
        for name in ready:
            del left[name]


def _members(file: _File) -> list[Member]:
    """The nodes of a checked file; each comes after the one above it."""
    root, above = file.root, _above(file)
    members = {root.name: Member(root.name, _address(root.listen, "root"), None, 0)}
    for channel, one in file.channels.items():
        address = _address(one.listen, f"channels.{channel}")
        name = other_root(channel)
        members[name] = Member(name, address, None, 0, channel)
    while above:
        for name in [name for name, upstream in above.items() if upstream in members]:
            upstream = above.pop(name)
            router = file.router[name]
            address, depth = _address(router.listen, f"router.{name}"), members[upstream].depth + 1
            members[name] = Member(
                name, address, upstream, depth, public=router.public, places=router.places
            )
    return list(members.values())


def other_root(channel: str) -> str:
    """The name of the rendezvous point of another channel."""
    return f"root-{channel}"


def _circle(above: dict[str, str]) -> str:
    """a -> b -> a"""
    seen = [next(iter(above))]
    while above[seen[-1]] not in seen:
        seen.append(above[seen[-1]])
    circle = seen[seen.index(above[seen[-1]]) :]
    return " -> ".join([*circle, circle[0]])


def _address(listen: str | int, where: str) -> Address:
    text = f"{HERE}:{listen}" if isinstance(listen, int) else listen
    return address_of(text, f"{where}: listen")


def _is_local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
