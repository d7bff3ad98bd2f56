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
    upstream = "root"                the rendezvous point if left out; or several names, of which
                                     the first that can be reached is used
    public = "edge-1.example:7401"   `public` and `places` are as in a router's file

    [channels.tea]                   another channel, with a rendezvous point of its own: the node
    listen = 7500                    root-tea
    extra = "keep"                   [channels.tea.columns] has its declared attributes, and
                                     [channels.tea.preprocessor] its kind of interest, and
                                     [channels.tea.relations] what it knows about contexts

    [preprocessors.tagger]           a preprocessor, as a process of its own
    listen = 7410
    host = "tagger.example"          the host by which agents reach it, if not that of `listen`
    channel = "tea"                  the main channel if left out
    key = "tagger.key"               signs grants with this private key

    [tls]                            of all nodes, as in a router's file; `{name}` in the paths of
    certificate = "{name}.pem"       certificate and key stands for the name of the node

    [root.limits]                         of the rendezvous point, instead of those in [limits]
    [channels.tea.limits]                 of this channel, instead of those in [limits]
    [tickets]                             nodes of other trees whose tickets preprocessors accept
    [direct]                              most, links: as in the file of a rendezvous point
    [columns] [preprocessor] [relations] extra    of the main channel, as in a router's file
    [tokens] [grants] [times] [limits] policy    of all nodes, as in a router's file

Paths are relative to the file; without `folder`, the folder is named after the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tidings.broker.admission.signing import KeyProblem, Signer
from tidings.broker.config import (
    ConfigError,
    PreprocessorTable,
    address_of,
    find_column_problems,
    find_grant_problems,
    find_limit_problems,
    find_preprocessor_problems,
    find_relations_problems,
    find_ticket_problems,
    find_time_problems,
    find_token_oddities,
    find_token_problems,
    read_kind,
    read_ticket_key,
)
from tidings.broker.config.node_settings import declared_attributes
from tidings.broker.trees.tree_members import find_member_problems, list_members
from tidings.broker.trees.tree_settings import OtherRoot, Tree, TreeTables
from tidings.broker.trees.tree_tls import find_tls_problems, with_absolute_paths
from tidings.files import SecretError, check_secret, find_problems, read_secret, read_toml
from tidings.model import Problem


def load_tree(path: str | Path) -> Tree:
    """Read a tree's file; raise ConfigError, with all problems, if it can't be used."""
    path = Path(path)
    raw = read_toml(path, ConfigError)
    problems = [*_find_misplaced(raw.data)] or list(find_problems(raw.data, TreeTables))
    problems += find_column_problems(raw.data)
    problems += find_time_problems(raw.data)
    problems += find_limit_problems(raw.data)
    if problems:
        raise ConfigError(raw.describe(problems))
    file = msgspec.convert(raw.data, TreeTables)
    folder = path.parent / (path.stem if file.folder is None else file.folder)
    problems = [*_problems(file, folder), *find_token_problems(file.tokens or {})]
    if problems:
        raise ConfigError(raw.describe(problems))
    tables: dict[str, TreeTables | OtherRoot] = {file.channel: file, **file.channels}
    declared = {}
    for name, one in tables.items():
        kind = read_kind(path, one.preprocessor, one.columns, one.extra)
        declared[name] = declared_attributes(one.columns, one.extra, kind)
    for name, table in (
        ("", file.relations),
        *((n, c.relations) for n, c in file.channels.items()),
    ):
        for problem in find_relations_problems(table, path.parent):
            where = f"channels.{name}." if name else ""
            raise ConfigError(f"{path}: {where}{problem.sentence}")
    try:
        odd = find_token_oddities(file.tokens or {}, declared, file.channel)
        said = tuple(raw.describe([one]) for one in odd)
        tree = _tree(path, _with_taggers(path, file), folder, said)
    except KeyProblem as problem:
        raise ConfigError(f"{path}: {problem}") from None
    except SecretError as problem:  # the message already names the file
        raise ConfigError(str(problem)) from None
    for reason in () if tree.tls is None else find_tls_problems(tree.tls, tree.members):
        raise ConfigError(f"{path}: {reason}")
    return tree


def _find_misplaced(data: dict[str, Any]) -> Iterator[Problem]:
    """Tables that describe preprocessors, but are in [preprocessor] by mistake; [preprocessor]
    describes the kind of interest."""
    table = data.get("preprocessor")
    for name, one in table.items() if isinstance(table, dict) else ():
        if isinstance(one, dict) and name not in PreprocessorTable.__struct_encode_fields__:
            place = ("preprocessor", name)
            sentence = (
                f"preprocessor.{name}: found a table, expected [preprocessors.{name}] for a "
                "process, or a setting of the kind of interest"
            )
            yield Problem(place, sentence)


def _problems(file: TreeTables, folder: Path) -> Iterator[Problem]:
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
    if file.ticket_key is not None and not file.is_guarded:
        yield Problem(
            ("ticket_key",),
            "found ticket_key and no [tokens], expected [tokens] that say who may connect",
        )
    yield from find_grant_problems(file.grants)
    yield from find_ticket_problems(file.tickets)
    yield from find_preprocessor_problems(file.preprocessor)
    if file.direct is not None and file.direct.address:
        try:
            address_of(file.direct.address, "direct.address")
        except ConfigError as problem:
            yield Problem(("direct", "address"), str(problem))
    yield from find_member_problems(file)


def _with_taggers(path: Path, file: TreeTables) -> TreeTables:
    """The same tables, with absolute paths to the keys of preprocessors; raises KeyProblem or
    SecretError if a key can't be used."""
    found = {}
    for name, one in file.preprocessors.items():
        key = None if one.key is None else (path.parent / one.key).absolute()
        if key is not None:
            try:
                Signer(read_secret(key)[0])
            except KeyProblem as problem:
                raise KeyProblem(f"preprocessors.{name}: key: {problem}") from None
        found[name] = msgspec.structs.replace(one, key=None if key is None else str(key))
    return msgspec.structs.replace(file, preprocessors=found)


def _with_absolute_path(table: PreprocessorTable, path: Path) -> PreprocessorTable:
    """The table of the file `path`, with an absolute path to its ontology."""
    if table.ontology is None:
        return table
    return msgspec.structs.replace(table, ontology=str((path.parent / table.ontology).absolute()))


def _tree(path: Path, file: TreeTables, folder: Path, said: tuple[str, ...]) -> Tree:
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
        relations=file.relations and file.relations.at(path.parent),
        tokens=file.tokens,
        grants=file.grants,
        times=file.times,
        patience=file.patience,
        members=tuple(list_members(file)),
        channels={
            name: msgspec.structs.replace(
                one,
                preprocessor=_with_absolute_path(one.preprocessor, path),
                relations=one.relations and one.relations.at(path.parent),
            )
            for name, one in file.channels.items()
        },
        direct=file.direct,
        ticket_key=key,
        limits=file.limits,
        root_limits=file.root.limits,
        tickets=file.tickets,
        tls=None if file.tls is None else with_absolute_paths(file.tls, path.parent),
        warnings=tuple(filter(None, [check_secret(path) if file.tokens else "", warning, *said])),
    )
