"""The files that `tidings up` writes for its nodes, one for each."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tidings.broker.admission.permissions import ROUTE, ChannelRights, Right, TokenRights
from tidings.broker.admission.signing import Signer
from tidings.broker.config import flatten_columns
from tidings.broker.trees.node_process import NodeProcess
from tidings.broker.trees.tree_members import other_root
from tidings.broker.trees.tree_settings import Member, Tree
from tidings.broker.trees.tree_tls import tls_of
from tidings.files import read_secret
from tidings.model import toml_key, toml_text

WATCHER = "<up>"  # the name under which `tidings up` watches the rendezvous point


TAGS: frozenset[Right] = frozenset(
    {"subscribe", "preprocess"}
)  # the rights of a preprocessor of the tree
TICKET_KEY = ".ticket-key"  # the suffix of the file with a node's key for tickets
TOKEN = ".token"  # the suffix of the file with a preprocessor's token


class NodeKeys(NamedTuple):
    """The secrets of nodes, by node name. `tidings up` generates new secrets at each start."""

    tokens: dict[str, str]  # the tokens with which nodes connect to each other
    tickets: dict[str, tuple[str, str]]  # private and public keys of nodes that sign tickets


def make_keys(tree: Tree) -> NodeKeys:
    """New secrets for all nodes. If there are preprocessors, all other nodes sign tickets, so that
    no agent shows its token to a preprocessor. If the tree's file names a ticket key, all these
    nodes sign with this key."""
    tokens = {one.name: secrets.token_urlsafe(24) for one in tree.members}
    signing = [one.name for one in tree.members if one.tagger is None]
    if tree.ticket_key is not None:
        private = read_secret(tree.ticket_key)[0]
        return NodeKeys(tokens, dict.fromkeys(signing, (private, Signer(private).public)))
    if not tree.is_guarded or len(signing) == len(tree.members):
        return NodeKeys(tokens, {})
    return NodeKeys(tokens, {name: Signer.generate() for name in signing})


def list_arguments(
    tree: Tree, branch: NodeProcess, branches: Mapping[str, NodeProcess], config: Path
) -> list[str]:
    """The arguments of `tidings` that start a node."""
    member = branch.member
    always = ["--config", str(config), "--log", "--until-stdin-ends"]
    if member.tagger is None:
        return ["router", *always]
    assert member.upstream is not None
    above, channel = branches[member.upstream], member.channel or tree.channel
    path = f"/{channel}" if channel else ""
    address = f"{scheme_of(tree)}://{above.address(above.member.reached)}{path}"
    given = ["--listen", branch.address(), "--name", member.name]
    if tree.is_guarded:
        given += ["--token-file", str(config.with_suffix(TOKEN))]
    if tree.tls is not None and tree.tls.authorities is not None:
        given += ["--authorities", tree.tls.authorities]
    if member.tagger.host is not None:
        given += ["--host", member.tagger.host]
    if member.tagger.key is not None:
        given += ["--key", member.tagger.key]
    return ["preprocessor", address, *given, *always]


def write_secrets(tree: Tree, member: Member, keys: NodeKeys) -> dict[str, str]:
    """The secret files of a node: their contents, by name."""
    if member.name in keys.tickets:
        return {member.name + TICKET_KEY: keys.tickets[member.name][0]}
    if member.tagger is not None and tree.is_guarded:
        return {member.name + TOKEN: keys.tokens[member.name]}
    return {}


def _write_tagger_file(tree: Tree, member: Member, keys: NodeKeys) -> str:
    """The text of a preprocessor's file. The preprocessor accepts the tickets of routers, and of
    the rendezvous point of its channel."""
    signed = [
        one.name
        for one in tree.members
        if one.name in keys.tickets and (one.kind == "router" or one.name == member.upstream)
    ]
    tickets = {**tree.tickets, **{name: keys.tickets[name][1] for name in signed}}
    tables = {"tickets": tickets, "limits": _limits_of(tree, member)}
    return _write_file({}, {**tables, "tls": _tls_table(tree, member)})


def _tls_table(tree: Tree, member: Member) -> dict[str, Any]:
    found = {} if tree.tls is None else msgspec.to_builtins(tls_of(tree.tls, member.name))
    return {key: value for key, value in found.items() if value is not None}


def scheme_of(tree: Tree) -> str:
    """The scheme of the addresses of the tree's nodes."""
    return "tidings" if tree.tls is None else "tidings+tls"


def _limits_of(tree: Tree, member: Member) -> dict[str, Any]:
    """The limits of a node. Limits that the file sets for the node's channel, or for the root,
    override those for all nodes."""
    own = tree.channels.get(member.channel)
    if own is not None:
        return {**tree.limits, **own.limits}
    return {**tree.limits, **tree.root_limits} if member.kind == "rendezvous" else tree.limits


def write_node_file(
    tree: Tree, branch: NodeProcess, branches: Mapping[str, NodeProcess], keys: NodeKeys
) -> str:
    """The text of a node's own file."""
    member, root = branch.member, tree.members[0].name
    if member.tagger is not None:
        return _write_tagger_file(tree, member, keys)
    plain: dict[str, Any] = {
        "name": member.name,
        "listen": branch.address(),
        "channel": member.channel or tree.channel,
        "policy": tree.policy,
    }
    if member.upstream is None:
        plain["journal"] = f"{member.channel}.journal.db" if member.channel else "journal.db"
    else:
        plain["upstream"] = _addresses(member.upstreams, branches)
        plain["places"] = member.places
        if member.public is not None:
            plain["public"] = member.public
        if tree.is_guarded:
            plain["token"] = keys.tokens[member.name]
    if member.name in keys.tickets:
        plain["ticket_key"] = member.name + TICKET_KEY
    limits = _limits_of(tree, member)
    tables: dict[str, Mapping[str, Any]] = {"times": tree.times, "limits": limits}
    tables["tls"] = _tls_table(tree, member)
    if member.upstream is None:
        own = tree.channels.get(member.channel, tree)
        tables["columns"] = flatten_columns(own.columns)
        if own.extra is not None:
            plain["extra"] = own.extra
        if tree.direct is not None:
            known = msgspec.to_builtins(tree.direct)
            tables["direct"] = known if own is tree else {**known, "address": ""}
        tables["preprocessor"] = own.preprocessor.list_given()
        tables["relations"] = own.relations.list_given() if own.relations else {}
    elif tree.relations is not None and member.tagger is None:
        tables["relations"] = tree.relations.for_router().list_given()
    if member.upstream is not None and tree.channels:
        direct = list_other_roots(tree, member)
        tables["upstreams"] = {name: _addresses([name], branches) for name in direct}
        tables["channels"] = {
            channel: _route_of(other_root(channel) if direct else "", one.limits)
            for channel, one in tree.channels.items()
        }
    if tree.is_guarded:
        above_of = root if member.channel else member.name
        every = ("*",) if tree.channels else None
        added = {
            keys.tokens[one.name]: TokenRights(one.name, ROUTE, channels=every)
            for one in tree.members
            if above_of in one.upstreams and one.tagger is None
        }
        added |= {
            keys.tokens[one.name]: TokenRights(one.name, TAGS)
            for one in tree.members
            if one.upstream == member.name and one.tagger is not None
        }
        if member.upstream is None and not member.channel:
            added[keys.tokens[member.name]] = TokenRights(WATCHER, frozenset({"subscribe"}))
        tables["tokens"] = {**(tree.tokens or {}), **added}
    if tree.grants is not None:
        tables["grants"] = tree.grants
    return _write_file(plain, tables)


def _addresses(names: Sequence[str], branches: Mapping[str, NodeProcess]) -> str | list[str]:
    """The address of a node, or the addresses of several nodes."""
    found = [branches[name].address(branches[name].member.reached) for name in names]
    return found if len(found) > 1 else found[0]


def _route_of(upstream: str, limits: Mapping[str, Any]) -> str | dict[str, Any]:
    return {"upstream": upstream, "limits": limits} if limits else upstream


def _write_file(plain: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> str:
    lines = write_pairs(plain)
    for title, table in tables.items():
        if table:
            lines += ["", f"[{title}]", *write_pairs(table)]
    return "\n".join(lines) + "\n"


def list_other_roots(tree: Tree, member: Member) -> list[str]:
    """The rendezvous points of other channels to which a router connects. A router that can connect
    to the root connects to all of them, and any other router to none."""
    if tree.members[0].name not in member.upstreams or member.tagger is not None:
        return []
    return [other_root(channel) for channel in tree.channels]


def write_pairs(table: Mapping[str, Any]) -> list[str]:
    """The lines of a table in TOML."""
    return [f"{toml_key(key)} = {_toml_value(value)}" for key, value in table.items()]


def _toml_value(value: Any) -> str:
    if isinstance(value, TokenRights):
        parts = [f"name = {toml_text(value.name)}"]
        if value.may is not None:
            parts.append(f"may = [{', '.join(map(toml_text, sorted(value.may)))}]")
        if value.within:
            parts.append(f"within = {toml_text(value.within)}")
        if value.channels is not None:
            parts.append(f"channels = {_toml_value(value.channels)}")
        if value.signed:
            parts.append("signed = true")
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, ChannelRights):
        given = {"may": value.may, "within": value.within}
        value = {key: one for key, one in given.items() if one is not None}
    if isinstance(value, frozenset):
        value = sorted(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(write_pairs(value))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, bool | int):
        return str(value).lower()
    return toml_text(value) if isinstance(value, str) else repr(float(value))
