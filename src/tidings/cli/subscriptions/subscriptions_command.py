"""`tidings subscriptions`: changes the log of subscriptions that running pipelines follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import filter_refusal, report_errors
from tidings.cli.common.declared_types import DeclaredTypes
from tidings.cli.common.screen import (
    MOST_ROWS,
    count_of,
    emit,
    plain_text,
    say,
    show,
    show_rest,
    table,
    track,
)
from tidings.cli.common.subscription_files import (
    note_odd,
    parse_all,
    read_subscriptions,
    refuse_never,
)
from tidings.cli.pipelines.pipeline_status import show_aside
from tidings.cli.subscriptions.subscription_logs import convert_id, convert_ids, find_log, open_log
from tidings.filters import parse
from tidings.model import FilterError, Id, need_id

if TYPE_CHECKING:
    from tidings.spark.loading import RefusedSubscription
    from tidings.store import Adoption, Change, ChangeLog, Declared

SQL = options.DEFAULT_DIALECT

subscriptions = typer.Typer(rich_markup_mode=None)

Where = Annotated[
    str, typer.Argument(metavar="FOLDER", help="The log, or a pipeline file.", hidden=True)
]
Owner = Annotated[
    str,
    typer.Option(
        "--owner",
        metavar="NAME",
        help="Who makes the subscription; `list` shows it.",
        show_default=False,
    ),
]
Who = Annotated[str, typer.Argument(metavar="ID", help="The id of the subscription.", hidden=True)]


@subscriptions.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Change and read the subscriptions that pipelines follow.

    The subscriptions are stored in a folder, as a log of changes. Every change has a version, and a
    pipeline takes the latest version at the start of each batch. FOLDER may also be a pipeline
    file: then the log of the pipeline is used, with the columns that the file declares.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def add_subscription(
    where: Where,
    who: Who,
    text: Annotated[str, typer.Argument(metavar="FILTER", help="The filter.", hidden=True)],
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = SQL,
    owner: Owner = "",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Add the subscription ID with the filter FILTER; if ID exists, replace its filter.

    When the command ends, the change is on disk; the printed version is the version of the change.
    FOLDER is created if it does not exist, unless the filter is refused. The log keeps the filter
    as it is written, with its dialect. A filter that can never match is refused, unless --force is
    given. A subscription that is replaced keeps its owner, unless --owner is given.

    With --json, one object: version, id, filter, dialect if it is not SQL, and note if the filter
    can never match or always matches.
    """
    place = find_log(where, types, others)
    need_id(who)
    try:
        parsed = parse(text, dialect, attributes=place.attributes)
    except FilterError as problem:
        raise filter_refusal(problem, "filter") from None
    place.check(parsed, "filter")
    refuse_never(parsed, force)
    log = place.open()
    id_ = convert_id(log, who)
    version = log.put(id_, text, dialect, owner=owner)
    if json:
        note = {"note": parsed.note} if parsed.note else {}
        emit({"version": version, "id": id_, "filter": text, **_describe_origin(dialect), **note})
    else:
        say(f"version {version}: {id_} is subscribed to {text}")


def load_subscriptions(
    where: Where,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A file of filters (- is stdin).", hidden=True)
    ],
    filters_format: options.FiltersFormat = None,
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = SQL,
    owner: Owner = "",
    json: options.Json = False,
) -> None:
    """Add all subscriptions in FILE to the log; if one of them is refused, none is added.

    FILE has the same format as for `tidings match --filters`. Subscriptions with other ids are
    kept. Notes on stderr name filters that can never match or always match; these filters are
    stored anyway.

    With --json, one object: version, subscriptions (how many were stored), never (the ids of
    subscriptions that can never match).
    """
    place = find_log(where, types, others)
    declared = DeclaredTypes(attributes=place.attributes)
    listed = track(read_subscriptions(file, filters_format), "reading filters")
    pairs: list[tuple[Id, str]] = []
    parsed = parse_all(listed, dialect, declared, lambda one, it: place.check(it, one.where))
    for one, _ in parsed:
        need_id(one.id)
        pairs.append((one.id, one.text.strip()))
    never = {str(one.id) for one in note_odd(parsed)}
    log = place.open()
    pairs = convert_ids(log, pairs)
    version = log.put_many(pairs, dialect, owner=owner)
    if json:
        ids = [id_ for id_, _ in pairs if str(id_) in never]
        emit({"version": version, "subscriptions": len(pairs), "never": ids})
    else:
        say(f"version {version}: {count_of(len(pairs), 'subscription')} stored")


def drop_subscription(where: Where, who: Who, json: options.Json = False) -> None:
    """End the subscription ID.

    With --json, one object: version, id.
    """
    log = open_log(where)
    id_ = convert_id(log, who)
    version = log.drop(id_)
    if json:
        emit({"version": version, "id": id_})
    else:
        say(f"version {version}: {id_} has ended")


def list_subscriptions(
    where: Where,
    at: Annotated[
        int | None,
        typer.Option(
            "--at",
            metavar="VERSION",
            help="List the subscriptions at this version.",
            show_default=False,
        ),
    ] = None,
    every: options.All = False,
    json: options.Json = False,
) -> None:
    """List the current subscriptions, or those at a version.

    A node is a distinct filter: subscriptions with equal filters share it. Subscriptions that a
    pipeline set aside, because their filters are refused now, are listed with the reason. The owner
    is the name that was given with --owner; if agents subscribed to a node, these agents are its
    owners.

    With --json, one line per subscription: id, node, filter, owner if there is one, dialect if it
    is not SQL, and refused (the reason) if it is set aside.
    """
    log = open_log(where)
    version = log.version if at is None else at
    state = log.state(version)
    found = state.subscriptions
    aside = _list_set_aside(log)
    if json:
        reasons = {one.id: one.reason for one in aside}
        for id_, (text, node) in found.items():
            said = {"refused": reasons[id_]} if id_ in reasons else {}
            more = _describe_origin(state.dialect(id_), state.owners.get(id_, ""))
            emit({"id": id_, "node": node, "filter": text, **more, **said})
        return
    rows = [
        (id_, node, text, state.owners.get(id_, ""), state.dialect(id_))
        for id_, (text, node) in found.items()
    ]
    shown = rows if every else rows[:MOST_ROWS]
    if shown:
        _show_rows(["id", "node#", "filter", "owner", "dialect"], shown)
        show_rest(len(rows) - len(shown), "more subscription")
    show_aside(aside)
    nodes = count_of(len({node for _, node in found.values()}), "distinct filter")
    say(f"version {version}: {count_of(len(rows), 'subscription')}, {nodes}")


def _list_set_aside(log: ChangeLog) -> Sequence[RefusedSubscription]:
    if not (log.path / "snapshots").is_dir():
        return ()  # no pipeline has used the log yet, so nothing is set aside
    from tidings.spark.loading import list_set_aside

    return list_set_aside(log)


def show_log(
    where: Where,
    after: Annotated[
        int | None,
        typer.Option(
            "--after",
            metavar="VERSION",
            help="Only changes after this version.",
            show_default=False,
        ),
    ] = None,
    every: options.All = False,
    json: options.Json = False,
) -> None:
    """Show the latest changes, or those after a version, in order.

    An adopted snapshot and a new declaration are shown as one row each.

    With --json, one line per change: version, id, node, filter (null if the subscription ended),
    owner if there is one, and dialect if it is not SQL. For an adopted snapshot: version, adopted
    (the number of subscriptions), nodes (the first and the last), and owner if there is one. For a
    declaration: version, attributes (names with types; null if nothing is declared), and extra.
    """
    log = open_log(where)
    latest = log.version
    if after is None:
        after = 0 if every else max(0, latest - MOST_ROWS)
    changes = log.entries(after, latest) if after <= latest else log.entries(after)
    if json:
        for one in changes:
            emit(_fields(one))
        return
    shown = changes if every else changes[:MOST_ROWS]
    if shown:
        _show_rows(["version#", "id", "node#", "filter", "owner", "dialect"], [*map(_row, shown)])
        show_rest(len(changes) - len(shown), "more change")
    say(f"the latest version is {latest}")


def repair_log(where: Where, json: options.Json = False) -> None:
    """Repair a damaged log: keep what is intact, and report what was lost.

    Data after the last intact change is moved into the folder `aside`, never removed. Versions and
    nodes that may have been assigned are not assigned again. If a batch of a pipeline was pinned to
    a lost version, the pipeline reports this and ends. An intact log is left unchanged.

    With --json, one object: version, problems, lost (pairs of first and last version), aside.
    """
    done = open_log(where).repair()
    if json:
        emit(done)
        return
    if not done.problems and not done.lost:
        say(f"the log is intact; the latest version is {done.version}")
        return
    for problem in done.problems:
        say(f"found: {problem}")
    for first, last in done.lost:
        say(f"lost: {f'version {first}' if first == last else f'versions {first} to {last}'}")
    if not done.lost:
        say("lost: no known change")
    if done.aside:
        say(f"moved aside: {done.aside}")
    say(
        f"version {done.version} is intact; use `subscriptions list` to find missing "
        "subscriptions, and add them again"
    )


def _fields(one: Change | Adoption | Declared) -> dict[str, object]:
    from tidings.store import Adoption, Declared

    if isinstance(one, Declared):
        found = one.declaration
        return {"version": one.version, "attributes": found.types, "extra": found.declared_extra}
    if isinstance(one, Adoption):
        nodes = one.first, one.version
        more = _describe_origin(SQL, one.owner)
        return {"version": one.version, "adopted": one.subscriptions, "nodes": nodes, **more}
    more = _describe_origin(one.dialect, one.owner)
    return {"version": one.version, "id": one.id, "node": one.node, "filter": one.filter, **more}


def _row(one: Change | Adoption | Declared) -> tuple[object, ...]:
    from tidings.store import Adoption, Declared

    if isinstance(one, Declared):
        types = one.declaration.types
        told = "nothing" if types is None else count_of(len(types), "attribute")
        return one.version, "", "", plain_text(f"declared {told}", "dim"), "", ""
    if isinstance(one, Adoption):
        many = count_of(one.subscriptions, "subscription")
        nodes = f"node {one.first}" if one.first == one.version else (
            f"nodes {one.first} to {one.version}")  # fmt: skip
        return one.version, "", "", plain_text(f"adopted {many}, {nodes}", "dim"), one.owner, ""
    if one.filter is None:
        return one.version, one.id, "", plain_text("ended", "dim"), "", ""
    return one.version, one.id, one.node, one.filter, one.owner, one.dialect


def _describe_origin(dialect: str, owner: str = "") -> dict[str, str]:
    """Owner and dialect for `--json`: an empty owner is left out, and so is the dialect if it is
    SQL."""
    said = {"owner": owner} if owner else {}
    return said if dialect == SQL else {**said, "dialect": dialect}


def _show_rows(columns: list[str], rows: Sequence[tuple[object, ...]]) -> None:
    """A table; the column of owners is left out if no subscription has an owner, and the column of
    dialects is left out if all filters are in SQL."""
    last = len(columns) - 2
    kept = [at for at in range(len(columns))
            if at < last or any(row[at] not in (SQL, "") for row in rows)]  # fmt: skip
    columns, rows = [columns[at] for at in kept], [tuple(row[at] for at in kept) for row in rows]
    show(table(columns, rows), "")


for _name, _command in (
    ("add", add_subscription),
    ("load", load_subscriptions),
    ("drop", drop_subscription),
    ("list", list_subscriptions),
    ("log", show_log),
    ("repair", repair_log),
):
    subscriptions.command(_name)(report_errors(_command))
