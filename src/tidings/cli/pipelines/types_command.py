"""`tidings types`: prints the types of a file's columns, as a declaration that can be pasted."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import remark
from tidings.cli.common.screen import count_of, emit
from tidings.cli.pipelines.samples import MOST_ROWS, look_at_file
from tidings.model import write_declaration, write_path


def show_types(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="JSON, CSV, Parquet or Arrow; - for JSON on stdin."),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="json, csv, parquet or arrow; by default from the extension.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=1, help="JSON objects to look at.")
    ] = MOST_ROWS,
    json: options.Json = False,
) -> None:
    """Print the types of the columns of FILE, as a declaration.

    The output is TOML: a file for --types, or the [columns] of a pipeline or a rendezvous point.
    JSON is one object per line, or an array of objects. Fields whose values have no common type
    appear as comments.

    With --json, one object of names and types, which --types can read from a .json file.
    """
    found = look_at_file(file, form, rows)
    if json:
        emit({write_path((name,)): str(kind) for name, kind in found.types.items()})
    else:
        print(write_declaration(found.types, found.reasons), end="")
    if found.reasons:
        remark(f"{count_of(len(found.reasons), 'column')} without a type; declare a type for each")
