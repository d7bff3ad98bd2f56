"""`tidings pipeline init`: writes a pipeline file for the data in a file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.common.command_errors import BadInput, remark
from tidings.cli.common.screen import relative_path, say
from tidings.cli.pipelines.samples import look_at_file
from tidings.model import DataType, write_declaration

_TEXT = """\
name = "{name}"
checkpoint = "checkpoint"
{extra}
[source]
kind = "files"
path = {path}
format = "{format}"

[subscriptions]
log = "subscriptions"

[outbox]
path = "outbox"

[trigger]
available_now = true
{columns}"""


def init_pipeline(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A file of the source: JSON lines, CSV, Parquet.")
    ],
    output: Annotated[
        str, typer.Option("--output", metavar="FILE", help="The pipeline file to write.")
    ] = "pipeline.toml",
) -> None:
    """Write a pipeline file for data like that in FILE.

    The pipeline reads all files in the folder of FILE, with the columns found in FILE, and the
    subscriptions in the folder "subscriptions" next to the pipeline file. An existing file is not
    overwritten.
    """
    target = Path(output)
    if target.exists():
        raise BadInput(f"{output}: the file exists, expected an unused name for --output")
    found = look_at_file(file)
    if found.format == "arrow":
        raise BadInput(f"{file}: found Arrow, expected JSON lines, CSV or Parquet")
    if found.format == "json" and Path(file).read_bytes().lstrip()[:1] == b"[":
        raise BadInput(f"{file}: found a JSON array, expected one object per line")
    folder = Path(file).absolute().parent
    path = os.path.relpath(folder, target.absolute().parent)
    if path == ".":
        raise BadInput(
            f"{output}: the outbox would be in the source's folder, {folder}; expected a pipeline "
            "file in another folder"
        )
    columns, reasons = _usable(found.types, dict(found.reasons), found.format)
    declared = write_declaration(columns, reasons)
    text = _TEXT.format(
        name=re.sub(r"[^A-Za-z0-9_-]+", "-", Path(file).stem).strip("-") or "pipeline",
        extra='extra = "keep"\n' if found.format == "json" else "",
        path='"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"',
        format=found.format,
        columns=f"\n[columns]\n{declared}" if found.format != "parquet" else "",
    )
    target.write_text(text, "utf-8")
    say(f"wrote {relative_path(str(target.absolute()))}")
    if reasons:
        remark(f"not declared: {', '.join(reasons)}")
    remark("next: tidings subscriptions add, then tidings pipeline check and run")


def _usable(
    types: dict[str, DataType], reasons: dict[str, str], form: str
) -> tuple[dict[str, DataType], dict[str, str]]:
    """The columns that a pipeline can have."""
    from tidings.spark.outbox import EXTRA
    from tidings.spark.pipeline import RESERVED

    reserved = (*RESERVED, EXTRA) if form == "json" else RESERVED
    columns: dict[str, DataType] = {}
    for name, kind in types.items():
        if name.lower() in reserved:
            reasons[name] = "the outbox uses this name"
        elif form == "csv" and kind.kind in ("list", "struct", "map"):
            reasons[name] = f"{kind} can't be read from text"
        else:
            columns[name] = kind
    return columns, reasons
