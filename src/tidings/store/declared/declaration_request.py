"""The command's side of a declaration: hands it to the owner of a folder. If the owner dies before
it answers, this module finds out whether the declaration was made."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tidings.model import EnvironmentProblem, TidingsError
from tidings.store import folder as f
from tidings.store.declared.declaration import DeclarationError
from tidings.store.owner import Declare, Died, Unowned, hand_declaration

PAUSE = 0.02  # seconds until an owner is asked again


def hand_over_declaration(
    folder: Path, asked: Declare, find: Callable[[], int | None], declare: Callable[[], int]
) -> int:
    """Let the owner of a folder declare attributes; return the version. `find` returns the version
    if the attributes are declared already, otherwise None. If nobody owns the folder any more,
    `declare` declares the attributes in this process; it raises Owned if there is another owner."""
    died = b""
    while True:
        try:
            return hand_declaration(folder, asked, find if died else lambda: None, but=died)
        except Died as problem:
            died = problem.instance
        except Unowned:
            try:
                return declare()
            except f.Owned:  # there is another owner now
                time.sleep(PAUSE)
        except EnvironmentProblem:
            raise
        except TidingsError as problem:  # the owner refuses the declaration
            raise DeclarationError(str(problem)) from None
