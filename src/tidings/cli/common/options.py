"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Types = Annotated[
    str | None,
    typer.Option(
        "--types",
        metavar="FILE|NAME=TYPE,…",
        help="Declared attributes: a .json or .toml file of names and types, or name=type,… "
        "Types: boolean, integer, double, decimal(10, 2), string, date, timestamp, list<type>, "
        "struct<name: type, ...>, map<type, type>.",
        show_default=False,
    ),
]
Others = Annotated[
    bool,
    typer.Option("--others", help="Filters may use names that --types does not declare."),
]
DEFAULT_DIALECT = "sql"
Dialect = Annotated[
    str, typer.Option("--dialect", metavar="NAME", help="The language of the filters.")
]
Cores = Annotated[int, typer.Option("--cores", metavar="N", min=1, help="Cores for Spark to use.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
All = Annotated[bool, typer.Option("--all", help="Show every row, however many there are.")]
Force = Annotated[bool, typer.Option("--force", help="Accept a filter that can never match.")]
FiltersFormat = Annotated[
    str | None,
    typer.Option(
        "--filters-format",
        metavar="FORMAT",
        help="Format of the filters: text, json, csv or parquet; by default from the extension.",
        show_default=False,
    ),
]
EventsFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Format of the events: json, csv or parquet; by default from the extension.",
        show_default=False,
    ),
]
Nulls = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TEXT",
        help="Text that means null in CSV, like an empty field; may be repeated.",
        show_default=False,
    ),
]
