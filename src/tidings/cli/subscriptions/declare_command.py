"""`tidings channel create, declare, show`: the attributes that a channel declares."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.declared_types import read_types
from tidings.cli.common.screen import count_of, emit, say, show, table
from tidings.files import local_path, scheme_of
from tidings.filters import Attributes
from tidings.model import parse_name, write_path

if TYPE_CHECKING:
    from tidings.store import ChangeLog

Where = Annotated[
    str,
    typer.Argument(
        metavar="WHERE",
        help="The folder of the channel, or the file of its rendezvous point or pipeline.",
        hidden=True,
    ),
]
Extra = Annotated[
    Literal["open", "keep", "drop", "refuse"] | None,
    typer.Option(
        "--extra", help="What happens to fields that are not declared.", show_default=False
    ),
]


def create_channel(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder.", hidden=True)],
    types: options.Types = None,
    extra: Extra = None,
) -> None:
    """Create the folder of a channel, with its first declaration.

    Pipelines and rendezvous points that name the folder use this declaration. Without --types, the
    channel declares nothing, and filters may test every attribute.
    """
    from tidings.store import LOCK

    path = local_path(folder, "the folder of a channel")
    if (path / LOCK).exists():
        raise BadInput(f"{path}: found a channel here; change it with `tidings channel declare`")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BadInput(f"{path}: found other files, expected an empty folder")
    given = read_types(types).attributes
    if given is None and extra is not None:
        raise BadInput("found --extra without --types, expected both")
    from tidings.store import ChangeLog

    if given is not None:
        given = Attributes(_types(given), extra=extra)
    log = ChangeLog(path)
    if given is not None:
        log.declare(given)
    _say_declared(path, log.last_declaration.version, log.attributes)


def declare_attributes(
    where: Where,
    types: options.Types = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="NAME", help="No longer declare NAME.", show_default=False),
    ] = None,
    extra: Extra = None,
) -> None:
    """Declare more attributes, or change the declaration of a channel, as a new version.

    --types adds attributes, adds fields to a struct ("user.age=integer"), or gives attributes
    another type. Other attributes stay declared. Subscriptions and nodes stay as they are, so an
    attribute that filters use can't be changed: the command is refused. Pipelines use the
    declaration from their next batch on. This also works while a rendezvous point or a pipeline of
    the channel is running, but the file of that process must agree with the declaration at its next
    start.
    """
    if types is None and not drop and extra is None:
        raise BadInput("found nothing to change, expected --types, --drop or --extra")
    log = _open(where)
    told = log.last_declaration
    now = told.declaration.attributes
    kept = _add(now, read_types(types).attributes)
    for name in drop or ():
        known = write_path(parse_name(name))
        if kept.pop(known, None) is None:
            raise BadInput(f"--drop {name}: the channel does not declare this attribute")
    if told.declaration.preprocessor:
        raise BadInput(
            f"{where}: this channel has predicates, or interests other than filters, so its "
            "attributes are declared in the file of its rendezvous point"
        )
    wanted = extra or (None if now is None else now.extra)
    new = Attributes(kept, extra=wanted) if kept or extra is not None else None
    version = log.declare(new, told.declaration.text)
    _say_declared(log.path, version, new)


def show_channel(
    where: Where,
    at: Annotated[
        int | None,
        typer.Option(
            "--at",
            metavar="VERSION",
            help="Show the declaration at this version.",
            show_default=False,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show what a channel declares: its attributes with their types, and what happens to undeclared
    attributes.

    With --json, one object: folder, version (the latest), declared (the version of the
    declaration, null with --at), kind, extra (null: nothing is declared), attributes (names with
    types), subscriptions, and owner (the process that owns the folder, or null).
    """
    from tidings.store import owner_of

    log = _open(where)
    latest = log.version
    state = log.state(at)
    found = log.last_declaration.declaration if at is None else state.declared
    since = log.last_declaration.version if at is None else None
    shown = {
        "folder": str(log.path),
        "version": latest if at is None else at,
        "declared": since,
        "kind": found.kind,
        "extra": found.declared_extra,
        "attributes": found.types or {},
        "subscriptions": len(state.subscriptions),
        "owner": owner_of(log.path),
    }
    if json:
        emit(shown)
        return
    many = count_of(len(state.subscriptions), "subscription")
    say(f"channel        {log.path}")
    say(f"version        {shown['version']}, {many}")
    if found.types is None:
        say("declared       nothing: filters may test every attribute")
    else:
        say(f"declared       {'' if since is None else f'at version {since}, '}extra {found.extra}")
    if found.preprocessor:
        say(f"kind           {found.kind}")
    if shown["owner"]:
        say(f"owner          process {shown['owner']}")
    if found.types:
        show("", table(["attribute", "type"], found.types.items()))


def _add(now: Attributes | None, more: Attributes | None) -> dict[str, str]:
    """The declared types after a change: types of `more` are added, or replace the declared ones. A
    struct gets the fields of both."""
    if now is None or more is None:
        known = now or more
        return {} if known is None else _types(known)
    from tidings.store.declared import join_attributes

    joined = _types(join_attributes(more, now))
    return {name: joined[name] for name in [*_types(now), *joined]}


def _types(attributes: Attributes) -> dict[str, str]:
    from tidings.store.declared import StoredDeclaration

    return StoredDeclaration.of(attributes).types or {}


def _say_declared(path: Path, version: int, found: Attributes | None) -> None:
    many = 0 if found is None else len(_types(found))
    what = f"{count_of(many, 'attribute')}, extra {found.extra}" if found else "nothing"
    say(f"version {version}: {path} declares {what}")


def _open(where: str) -> ChangeLog:
    """The log of a channel; raises BadInput if there is none."""
    from tidings.store import LOCK, ChangeLog

    if scheme_of(where) in ("tidings", "tidings+tls"):
        raise BadInput(
            f"{where}: found an address, expected the folder of the channel, on the machine of its "
            "rendezvous point"
        )
    path = local_path(where, "the folder of a channel")
    if path.is_file():
        path = _find_named(path)
    if not (path / LOCK).exists():
        raise BadInput(f"{path}: found no channel here; create one with `tidings channel create`")
    return ChangeLog(path)


def _find_named(file: Path) -> Path:
    """The folder that the file of a rendezvous point or of a pipeline names."""
    try:
        is_root = "journal" in tomllib.loads(file.read_text("utf-8"))
    except (ValueError, OSError):
        is_root = False
    if is_root:
        from tidings.broker import load_config

        config = load_config(file)
        assert config.journal is not None
        return config.at(config.journal)
    from tidings.spark.pipeline import load_settings

    settings = load_settings(file)
    place = settings.subscriptions.log or settings.channel_place
    if place is None or (isinstance(place, str) and scheme_of(place)):
        raise BadInput(
            f"{file}: the pipeline names no folder of a channel, expected a pipeline that names one"
        )
    return settings.at(str(place))
