"""Reads events from a file or from stdin, one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tidings.cli.common import arrow, input_files
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.declared_types import DeclaredTypes
from tidings.model import NotificationError, drop_null_cells

FORMATS = ("json", "csv", "parquet")


def read_events(
    path: str, given: str | None, declared: DeclaredTypes, nulls: Iterable[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield the events of a file, with declared attributes in their declared types."""
    form = input_files.format_of(path, given, FORMATS, "--format")
    for where, event in _read_placed(path, form, declared, nulls):
        yield conform_event(event, declared, where)


def conform_event(event: dict[str, Any], declared: DeclaredTypes, where: str) -> dict[str, Any]:
    """Convert the declared attributes of an event to their declared types."""
    if declared.attributes is None:
        return event
    try:
        return declared.attributes.read(event)
    except NotificationError as problem:
        raise BadInput(f"{where}: {problem}") from None


def _read_placed(
    path: str, form: str, declared: DeclaredTypes, nulls: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    name = input_files.name_of(path)
    if form == "json":
        for line, event in input_files.read_objects(path):
            yield f"{name}, line {line}", event
        return
    if form == "csv":
        rows = arrow.read_csv(path, declared.names, nulls)
    else:
        rows = arrow.read_parquet(path)
    for index, event in enumerate(rows):
        yield f"{name}, event {index}", drop_null_cells(event)
