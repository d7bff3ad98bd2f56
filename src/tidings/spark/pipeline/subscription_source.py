"""The subscriptions of a pipeline: a fixed snapshot, or a log that the stream follows.

    log        1 2 3 ... 1000 ... 1007          every change has a version
    compiled   [ snapshot 1000 ]  +++++++       later changes are sent with the tasks

A batch uses one version. Changes since the snapshot are sent along with the tasks; when there are
many, a new snapshot is compiled in a separate process while batches continue. The last few
snapshots are kept, so that a repeated batch finds a snapshot that is old enough; log_snapshots.py
describes the folder. The driver and each worker verify the digests of a snapshot before they use
it.

The attributes are those that the channel declares. If a pipeline file names columns, they become
the first declaration of a new folder; in any other folder, they must agree with the existing
declaration. If the channel declares other attributes while the pipeline runs, the latest version is
compiled again, and the next batch uses the new attributes. A repeated batch uses the new
declaration too, but keeps its old version of the subscriptions.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from tidings.channel import Description
from tidings.files import scheme_of
from tidings.filters import Attributes
from tidings.model import TidingsError
from tidings.snapshots import Snapshot, View, identity_of
from tidings.spark.loading.background import Background, remove_left_overs
from tidings.spark.loading.log_filters import (
    Clash,
    PendingChanges,
    RefusedSubscription,
    Unfit,
    log_set_aside,
)
from tidings.spark.loading.log_snapshots import (
    NODES,
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
from tidings.spark.tagging.worker import Change, Pinned, view_of
from tidings.store import Accepting, ChangeLog, LogError

KEPT = 3  # snapshots that are kept


class FixedSubscriptions:
    """Subscriptions from a snapshot."""

    kind = "snapshot"
    life, description = 0, None  # a life and a description belong to channels only

    def __init__(self, path: str | Path) -> None:
        self.path = str(path) if scheme_of(path) else str(Path(path).absolute())
        snapshot = Snapshot.open(path)
        self.version = snapshot.number
        refused = snapshot.matcher.set_aside.items()
        log_set_aside([RefusedSubscription(None, text, reason) for text, reason in refused])
        self.identity = identity_of(path)
        self.name = f"the snapshot {self.path}"

    def latest(self) -> int:
        return self.version

    def pin(self, version: int) -> Pinned:
        if version != self.version:
            raise TidingsError(
                f"the snapshot {self.path} has version {self.version}, but the repeated batch "
                f"began with version {version}; restore the old snapshot"
            )
        return Pinned(self.path, version, identity=self.identity)

    def view(self, version: int) -> View:
        """The view of a version, in this process."""
        return view_of(self.pin(version))

    def compile_latest(self) -> None:
        """Do nothing: a fixed snapshot has no dropped subscriptions."""

    def close(self) -> None:
        pass


class FollowedSubscriptions:
    """Subscriptions from a log of changes."""

    kind = "log"
    identity = ""  # for a log, the version alone identifies the state
    life = 0  # only channels of a rendezvous point have a life

    def __init__(
        self,
        path: Path,
        attributes: Attributes | None = None,
        rebuild_after: int = 1_000,
        *,
        declares: bool = True,
    ) -> None:
        """`attributes` are the columns that the pipeline names. If the channel declares nothing
        yet, it declares these columns, unless `declares` is false."""
        self.log = ChangeLog(path, attributes)
        self.name = f"the log {self.log.path}"
        self.home = home_of(self.log.path)
        self.rebuild_after = rebuild_after
        self._compiler = Background()
        self._pending: tuple[Path, PendingChanges] | None = None
        with suppress(LogError):  # nothing is declared in a read-only folder
            if declares:
                self.log.declare_given()
        if self._base(self.log.version) is None:
            self._compile_latest()
        with suppress(FileNotFoundError):  # mark this snapshot as the last one used
            os.utime(self._path(self._compiled_versions()[-1]))
        log_set_aside(list_set_aside(self.log))

    @property
    def description(self) -> Description | None:
        """The declaration of the channel; see `describe_log`."""
        return describe_log(self.log)

    @property
    def version(self) -> int:
        """The latest acknowledged version."""
        return self.log.version

    def latest(self) -> int:
        """The same as `version`. A log can always be read, whereas the owner of a channel may not
        answer."""
        return self.log.version

    def pin(self, version: int) -> Pinned:
        """A version to send to tasks, based on the latest snapshot that is old enough."""
        base = self._base(version)
        try:
            if base is None:  # the repeated batch is older than all snapshots
                raise LogError("no snapshot is as old as the version of the batch")
            changes = self._changes_since(base, version) if version > base else ()
        except (LogError, Clash):  # perhaps the log has the state, but lacks the changes
            try:
                compile_version(self.log, version, self.home)
            except Clash as clash:
                raise _unclear(clash) from None
            base, changes = version, ()
        if len(changes) >= self.rebuild_after:
            self._compile(version, base)
        path = self._path(base)
        return Pinned(str(path), version, changes, identity_of(path))

    def _base(self, version: int) -> int | None:
        """The version of the latest intact snapshot that is old enough."""
        older = [number for number in self._compiled_versions() if number <= version]
        return next((one for one in reversed(older) if self._is_whole(one)), None)

    def _is_whole(self, version: int) -> bool:
        return is_whole(self.home, version, self.log.attributes, NODES)

    def _changes_since(self, base: int, version: int) -> tuple[Change, ...]:
        """The changes since a snapshot, up to a version."""
        path = self._path(base)
        if self._pending is None or self._pending[0] != path:
            self._pending = path, open_pending_changes(path, self.log.attributes)
        return self._pending[1].read(self.log.changes(base, version))

    def view(self, version: int) -> View:
        """The view of a version, in this process."""
        return view_of(self.pin(version))

    def compile_latest(self) -> None:
        """Compile the latest version, without the dropped subscriptions."""
        self._compile_latest()

    def _compile_latest(self) -> None:
        """Compile the latest version. In a log of an older release, subscriptions with different
        filters may share a node; in that case, the log first gives them nodes of their own."""
        try:
            compile_version(self.log, self.log.version, self.home)
        except Clash as clash:
            state = self.log.state()
            try:
                for id_ in clash.again:
                    self.log.put(id_, state.subscriptions[id_][0], state.dialect(id_))
            except (TidingsError, OSError) as problem:
                raise _unclear(clash) from problem
            compile_version(self.log, self.log.version, self.home)

    @property
    def numbers(self) -> Accepting | None:
        """The log that numbers the notifications; None if the folder is read-only."""
        return self.log.numbers if os.access(self.log.path, os.W_OK) else None

    def own(self) -> None:
        """Own the folder and make the changes of commands, which then need not read the log first.
        If another process owns the folder, or the folder is read-only, the pipeline follows it as a
        reader."""
        self.log.own()

    def disown(self) -> None:
        """Stop being the owner of the folder."""
        self.log.close()

    def close(self) -> None:
        """Wait for a running compilation, but not long."""
        self.log.close()
        self._compiler.close()

    def _compiled_versions(self) -> list[int]:
        """The versions that have snapshots, in order."""
        return versions_in(self.home, self.log.attributes)

    def _path(self, version: int) -> Path:
        return path_of(self.home, version, self.log.attributes)

    def _compile(self, version: int, base: int) -> None:
        if self._compiler.is_running:
            return
        for old in self._compiled_versions()[:-KEPT]:
            if old < base:  # keep `base`, however old: tasks are about to open it
                remove(self._path(old))
        remove_left_overs(self.home)
        told = str(self.log.path), str(version), str(self._path(base))
        self._compiler.start("tidings.spark.pipeline.subscription_source", *told)


def describe_log(log: ChangeLog) -> Description | None:
    """The declaration of a log's channel. None if the channel declares nothing, but the pipeline
    names columns: the folder is read-only, so the pipeline can't declare them there."""
    found = log.last_declaration.declaration
    if not found.text and log.attributes is not None:
        return None
    return Description(str(log.path), 0, found.types, found.extra or "", found.preprocessor)


def _unclear(clash: Clash) -> Unfit:
    first = clash.again[0]
    return Unfit(
        f"the subscription {first!r:.80} shares a node with another one, but their filters differ "
        f"under the channel's declaration; add it again with `tidings subscriptions add`"
    )


def main() -> int:
    """Compile a version of a log. The arguments are the log's folder, the version, and a snapshot
    that was compiled with the attributes of the channel."""
    folder, version, base = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    log = ChangeLog(folder)
    if not log.last_declaration.declaration.text:  # the folder is read-only, so nothing is declared
        log = ChangeLog(folder, attributes_of(base))
    compile_version(log, version, home_of(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
