"""A whole tree of nodes in one file, read and checked.

    channel = "quotes"
    folder = "quotes"                for the journal, the logs and the nodes' own files
    patience = 30                    seconds without a sign of life after which a node is killed

    [root]                           the rendezvous point; may be left out
    name = "root"
    listen = "127.0.0.1:7400"        or the port alone; a free port if left out

    [router.edge-1]
    listen = 7401
    upstream = "root"                the rendezvous point if left out

    [columns] [tokens] [times] policy      as in a router's file, but for all nodes

Paths are relative to the file; without `folder`, the folder is named after the file.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from tidings.broker.admission.listen import Address
from tidings.broker.admission.permissions import Grant
from tidings.broker.config import ConfigError, address_of
from tidings.files import SecretError, check_secret
from tidings.filters import Attributes
from tidings.model import AttributesError
from tidings.routing.protocol import Times

HERE = "127.0.0.1"
_ANYWHERE = {"0.0.0.0": HERE, "::": "::1"}  # host to listen on -> host to connect to
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # also used in file names


class Member(NamedTuple):
    """A node of the tree, as the file describes it."""

    name: str
    listen: Address  # port 0 means any free port
    upstream: str | None
    depth: int

    @property
    def reached(self) -> str:
        """The host to connect to from this machine."""
        return _ANYWHERE.get(self.listen.host, self.listen.host)


class Tree(msgspec.Struct, frozen=True):
    """The content of a tree's file."""

    path: Path
    folder: Path
    channel: str
    policy: str
    columns: dict[str, str]
    tokens: dict[str, str | Grant] | None
    times: dict[str, float]
    patience: float
    members: tuple[Member, ...]  # each after the one above it
    warnings: tuple[str, ...] = ()  # about files that others may read

    @property
    def open_to_others(self) -> list[Member]:
        """Nodes that anybody on another machine can connect to."""
        if self.tokens is not None:
            return []
        return [one for one in self.members if not _is_local(one.listen.host)]


class _Root(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = "root"
    listen: str | int = 0


class _Router(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    listen: str | int = 0
    upstream: str | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    channel: str = ""
    folder: str | None = None
    policy: Literal["drop", "disconnect"] = "drop"
    columns: dict[str, str] = {}
    tokens: dict[str, str | Grant] | None = None
    times: dict[str, float] = {}
    patience: Annotated[float, msgspec.Meta(ge=3)] = 30.0
    root: dict[str, Any] = {}
    router: dict[str, Any] = {}


def load_tree(path: str | Path) -> Tree:
    """Read a tree's file; ConfigError if it can't be used."""
    path = Path(path)
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise ConfigError(f"{path} can't be read: {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        raise ConfigError(f"{path} is not TOML: {problem}") from None
    try:
        return _tree(path, raw)
    except SecretError as problem:  # its message already names the file
        raise ConfigError(str(problem)) from None
    except (ConfigError, AttributesError) as problem:
        raise ConfigError(f"{path}: {problem}") from None


def _tree(path: Path, raw: dict[str, Any]) -> Tree:
    file = _convert(raw, _File, "")
    Attributes(file.columns)
    _convert(file.times, Times, "times: ")
    if file.tokens == {}:
        raise ConfigError("tokens: found an empty table, expected at least one token, or no table")
    folder = path.parent / (path.stem if file.folder is None else file.folder)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"folder: {folder} is a file; expected a folder or an unused path")
    return Tree(
        path,
        folder.absolute(),
        file.channel,
        file.policy,
        file.columns,
        file.tokens,
        file.times,
        file.patience,
        tuple(_members(file)),
        tuple(filter(None, [check_secret(path) if file.tokens else ""])),
    )


def _members(file: _File) -> list[Member]:
    root = _convert(file.root, _Root, "root: ")
    routers = {
        name: _convert(table, _Router, f"router.{name}: ") for name, table in file.router.items()
    }
    for where, name in (("root", root.name), *((f"router.{name}", name) for name in routers)):
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{where}: found the name {name!r}, expected at most 64 ASCII letters, digits, "
                "dots, dashes and underscores, starting with a letter or a digit"
            )
    if root.name in routers:
        raise ConfigError(
            f"router.{root.name}: found the name of the rendezvous point, expected another name"
        )
    members = {root.name: Member(root.name, _address(root.listen, "root"), None, 0)}
    above = {name: root.name if r.upstream is None else r.upstream for name, r in routers.items()}
    for name, upstream in above.items():
        if upstream not in above and upstream != root.name:
            known = ", ".join([root.name, *above])
            raise ConfigError(
                f"router.{name}: found the upstream {upstream!r}, expected one of {known}"
            )
    while above:
        ready = [name for name, upstream in above.items() if upstream in members]
        if not ready:
            raise ConfigError(f"found a cycle of upstreams: {_circle(above)}")
        for name in ready:
            upstream = above.pop(name)
            address = _address(routers[name].listen, f"router.{name}")
            members[name] = Member(name, address, upstream, members[upstream].depth + 1)
    _check_ports(list(members.values()))
    return list(members.values())


def _circle(above: dict[str, str]) -> str:
    """a -> b -> a"""
    seen = [next(iter(above))]
    while above[seen[-1]] not in seen:
        seen.append(above[seen[-1]])
    circle = seen[seen.index(above[seen[-1]]) :]
    return " -> ".join([*circle, circle[0]])


def _check_ports(members: list[Member]) -> None:
    taken: dict[Address, str] = {}
    for one in members:
        if one.listen.port:
            other = taken.setdefault(one.listen, one.name)
            if other != one.name:
                where = f"{one.listen.host}:{one.listen.port}"
                raise ConfigError(f"{other} and {one.name} can't both listen at {where}")


def _address(listen: str | int, where: str) -> Address:
    text = f"{HERE}:{listen}" if isinstance(listen, int) else listen
    return address_of(text, f"{where}: listen")


def _convert(raw: Any, kind: type[Any], where: str) -> Any:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"{where}{problem}") from None


def _is_local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
