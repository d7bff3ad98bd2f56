"""All commands, as the program registers them, so no list of them has to be maintained."""

from __future__ import annotations

from collections.abc import Iterator

from tests.cli.conftest import app
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


def _commands_of(group: TyperGroup, *before: str) -> Iterator[tuple[str, TyperCommand]]:
    for name, one in group.commands.items():
        if isinstance(one, TyperGroup):
            yield from _commands_of(one, *before, name)
        else:
            assert isinstance(one, TyperCommand)
            yield " ".join((*before, name)), one


_ROOT = get_command(app)
assert isinstance(_ROOT, TyperGroup)

COMMANDS = dict(_commands_of(_ROOT))
"""By all words of its name: `check`, `bench match`."""
GROUPS = {"": _ROOT} | {
    name: one for name, one in _ROOT.commands.items() if isinstance(one, TyperGroup)
}
"""The program itself, and those of its commands that have others below them."""
