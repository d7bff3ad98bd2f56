"""The pipeline file that commands take as an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.common.arrow import load_pyarrow

if TYPE_CHECKING:
    from tidings.spark.pipeline import Settings

File = Annotated[str, typer.Argument(metavar="FILE", help="The pipeline file.", hidden=True)]


def settings_of(file: str) -> Settings:
    """Load the settings of a pipeline file."""
    load_pyarrow()
    from tidings.spark.pipeline import load_settings

    return load_settings(file)
