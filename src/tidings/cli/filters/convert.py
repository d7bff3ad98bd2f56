"""`tidings convert`: filters of one language in another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from tidings import Filter
from tidings.cli.common import options
from tidings.cli.common.declared import Declared, read_types
from tidings.cli.common.errors import BAD_INPUT, BadInput, cleaned, report
from tidings.cli.common.screen import emit, say
from tidings.cli.common.subscriptions import Subscription, read_subscriptions
from tidings.filters.dialects import DIALECTS
from tidings.filters.dialects.eventbridge import nested_attributes, without_nested


def convert_filters(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of filters; - for stdin.")],
    source: Annotated[
        str, typer.Option("--from", metavar="NAME", help="The language of the filters.")
    ],
    target: Annotated[
        str, typer.Option("--to", metavar="NAME", help="The language to write them in.")
    ] = "sql",
    single: Annotated[
        bool,
        typer.Option("--single", help="Attributes have single values: no lists, no structs."),
    ] = False,
    filters_format: options.FiltersFormat = None,
    types: options.Types = None,
    others: options.Others = False,
    json: options.Json = False,
) -> int:
    """Write filters of one language in another: --from eventbridge --to sql.

    One line per filter, in the order of the file. What the other language can't say is refused,
    with the line. Event patterns hold for values in lists too, which takes more than SQL, unless
    --types declares what the attributes are, or --single says that there are no lists.

    With --json, one line per filter: id, filter and, where there is one, subscriber; a file of
    these is a file of filters.

    Exit code: 0 when all filters are converted, 2 when one is refused.
    """
    _need(source, tuple(sorted(DIALECTS)), "--from")
    _need(target, tuple(sorted(_WRITERS)), "--to")
    declared = read_types(types, others)
    code = 0
    for one in read_subscriptions(file, filters_format):
        try:
            text = _converted(one, source, target, declared, single)
            if not json and cleaned(text) != text:
                raise BadInput(
                    f"{one.where}: found characters that can't be shown, expected --json"
                )
        except BadInput as problem:
            report(problem)
            code = BAD_INPUT
            continue
        if json:
            who = {} if one.subscriber is None else {"subscriber": one.subscriber}
            emit({"id": one.id, "filter": text, **who})
        else:
            say(text)
    return code


def _need(found: str, expected: tuple[str, ...], option: str) -> None:
    if found not in expected:
        raise BadInput(f"{option}: found '{found}', expected one of {', '.join(expected)}")


def _converted(
    one: Subscription, source: str, target: str, declared: Declared, single: bool
) -> str:
    parsed = one.parsed(source, declared)
    if single:
        parsed = Filter(without_nested(parsed.expression), declared.attributes)
    return _WRITERS[target](parsed, one.where)


def _sql(parsed: Filter, where: str) -> str:
    nested = nested_attributes(parsed.expression)
    if nested:
        several = "attributes" if len(nested) > 1 else "an attribute"
        raise BadInput(
            f"{where}: found {several} that may be nested, {', '.join(nested)}, which SQL can't "
            "say; expected --types with single values, or --single"
        )
    return parsed.sql()


_WRITERS: dict[str, Callable[[Filter, str], str]] = {"sql": _sql}
