"""The pipeline file that commands take as an argument."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.common.arrow import load_pyarrow

if TYPE_CHECKING:
    from tidings.spark.outbox import OutboxReader
    from tidings.spark.pipeline import Settings

File = Annotated[str, typer.Argument(metavar="FILE", help="The pipeline file.", hidden=True)]
Where = Annotated[
    str, typer.Argument(metavar="WHERE", help="A pipeline file, or an outbox.", hidden=True)
]


def settings_of(file: str) -> Settings:
    """Load the settings of a pipeline file."""
    load_pyarrow()
    from tidings.spark.pipeline import load_settings

    return load_settings(file)


def outbox_of(where: str) -> OutboxReader:
    """The outbox of a pipeline file, in a folder, or at an address."""
    load_pyarrow()
    from tidings.spark.outbox import OutboxReader

    path = Path(where)
    if path.suffix == ".toml" and not path.is_dir():
        settings = settings_of(where)
        return OutboxReader(settings.at(settings.outbox.path))
    return OutboxReader(where)
