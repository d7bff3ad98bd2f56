"""The subscriptions of a pipeline: a snapshot that stays, or a log that a stream follows.

    log        1 2 3 ... 1000 ... 1007          every change has a version
    compiled   [ snapshot 1000 ]  +++++++       what came after rides along with the tasks

A batch asks for one version. Changes since the snapshot travel with its tasks; once there are many,
a new snapshot is compiled in a process of its own, and batches go on meanwhile. Snapshots lie in
`snapshots/` beside the log, each named by its version; the last few are kept, so that a batch that
is done again finds one that is old enough.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tidings.filters import Attributes
from tidings.model import TidingsError
from tidings.snapshots import Snapshot, View, identity_of
from tidings.snapshots.building import Distinct, build_nodes
from tidings.spark.durable import sync
from tidings.spark.worker import Change, Pinned, view_of
from tidings.store import ChangeLog, LogError

KEPT = 3  # snapshots
LEFT_OVER = 3600.0  # seconds after which an unfinished snapshot was left behind by a dead process
WAIT = 30.0  # seconds that a compilation is given to end when its pipeline stops


class Fixed:
    """Subscriptions that stay as they are."""

    def __init__(self, path: Path) -> None:
        self.path = str(path.absolute())
        self.version = Snapshot.open(path).number
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

    def close(self) -> None:
        pass


class Followed:
    """Subscriptions as a log of changes has them."""

    identity = ""  # a version of a log says all

    def __init__(
        self, path: Path, attributes: Attributes | None = None, rebuild_after: int = 1_000
    ) -> None:
        self.log = ChangeLog(path, attributes)
        self.home = self.log.path.absolute() / "snapshots"
        self.rebuild_after = rebuild_after
        self._compiler: subprocess.Popen[bytes] | None = None
        if not self._compiled():
            compile_version(self.log, self.log.version, self.home)

    @property
    def version(self) -> int:
        """The latest version that was acknowledged."""
        return self.log.version

    def pinned(self, version: int) -> Pinned:
        """A version as tasks are told of it, from the latest snapshot that is old enough."""
        base = max((number for number in self._compiled() if number <= version), default=None)
        try:
            if base is None:  # a batch is done again that is older than all snapshots
                raise LogError("there is no snapshot to begin with")
            changes = self.log.changes(base, version) if version > base else []
        except LogError:  # the log may have forgotten what came next, and still have the state
            compile_version(self.log, version, self.home)
            base, changes = version, []
        if len(changes) >= self.rebuild_after:
            self._compile(version, base)
        travelling = tuple(Change(c.version, c.id, c.filter, c.node) for c in changes)
        path = self.home / _name(base)
        return Pinned(str(path), version, travelling, identity_of(path))

    def view(self, version: int) -> View:
        """What subscribers want at a version, in this process."""
        return view_of(self.pinned(version))

    def close(self) -> None:
        """Wait for a compilation that is under way, for a while."""
        if self._compiler is not None:
            try:
                self._compiler.wait(WAIT)
            except subprocess.TimeoutExpired:
                self._compiler.kill()
                self._compiler.wait()

    def _compiled(self) -> list[int]:
        """The versions that there are snapshots of, in order."""
        return sorted(int(path.name) for path in self.home.glob("[0-9]*"))

    def _compile(self, version: int, base: int) -> None:
        if self._compiler is not None and self._compiler.poll() is None:
            return
        for old in self._compiled()[:-KEPT]:
            if old < base:  # tasks are about to open that one, and it may be old
                _remove(self.home / _name(old))
        for hidden in self.home.glob(".*"):
            with suppress(FileNotFoundError):
                if hidden.stat().st_mtime < time.time() - LEFT_OVER:
                    shutil.rmtree(hidden, ignore_errors=True)
        command = [sys.executable, "-m", "tidings.spark.live", str(self.log.path), str(version)]
        # in a session of its own: Ctrl-C at the terminal is for the pipeline alone
        self._compiler = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def compile_version(log: ChangeLog, version: int, home: Path) -> Path:
    """Write the snapshot of a version of a log. One that is there stays: tasks may be opening it,
    and what another process made of the same version is as good."""
    path = home / _name(version)
    if path.exists():
        return path
    distinct = Distinct(log.attributes, log.functions)
    numbers: dict[bytes, int] = {}
    subscriptions: Mapping[str | int, tuple[str, int]] = log.subscriptions(version)
    for id_, (text, node) in subscriptions.items():
        numbers[distinct.add(id_, text)] = node
    beside = home / f".{_name(version)}.{uuid.uuid4().hex}"
    Snapshot(version, *build_nodes(distinct, numbers)).save(beside)
    try:
        beside.rename(path)  # fails when there is one
        sync(home)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        if not path.exists():
            raise
    return path


def _remove(snapshot: Path) -> None:
    """Remove a snapshot at one stroke: half of one would be taken for a whole."""
    hidden = snapshot.with_name(f".{snapshot.name}.{uuid.uuid4().hex}")
    with suppress(FileNotFoundError):
        snapshot.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def _name(version: int) -> str:
    return f"{version:020d}"


def main() -> int:
    """Compile a version of a log: the log's folder and the version are the arguments. Declared
    attributes come from the snapshot before."""
    folder, version = Path(sys.argv[1]), int(sys.argv[2])
    home = folder.absolute() / "snapshots"
    last = max(home.glob("[0-9]*"))
    attributes = Snapshot.open(last, verify=False).attributes
    compile_version(ChangeLog(folder, attributes), version, home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
