"""`tidings check`: shows what a filter means, and warns of anything odd about it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Annotated

import msgspec
import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import BAD_INPUT, BadInput, report
from tidings.cli.common.declared_types import read_types
from tidings.cli.common.screen import count_of, emit, facts, plain_text, show, table
from tidings.cli.common.subscription_files import FileSubscription, read_subscriptions
from tidings.cli.filters.anatomy import SEVERAL, Anatomy, FilterPart, dissect
from tidings.filters import ODDITIES


def check_filters(
    filters: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILTER", help="Filters to check.", hidden=True),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="A file of filters.", show_default=False),
    ] = None,
    filters_format: options.FiltersFormat = None,
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = options.DEFAULT_DIALECT,
    json: options.Json = False,
) -> int:
    """Show what a filter means, and warn of anything odd about it.

    A filter is a union of boxes; a box is a list of tests that must all pass. A filter with too
    many boxes is "wide" and is stored as a tree. A residual is a condition for which no index can
    be used, so it is evaluated for each event.

    With --json, one line per filter: id, filter, canonical, identity, wide, boxes (lists of term,
    set, residual), residuals, attributes, warnings (never-true, always-true, residual-only), note
    (why the filter can never match, or that it always matches).

    Exit code: 0 when all filters are accepted, 2 when one is refused.
    """
    if not filters and file is None:
        raise BadInput("found nothing to check, expected a filter in quotes, or --file FILE")
    declared = read_types(types, others)
    code = 0
    listed = read_subscriptions(file, filters_format) if file is not None else ()
    for one in chain(_number_filters(filters or []), listed):
        try:
            anatomy = dissect(one.parse(dialect, declared), one.text)
        except BadInput as problem:
            report(problem)
            code = BAD_INPUT
            continue
        if json:
            _emit(one, anatomy)
        else:
            _show(one, anatomy)
    return code


def _name_decider(part: FilterPart, wide: bool) -> str:
    if part.residual or (wide and part.term == SEVERAL):
        return "one by one"
    return "index"


def _number_filters(filters: list[str]) -> Iterable[FileSubscription]:
    """Number the filters of the command line."""
    for number, text in enumerate(filters, 1):
        yield FileSubscription(
            number, text, file="filter" if len(filters) == 1 else f"filter {number}"
        )


def _emit(one: FileSubscription, anatomy: Anatomy) -> None:
    emit({"id": one.id, **msgspec.structs.asdict(anatomy)})


def _show(one: FileSubscription, anatomy: Anatomy) -> None:
    count = "wide" if anatomy.wide else str(len(anatomy.boxes))
    rows: list[tuple[str, object]] = [
        ("canonical", anatomy.canonical),
        ("identity", anatomy.identity),
        ("attributes", ", ".join(anatomy.attributes) or "none"),
        ("boxes", count),
        ("residuals", "; ".join(anatomy.residuals) or "none"),
    ]
    rows.extend(
        ("warning", plain_text(f"{name}: {anatomy.note or ODDITIES[name]}", "yellow"))
        for name in anatomy.warnings
    )
    where = f"{one.where}: " if one.place else ""
    show(plain_text(where + anatomy.filter, "bold"), facts(rows), "")
    for number, box in enumerate(anatomy.boxes, 1):
        title = f"box {number}: {count_of(len(box), 'test')}"
        if anatomy.wide:
            title = f"{count_of(len(box), 'clause')}, all of which must hold"
        tests = [(p.term, p.set, _name_decider(p, anatomy.wide)) for p in box]
        show(plain_text(title, "bold"), table(["term", "set", "decided by"], tests), "")
