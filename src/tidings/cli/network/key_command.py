"""`tidings key`: makes a key with which a preprocessor signs grants."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.common.screen import say
from tidings.files import open_private
from tidings.model import EnvironmentProblem, toml_key, toml_text


def make_key(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write the private key.")],
) -> None:
    """Make a key with which a preprocessor signs grants, or a router signs tickets.

    FILE gets the private key, for `tidings preprocessor --key FILE`, or for ticket_key in a
    router's file; only its owner may read it. The public key is printed, as a line for [grants] in
    the files of routers, or for [tickets] in the file of a preprocessor.
    """
    from tidings.broker import Signer

    private, public = Signer.generate()
    try:
        handle = open_private(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        raise EnvironmentProblem(
            f"{file} exists already, expected a new file; existing keys are never overwritten"
        ) from None
    except OSError as problem:
        raise EnvironmentProblem(f"{file} can't be written: {problem.strerror}") from None
    with os.fdopen(handle, "w") as out:
        out.write(private + "\n")
    say(f"{toml_key(Path(file).stem)} = {toml_text(public)}")
