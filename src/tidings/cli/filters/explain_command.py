"""`tidings explain`: why an event matches a filter, or why it does not."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tidings import BoxReport, Explanation, TestReport
from tidings.cli.common import options
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.declared_types import DeclaredTypes, read_types
from tidings.cli.common.events import conform_event, read_events
from tidings.cli.common.input_files import object_of
from tidings.cli.common.screen import count_of, emit, plain_text, show, show_rest, table
from tidings.cli.common.subscription_files import FileSubscription, parse_all, read_subscriptions

FEW = 3  # how many alternatives are shown


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
    implications: Annotated[
        bool,
        typer.Option(
            "--implications",
            help="With --filters: for all filters, which tests were evaluated, which inferred.",
        ),
    ] = False,
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = options.DEFAULT_DIALECT,
    filters_format: options.FiltersFormat = None,
    format_: options.EventsFormat = None,
    nulls: options.Nulls = None,
    every: options.All = False,
    json: options.Json = False,
) -> int:
    """Show, test by test, why an event matches a filter or does not.

    A filter may have several alternatives; the closest one is shown first. An event pattern is
    explained field by field, in the terms of the pattern.

    With --implications, all filters of a file are evaluated together as decision diagrams. A test
    that follows from the outcomes of other tests is inferred, not evaluated.

    If parts of the filter have names, as in named('late', delay > 60), the command shows which of
    these parts are true.

    With --json, one object: filter, matched, reason, alternatives (lists of term, expected,
    actual, passed), and parts if there are any; with --implications: results, evaluated, inferred,
    node_steps.

    Exit code: 0 when the event matches, 1 when it does not, 2 on bad input. Exit code with
    --implications: 0, or 2 on bad input.
    """
    declared = read_types(types, others)
    if implications:
        from tidings.cli.filters.implications import show_implications

        if filters is None or filter_ is not None or id_ is not None:
            raise BadInput("--implications: expected --filters FILE, without --filter and --id")
        parsed_all = parse_all(read_subscriptions(filters, filters_format), dialect, declared)
        named = [(one.id, one_filter) for one, one_filter in parsed_all]
        given = _event(event, events, row, format_, declared, nulls or [])
        show_implications(named, given, filters, json)
        return 0
    subscription = _subscription(filter_, filters, id_, filters_format)
    parsed = subscription.parse(dialect, declared)
    given = _event(event, events, row, format_, declared, nulls or [])
    explanation = parsed.explain(given)
    if json:
        _emit(subscription, explanation)
    else:
        show(plain_text(subscription.text.strip(), "bold"))
        show_explanation(explanation, None if every else FEW)
    return 0 if explanation.matched else 1


def _subscription(
    text: str | None, path: str | None, wanted: str | None, given: str | None
) -> FileSubscription:
    if (text is None) == (path is None):
        raise BadInput("expected either --filter FILTER, or --filters FILE --id ID")
    if text is not None:
        return FileSubscription(1, text, file="filter")
    assert path is not None
    if wanted is None:
        raise BadInput(f"--filters {path}: found no --id, expected --id ID")
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


def _emit(subscription: FileSubscription, explanation: Explanation) -> None:
    found: dict[str, Any] = {
        "filter": subscription.text.strip(),
        "matched": explanation.matched,
        "reason": explanation.reason,
        "alternatives": [box.tests for box in explanation.boxes],
    }
    if explanation.parts:
        found["parts"] = explanation.parts
    emit(found)


# -- tables: one per alternative, the closest first -----------------------------------------------


def show_explanation(explanation: Explanation, most: int | None = FEW) -> None:
    """Print the verdict, the reason and the tests of at most `most` alternatives."""
    show(verdict(explanation), "")
    shown = explanation.boxes[:most]
    for number, box in enumerate(shown, 1):
        if len(explanation.boxes) > 1:
            show(
                plain_text(
                    f"alternative {number} of {len(explanation.boxes)}: {_state(box)}", "bold"
                )
            )
        show(_tests(box), "")
    show_rest(len(explanation.boxes) - len(shown), "more alternative")
    if explanation.parts:
        said = [
            (Text("true", "green") if true else Text("not true", "bold red"), name)
            for name, true in explanation.parts.items()
        ]
        show(table(["", "part"], said))


def verdict(explanation: Explanation) -> Text:
    """One line: `matches`, or `does not match` with the shortest reason."""
    if explanation.matched:
        return Text("matches", "bold green")
    reason = explanation.reason
    failed = explanation.boxes[0].failed if explanation.boxes else ()
    if failed:
        reason = "; ".join(
            f"expected {test.expected}, but {_term(test) or 'it'} is {test.actual}"
            for test in failed
        )
    return Text.assemble(("does not match", "bold red"), ": ", plain_text(reason))


def _term(test: TestReport) -> str:
    """The tested term; empty for a residual, because the residual is itself the term."""
    return test.term if test.term != test.expected else ""


def _state(box: BoxReport) -> str:
    failed = len(box.failed)
    return (
        f"{failed} of {count_of(len(box.tests), 'test')} failed" if failed else "all tests passed"
    )


def _tests(box: BoxReport) -> Table:
    rows = [
        (Text("pass", "green") if test.passed else Text("FAIL", "bold red"),
         test.expected, _term(test), test.actual)
        for test in sorted(box.tests, key=lambda test: test.passed)
    ]  # fmt: skip
    return table(["", "expected", "term", "actual"], rows)
