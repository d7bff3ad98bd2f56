"""The command's side of an adoption: hands a snapshot to the owner of a folder.

The owner may die before it answers. The name of the bulk ends with a random string that the command
chose, so the command can find out from the log whether the bulk was adopted.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.files import make_durable_folder
from tidings.store import folder as f
from tidings.store.owner import Adopt, Died, Unowned, hand_adoption
from tidings.store.reader import Reader, state_at

if TYPE_CHECKING:
    from tidings.snapshots import Snapshot

PAUSE = 0.02  # seconds until an owner is asked again


def hand_snapshot(
    folder: Path,
    snapshot: Snapshot,
    owner: str,
    settle: Callable[[], None],
    adopt: Callable[[], int],
) -> int:
    """Let the owner of a folder adopt a snapshot; return the version. If nobody owns the folder any
    more, `settle` is called, which makes the log readable after a dead owner, and then `adopt`,
    which adopts the snapshot in this process. If there is another owner, both functions raise
    Owned."""
    asked = Adopt(f"incoming-{(mark := uuid.uuid4().hex[:8])}", mark, owner)
    place, died = folder / f.BULKS / asked.name, b""

    def find() -> int:
        """The version of the bulk in the log; 0 if it is not there."""
        state = state_at(folder, Reader(folder).end())
        return next((one.version for one in state.bulks if one.name.endswith(mark)), 0)

    make_durable_folder(place.parent)
    snapshot.save(place)
    try:
        while True:
            try:
                return hand_adoption(folder, asked, find if died else lambda: 0, but=died)
            except Died as problem:
                died = problem.instance
            except Unowned:
                try:
                    settle()
                    return (find() if died else 0) or adopt()
                except f.Owned:  # there is another owner now
                    time.sleep(PAUSE)
    finally:
        shutil.rmtree(place, ignore_errors=True)
