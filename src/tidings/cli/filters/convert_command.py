"""`tidings convert`: translates filters from one dialect to another."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import BAD_INPUT, BadInput, clean_text, report
from tidings.cli.common.declared_types import read_types
from tidings.cli.common.screen import emit, say
from tidings.cli.common.subscription_files import FileSubscription, note_odd, read_subscriptions
from tidings.filters import Filter
from tidings.filters.dialects import DIALECTS
from tidings.filters.language import Expression, nested_attributes, without_nested


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
        typer.Option("--single", help="Assume that no attribute is a list or a struct."),
    ] = False,
    filters_format: options.FiltersFormat = None,
    types: options.Types = None,
    others: options.Others = False,
    json: options.Json = False,
) -> int:
    """Translate filters from one language to another: --from eventbridge --to sql.

    Prints one line per filter, in the order of the file. A filter that the other language can't
    express is refused, with its line number. Some languages also match values inside lists. Other
    languages can't express this, so --types must declare the attributes, or --single must rule out
    lists.

    With --json, one line per filter: id, filter and, if there is one, subscriber. Commands can read
    the output as a file of filters. Notes on stderr name filters that never or always match.

    Exit code: 0 when all filters are converted, 2 when one is refused.
    """
    _need_one_of(source, tuple(sorted(DIALECTS)), "--from")
    writers = {name: one.write for name, one in DIALECTS.items() if one.write is not None}
    _need_one_of(target, tuple(sorted(writers)), "--to")
    declared = read_types(types, others)
    code = 0
    odd: list[tuple[FileSubscription, Filter]] = []
    for one in read_subscriptions(file, filters_format):
        try:
            parsed = one.parse(source, declared)
            if parsed.note:
                odd.append((one, parsed))
            text = writers[target](_plain_expression(one, parsed, target, single))
            if not json and clean_text(text) != text:
                raise BadInput(f"{one.where}: found characters that can't be shown; use --json")
        except BadInput as problem:
            report(problem)
            code = BAD_INPUT
            continue
        if json:
            who = {} if one.subscriber is None else {"subscriber": one.subscriber}
            emit({"id": one.id, "filter": text, **who})
        else:
            say(text)
    note_odd(odd)
    return code


def _need_one_of(found: str, expected: tuple[str, ...], option: str) -> None:
    if found not in expected:
        raise BadInput(f"{option}: found '{found}', expected one of {', '.join(expected)}")


def _plain_expression(
    one: FileSubscription, parsed: Filter, target: str, single: bool
) -> Expression:
    """The expression of a filter; raise BadInput if it tests values inside lists or structs."""
    expression = without_nested(parsed.expression) if single else parsed.expression
    nested = nested_attributes(expression)
    if nested:
        raise BadInput(
            f"{one.where}: {target} can't express a test of a value that may be a list or a "
            f"struct: {', '.join(nested)}; declare the types with --types, or use --single"
        )
    return expression
