"""The subscriptions of a pipeline: a snapshot that stays, or a log that a stream follows.

    log        1 2 3 ... 1000 ... 1007          every change has a version
    compiled   [ snapshot 1000 ]  +++++++       what came after rides along with the tasks

A batch asks for one version. Changes since the snapshot travel with its tasks; once there are many,
a new snapshot is compiled in a process of its own, and batches go on meanwhile. The last few
snapshots are kept, so that a repeated batch finds one that is old enough; log_snapshots.py says where.
Every byte of a snapshot is compared with its digest before a batch is matched with it, here and in
each worker.

A pipeline uses only what was compiled with its own columns. When they were changed in its file, the
latest version is compiled anew before the first batch. A batch that was begun with the columns
before is read by the new ones when it is done again, and so its version is compiled anew too: its
rows and its subscriptions are the same, and nothing of it was seen. restated.py says how filters
that were put under other columns are numbered.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tidings.filters import Attributes
from tidings.model import TidingsError
from tidings.snapshots import Snapshot, View, identity_of
from tidings.spark.loading.log_snapshots import (
    attributes_of,
    compile_version,
    home_of,
    is_whole,
    list_set_aside,
    open_pending_changes,
    path_of,
    remove,
    versions_in,
)
from tidings.spark.loading.restated import Aside, Clash, PendingChanges
from tidings.spark.tagging.worker import Change, Pinned, view_of
from tidings.store import ChangeLog, LogError

KEPT = 3  # snapshots
LEFT_OVER = 3600.0  # seconds after which an unfinished snapshot was left behind by a dead process
MOST_TOLD = 100  # subscriptions that are set aside with a line each
WAIT = 30.0  # seconds that a compilation is given to end when its pipeline stops
_log = logging.getLogger(__name__)


class FixedSubscriptions:
    """Subscriptions that stay as they are."""

    def __init__(self, path: Path) -> None:
        self.path = str(path.absolute())
        snapshot = Snapshot.open(path)
        self.version = snapshot.number
        refused = snapshot.matcher.set_aside.items()
        log_set_aside([Aside(None, text, reason) for text, reason in refused])
        self.identity = identity_of(path)

    def pinned(self, version: int) -> Pinned:
        if version != self.version:
            raise TidingsError(
                f"the snapshot {self.path} has version {self.version}, but the batch that is done "
                f"again began with version {version}; put the old snapshot back"
            )
        return Pinned(self.path, version, identity=self.identity)

    def view(self, version: int) -> View:
        """What subscribers want, in this process."""
        return view_of(self.pinned(version))

    def compile_latest(self) -> None:
        """There is nothing that was dropped since."""

    def close(self) -> None:
        pass


class FollowedSubscriptions:
    """Subscriptions as a log of changes has them."""

    identity = ""  # a version of a log says all

    def __init__(
        self, path: Path, attributes: Attributes | None = None, rebuild_after: int = 1_000
    ) -> None:
        self.log = ChangeLog(path, attributes)
        self.home = home_of(self.log.path)
        self.rebuild_after = rebuild_after
        self._compiler: subprocess.Popen[bytes] | None = None
        self._pending: tuple[Path, PendingChanges] | None = None
        if self._base(self.log.version) is None:
            compile_version(self.log, self.log.version, self.home)
        with suppress(FileNotFoundError):  # these columns are the ones that count now
            os.utime(self._path(self._compiled_versions()[-1]))
        log_set_aside(list_set_aside(self.log))

    @property
    def version(self) -> int:
        """The latest version that was acknowledged."""
        return self.log.version

    def pinned(self, version: int) -> Pinned:
        """A version as tasks are told of it, from the latest snapshot that is old enough."""
        base = self._base(version)
        try:
            if base is None:  # a batch is done again that is older than all snapshots
                raise LogError("there is no snapshot to begin with")
            changes = self._changes_since(base, version) if version > base else ()
        except (LogError, Clash):  # the log may have forgotten what came next, and have the state
            compile_version(self.log, version, self.home)
            base, changes = version, ()
        if len(changes) >= self.rebuild_after:
            self._compile(version, base)
        path = self._path(base)
        return Pinned(str(path), version, changes, identity_of(path))

    def _base(self, version: int) -> int | None:
        """The latest snapshot that is old enough, and whole: workers map what is named here."""
        older = [number for number in self._compiled_versions() if number <= version]
        return next((one for one in reversed(older) if is_whole(self.log, one, self.home)), None)

    def _changes_since(self, base: int, version: int) -> tuple[Change, ...]:
        """The changes after a snapshot, up to a version."""
        path = self._path(base)
        if self._pending is None or self._pending[0] != path:
            self._pending = path, open_pending_changes(path, self.log.attributes)
        return self._pending[1].read(self.log.keyed_changes(base, version))

    def view(self, version: int) -> View:
        """What subscribers want at a version, in this process."""
        return view_of(self.pinned(version))

    def compile_latest(self) -> None:
        """Have a snapshot without what was dropped."""
        compile_version(self.log, self.log.version, self.home)

    def close(self) -> None:
        """Wait for a compilation that is under way, for a while."""
        if self._compiler is not None:
            try:
                self._compiler.wait(WAIT)
            except subprocess.TimeoutExpired:
                self._compiler.kill()
                self._compiler.wait()

    def _compiled_versions(self) -> list[int]:
        """The versions that there are snapshots of, in order."""
        return versions_in(self.home, self.log.attributes)

    def _path(self, version: int) -> Path:
        return path_of(self.home, version, self.log.attributes)

    def _compile(self, version: int, base: int) -> None:
        if self._compiler is not None and self._compiler.poll() is None:
            return
        for old in self._compiled_versions()[:-KEPT]:
            if old < base:  # tasks are about to open that one, and it may be old
                remove(self._path(old))
        for hidden in self.home.glob(".*"):
            with suppress(FileNotFoundError):
                if hidden.stat().st_mtime < time.time() - LEFT_OVER:
                    shutil.rmtree(hidden, ignore_errors=True)
        told = str(self.log.path), str(version), str(self._path(base))
        command = [sys.executable, "-m", "tidings.spark.pipeline.subscription_source", *told]
        # in a session of its own: Ctrl-C at the terminal is for the pipeline alone
        self._compiler = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def log_set_aside(found: Sequence[Aside]) -> None:
    """A line for each subscription that is left out, as far as there are few."""
    for one in found[:MOST_TOLD]:
        who = "a subscription" if one.id is None else f"the subscription {one.id!r}"
        _log.warning(
            "%s is set aside, its filter is refused now: %s, in %.200r; put another in its place, "
            "or drop it", who, one.reason, one.filter,
        )  # fmt: skip
    if len(found) > MOST_TOLD:
        _log.warning("%d subscriptions are set aside in all", len(found))


def main() -> int:
    """Compile a version of a log: the arguments are the log's folder, the version, and a snapshot
    that was compiled with the columns of the pipeline."""
    folder, version, base = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    compile_version(ChangeLog(folder, attributes_of(base)), version, home_of(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
