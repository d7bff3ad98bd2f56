"""The files that `tidings up` writes for its nodes, one for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.broker.admission.permissions import ROUTE, Grant
from tidings.broker.config import flatten_columns
from tidings.broker.node_process import NodeProcess
from tidings.broker.tree_file import Member, Tree, other_root
from tidings.model import toml_key, toml_text

WATCHER = "<up>"  # the name under which `tidings up` watches the rendezvous point


def write_node_file(
    tree: Tree, branch: NodeProcess, branches: Mapping[str, NodeProcess], keys: Mapping[str, str]
) -> str:
    """The text of a node's own file. `keys` are the tokens with which nodes connect to each
    other, by the names of the nodes."""
    member, root = branch.member, tree.members[0].name
    plain: dict[str, str] = {
        "name": member.name,
        "listen": branch.address(),
        "channel": member.channel or tree.channel,
        "policy": tree.policy,
    }
    if member.upstream is None:
        plain["journal"] = f"{member.channel}.journal.db" if member.channel else "journal.db"
    else:
        above = branches[member.upstream]
        plain["upstream"] = above.address(above.member.reached)
        plain["places"] = member.places
        if member.public is not None:
            plain["public"] = member.public
        if tree.tokens is not None:
            plain["token"] = keys[member.name]
    if tree.ticket_key is not None:
        plain["ticket_key"] = str(tree.ticket_key)
    tables: dict[str, Mapping[str, Any]] = {"times": tree.times}
    if member.upstream is None:
        own = tree.channels.get(member.channel, tree)
        tables["columns"] = flatten_columns(own.columns)
        if own.extra is not None:
            plain["extra"] = own.extra
        if tree.direct is not None:
            known = msgspec.to_builtins(tree.direct)
            tables["direct"] = known if own is tree else {**known, "address": ""}
        tables["preprocessor"] = own.preprocessor.list_given()
    elif tree.channels:
        direct = list_other_roots(tree, member)
        roots = {name: branches[name] for name in direct}
        tables["upstreams"] = {name: one.address(one.member.reached) for name, one in roots.items()}
        tables["channels"] = {
            channel: other_root(channel) if direct else "" for channel in tree.channels
        }
    if tree.tokens is not None:
        above_of = root if member.channel else member.name
        below = [one.name for one in tree.members if one.upstream == above_of]
        every = ("*",) if tree.channels else None
        added = {keys[name]: Grant(name, ROUTE, channels=every) for name in below}
        if member.upstream is None and not member.channel:
            added[keys[member.name]] = Grant(WATCHER, frozenset({"subscribe"}))
        tables["tokens"] = {**tree.tokens, **added}
    if tree.grants is not None:
        tables["grants"] = tree.grants
    lines = write_pairs(plain)
    for title, table in tables.items():
        if table:
            lines += ["", f"[{title}]", *write_pairs(table)]
    return "\n".join(lines) + "\n"


def list_other_roots(tree: Tree, member: Member) -> list[str]:
    """The rendezvous points of other channels to which a router is linked: all of them if it is
    directly below the root."""
    if member.upstream != tree.members[0].name:
        return []
    return [other_root(channel) for channel in tree.channels]


def write_pairs(table: Mapping[str, Any]) -> list[str]:
    """The lines of a table."""
    return [f"{toml_key(key)} = {_toml_value(value)}" for key, value in table.items()]


def _toml_value(value: Any) -> str:
    if isinstance(value, Grant):
        parts = [f"name = {toml_text(value.name)}"]
        if value.may is not None:
            parts.append(f"may = [{', '.join(map(toml_text, sorted(value.may)))}]")
        if value.within:
            parts.append(f"within = {toml_text(value.within)}")
        if value.channels is not None:
            parts.append(f"channels = [{', '.join(map(toml_text, value.channels))}]")
        if value.signed:
            parts.append("signed = true")
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(write_pairs(value))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, bool | int):
        return str(value).lower()
    return toml_text(value) if isinstance(value, str) else repr(float(value))
