"""Code that is shared by commands that connect to a router: options, tokens, notes about the
link, heartbeats of nodes."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from typing import Annotated, Any

import typer

from tidings.cli.common.command_errors import remark
from tidings.files import read_secret

Router = Annotated[
    str,
    typer.Option(
        "--router",
        metavar="ADDRESS",
        help="The router to connect to, or several: tidings://one,two.",
    ),
]
Token = Annotated[
    str,
    typer.Option(
        "--token",
        metavar="TOKEN",
        envvar="TIDINGS_TOKEN",
        help="The token for the router. `ps` shows a token on the command line to everybody on "
        "this machine; --token-file is safer.",
    ),
]
TokenFile = Annotated[
    str | None,
    typer.Option("--token-file", metavar="FILE", help="A file that contains the token."),
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The name that goes with the token."),
]
Authorities = Annotated[
    str | None,
    typer.Option(
        "--authorities", metavar="FILE", help="Trusted certificate authorities, for tidings+tls."
    ),
]
DEFAULT = "tidings://127.0.0.1:7400"
BEAT = 1.0  # seconds between heartbeats


def timeout_option(what: str) -> Any:
    """The option `--timeout` in seconds; `what` is its help text."""
    return typer.Option("--timeout", metavar="SECONDS", min=0.001, show_default=False, help=what)


def choose_token(given: str, file: str | None) -> str:
    """The token in the file if a file is named; otherwise, the given token. So a file takes
    precedence over a token from the environment."""
    if file is None:
        return given
    token, warning = read_secret(file)
    if warning:
        remark(warning)
    return token


def note_link(gone: str) -> None:
    """Print that the link to the router is lost, and why, or that it is restored."""
    if gone:
        remark(f"the router is gone: {gone}; trying to reach it again")
    else:
        remark("the router is back")


def run_async(work: Coroutine[Any, Any, Any]) -> Any:
    with contextlib.suppress(ImportError):
        import uvloop  # type: ignore[import-not-found]

        return uvloop.run(work)
    return asyncio.run(work)


async def beat_forever(out: int) -> None:
    """Write an empty line each second, so that the parent process sees that the event loop is
    alive. If the parent does not read, the node is not blocked."""
    os.set_blocking(out, False)
    while True:
        with contextlib.suppress(OSError):
            os.write(out, b"\n")
        await asyncio.sleep(BEAT)
