"""A router's file, read and checked.

    name = "edge-1"
    listen = "127.0.0.1:7401"
    upstream = "127.0.0.1:7400"      the node above, or several addresses; only for routers
    journal = "journal.db"           its durable state; only for a rendezvous point
    channel = "quotes"
    token = "..."                    presented to the node above;
    token_file = "above.token"       or the file that contains it
    policy = "drop"                  for neighbours that are too slow; or "disconnect"
    forwarding = "adaptive"          or "labels", "lists": see docs/network.md
    bandwidth = 1000                 Mbit/s of its links, if they are slower than the machine
    public = "edge-1.example:7401"   the address by which agents reach it, if not that of `listen`;
                                     "" if agents should not be told to use it
    ticket_key = "edge-1.key"        the private key with which it signs tickets for its clients
    places = "preprocessor"          who says where new nodes belong in the router's graph; or
                                     "upstream": see docs/tagging.md
    show_token = true                preprocessors may see `token`, if the node above signs no
                                     tickets

    extra = "keep"                   what happens to fields that [columns] does not declare

    [upstreams]                      other nodes above, of other channels
    west = "10.0.0.7:7400"           an address, or several

    [channels]                       the node above for each other channel; "" is `upstream`
    tea = "west"
    "orders-*" = {upstream = "", limits = {nodes = 1000}}

    [columns]                        declared attributes; only for a rendezvous point
    price = "double"

    [preprocessor]                   the kind of interest, see preprocessor_table.py
    kind = "topics"
    ontology = "topics.yaml"

    [relations]                      places, times, tags and people, see relations_table.py
    place = "city"

    [tokens]                         who may connect, see admission/permissions.py
    "..." = {name = "edge-1", may = ["route"]}
    "..." = "desk"
    "..." = {name = "eu", within = "region = 'EU'"}
    "..." = {name = "it", signed = true}

    [grants]                         preprocessors whose grants are accepted: see `tidings key`
    tagger = "ed25519:..."

    [tickets]                        routers whose tickets a preprocessor with this file accepts
    edge-1 = "ed25519:..."

    [tls]
    certificate = "edge-1.pem"
    key = "edge-1.key"
    authorities = "ca.pem"           the authorities trusted to certify routers below and the node
                                     above; if left out, those that the machine trusts

    [direct]                         links of agents that bypass the tree; only for a rendezvous
    most = 4                         point: see docs/network.md
    address = "root.example.org:7400"

    [times]                          its keys are the fields of routing/protocol/times.py
    beat = 1.0

    [limits]                         its keys are the fields of routing/protocol/limits.py
    neighbours = 500

Paths are relative to the file. While a node runs, renewal.py reads the tokens and keys again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tidings.broker.admission.signing import KeyProblem, Signer
from tidings.broker.config.config_problems import (
    find_column_problems,
    find_grant_problems,
    find_setting_problems,
    find_ticket_problems,
    find_time_problems,
    find_token_oddities,
    find_token_problems,
)
from tidings.broker.config.node_settings import (
    Config,
    ConfigError,
    declared_attributes,
)
from tidings.broker.config.preprocessor_table import (
    PreprocessorTable,
    read_preprocessor,
)
from tidings.broker.config.relations_table import find_relations_problems
from tidings.files import SecretError, check_secret, find_problems, read_secret, read_toml
from tidings.model import Extra, TidingsError
from tidings.preprocessing import KindDefinition

_HIDDEN = ("folder", "kind", "ticket_secret", "warnings")  # fields that no file sets
_UNUSED = "127.0.0.1:0"  # a placeholder: nobody connects to this address


def load_config(path: str | Path, *, of_preprocessor: bool = False) -> Config:
    """Read a router's file; raise ConfigError, with all problems, if it can't be used. A
    preprocessor needs only the settings that say who may connect, so its file need not say where to
    listen."""
    path = Path(path)
    file = read_toml(path, ConfigError)
    data = file.data
    if of_preprocessor:
        data = {"name": "preprocessor", "listen": _UNUSED, **data}
        if "journal" not in data:
            data = {"upstream": _UNUSED, **data}
    problems = list(find_problems(data, Config, hidden=_HIDDEN))
    problems += find_column_problems(data)
    problems += find_time_problems(data)
    if not problems:
        found = msgspec.convert(data, Config)
        problems = [*find_setting_problems(found), *find_token_problems(found.tokens or {})]
        problems += find_grant_problems(found.grants)
        problems += find_ticket_problems(found.tickets)
        problems += find_relations_problems(
            found.relations, path.parent.absolute(), of_router=found.journal is None
        )
    if problems:
        raise ConfigError(file.describe(problems))
    kind = read_kind(path, found.preprocessor, found.columns, found.extra)
    declared = {found.channel: declared_attributes(found.columns, found.extra, kind)}
    odd = find_token_oddities(found.tokens or {}, declared, found.channel)
    warnings = tuple(file.describe([one]) for one in odd)
    folder = path.parent.absolute()
    found = msgspec.structs.replace(found, kind=kind, folder=folder, warnings=warnings)
    return _with_secrets(path, found)


def read_kind(
    path: Path, table: PreprocessorTable, columns: dict[str, Any], extra: Extra | None
) -> KindDefinition:
    """The kind of interest that a file defines; raises ConfigError if it does not fit the
    columns."""
    try:
        kind = read_preprocessor(table, path.parent.absolute())
        attributes = declared_attributes(columns, extra, kind)
        if kind.kind != "content":
            from tidings.channel import Declaration  # loads the kernels, which routers don't need

            Declaration("", attributes, kind, "")
    except TidingsError as problem:
        raise ConfigError(f"{path}: preprocessor: {problem}") from None
    return kind


def read_ticket_key(path: Path, key: Path) -> tuple[str, str]:
    """The private key in the file `key`, and a warning if other users may read that file. Raises
    ConfigError if `key` contains no private key, and SecretError if it can't be read. `path` is the
    file that names `key`."""
    secret, warning = read_secret(key)
    try:
        Signer(secret)
    except KeyProblem as problem:
        raise ConfigError(f"{path}: ticket_key: {problem}") from None
    return secret, warning


def _with_secrets(path: Path, config: Config) -> Config:
    """The configuration, with its token and its ticket key read; raises ConfigError if a file with
    a secret can't be used."""
    token, secret, warnings = config.token, "", [*config.warnings]
    try:
        if config.tokens or config.token:
            warnings.append(check_secret(path))
        if config.token_file is not None:
            if config.token:
                raise ConfigError(f"{path}: found token and token_file, expected only one of them")
            token, warning = read_secret(config.at(config.token_file))
            warnings.append(warning)
        if config.ticket_key is not None:
            secret, warning = read_ticket_key(path, config.at(config.ticket_key))
            warnings.append(warning)
    except SecretError as problem:
        raise ConfigError(str(problem)) from None
    said = tuple(filter(None, warnings))
    return msgspec.structs.replace(config, token=token, ticket_secret=secret, warnings=said)
