"""`tidings explain`: why an event matches a filter, or why it does not."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from tidings import Explanation
from tidings.cli.common import options
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.declared_types import DeclaredTypes, read_types
from tidings.cli.common.events import conform_event, read_events
from tidings.cli.common.input_files import object_of
from tidings.cli.common.screen import emit, plain_text, show
from tidings.cli.common.subscription_files import Subscription, read_subscriptions
from tidings.cli.filters import pattern_explanation
from tidings.cli.filters.explanation_view import FEW, show_explanation


def explain_event(
    filter_: Annotated[
        str | None, typer.Option("--filter", metavar="FILTER", help="The filter, in quotes.")
    ] = None,
    filters: Annotated[
        str | None, typer.Option("--filters", metavar="FILE", help="Or a file of filters, …")
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="… and the id of one of them.")
    ] = None,
    event: Annotated[
        str | None, typer.Option("--event", metavar="JSON", help="The event, a JSON object.")
    ] = None,
    events: Annotated[
        str | None,
        typer.Option("--events", metavar="FILE", help="Or a file of events (- is stdin), …"),
    ] = None,
    row: Annotated[
        int, typer.Option("--row", metavar="N", min=0, help="… and which of them, from 0.")
    ] = 0,
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = "sql",
    filters_format: options.FiltersFormat = None,
    format_: options.EventsFormat = None,
    nulls: options.Nulls = None,
    every: options.All = False,
    json: options.Json = False,
) -> int:
    """Show, test by test, why an event matches a filter or does not.

    A filter may have several alternatives; the closest one is shown first. An event pattern is
    explained field by field, in its own words.

    With --json, one object: filter, matched, reason, alternatives (lists of term, expected,
    actual, passed).

    Exit code: 0 when the event matches, 1 when it does not, 2 on bad input.
    """
    declared = read_types(types, others)
    subscription = _subscription(filter_, filters, id_, filters_format)
    parsed = subscription.parse(dialect, declared)
    given = _event(event, events, row, format_, declared, nulls or [])
    if dialect == pattern_explanation.DIALECT:
        text = subscription.text
        explanation = pattern_explanation.explain_pattern(text, given, parsed.matches(given))
    else:
        explanation = parsed.explain(given)
    if json:
        _emit(subscription, explanation)
    else:
        show(plain_text(subscription.text.strip(), "bold"))
        show_explanation(explanation, None if every else FEW)
    return 0 if explanation.matched else 1


def _subscription(
    text: str | None, path: str | None, wanted: str | None, given: str | None
) -> Subscription:
    if (text is None) == (path is None):
        raise BadInput("expected either --filter FILTER, or --filters FILE --id ID")
    if text is not None:
        return Subscription(1, text, file="filter")
    assert path is not None
    if wanted is None:
        raise BadInput(f"--filters {path}: also expected --id ID")
    for one in read_subscriptions(path, given):
        if str(one.id) == wanted:
            return one
    raise BadInput(f"{path}: there is no filter with the id '{wanted}'")


def _event(
    text: str | None,
    path: str | None,
    row: int,
    given: str | None,
    declared: DeclaredTypes,
    nulls: list[str],
) -> dict[str, Any]:
    if (text is None) == (path is None):
        raise BadInput("expected either --event JSON, or --events FILE --row N")
    if text is not None:
        return conform_event(object_of(text, "event"), declared, "event")
    assert path is not None
    found = next(islice(read_events(path, given, declared, nulls), row, None), None)
    if found is None:
        raise BadInput(f"{path}: there is no event {row}; events are counted from 0")
    return found


def _emit(subscription: Subscription, explanation: Explanation) -> None:
    emit(
        {
            "filter": subscription.text.strip(),
            "matched": explanation.matched,
            "reason": explanation.reason,
            "alternatives": [box.tests for box in explanation.boxes],
        }
    )
