"""The subscriptions of a pipeline that follows a channel.

    batch begins ──> owner: changes since?  ──> mirror, on disk ──> the version is pinned
    batch repeats ───────────────────────────> mirror: the pinned version, whatever the owner says

The pipeline asks the owner for changes whenever a batch begins. So the batch uses every interest
that was acknowledged before this request was made. If the owner does not answer, the batch waits.

The columns of the pipeline are the attributes that the channel declares. If the channel is revised,
and gets another ontology or other attributes, the next batch uses the revised declaration: the
filters of all nodes are parsed with it, and the mirror compiles a new snapshot. A repeated batch
uses the revised declaration too, but keeps its old version of the subscriptions.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

import msgspec

from tidings.channel import Changes, Description
from tidings.filters import Attributes
from tidings.model import Extra, TidingsError, need_extra
from tidings.network import TimedOut
from tidings.preprocessing import KindDefinition, restore_attributes
from tidings.snapshots import View
from tidings.spark.channel.mirror import Mirror, Unknown
from tidings.spark.channel.owner import ChannelOwner
from tidings.spark.loading.log_filters import log_set_aside
from tidings.spark.outbox.sealed_files import read_sealed, write_sealed
from tidings.spark.tagging.channel_kinds import ChannelKind, kind_of
from tidings.spark.tagging.worker import Pinned, view_of

DESCRIPTION = "description.json"
SWITCHED_OFF = 60.0  # seconds within which the owner must switch off a predicate
_log = logging.getLogger(__name__)


class FollowedChannel:
    """Subscriptions from a channel: the nodes of the channel."""

    kind = "channel"
    identity = ""  # a channel is identified by its life and version instead

    def __init__(self, owner: ChannelOwner, folder: Path, rebuild_after: int = 1_000) -> None:
        """`folder` is where the mirror is, or will be."""
        self.owner = owner
        self.name = f"the channel {owner.address}"
        self._folder = folder
        self._rebuild_after = rebuild_after
        self._is_revised = False  # whether the set-aside nodes must be listed again
        self.description = self._describe()
        self._need_kind()
        self._mirror = self._open(self.description.life)
        if self._mirror.version is None:
            self._follow()
        log_set_aside(self._mirror.list_set_aside())

    @property
    def life(self) -> int:
        """The life of the channel, within which node numbers are valid."""
        return self.description.life

    @property
    def attributes(self) -> Attributes | None:
        return attributes_of(self.description)

    @property
    def version(self) -> int:
        """The latest version that is known in this process."""
        found = self._mirror.version
        assert found is not None  # `__init__` has filled the mirror
        return found

    def latest(self) -> int:
        """The owner's latest version of the channel. This call waits for the owner. When it
        returns, the mirror has the version, and `description` is the description at the version."""
        seen = -1
        while True:
            self._take(self.owner.describe())
            told = self._follow()
            if not told.whole or told.version == seen:
                return told.version
            # After a revision, the owner sends all nodes again; the description that was read
            # before the request may be out of date. The next request also acknowledges the new
            # version.
            seen = told.version

    def _take(self, now: Description) -> None:
        """Use this description from now on."""
        before = self.description
        if now == before:
            return
        if now.life != before.life:
            _log.warning(
                "the channel %s began a new life: its journal was lost or replaced, and its nodes "
                "get new numbers", self.owner.address,
            )  # fmt: skip
        self._mirror.close()
        self._keep(now)
        self._need_kind()
        self._mirror = self._open(now.life)
        if _declared_in(now) != _declared_in(before):
            _log.warning("the channel %s was revised", self.owner.address)
            self._is_revised = True

    def switch_off(self, predicate: str, reason: str) -> None:
        """Ask the owner to switch off a predicate that fails in this process (docs/interests.md).
        The owner then switches the predicate off for everybody. Raise TidingsError if the owner
        has not done so after SWITCHED_OFF seconds."""
        version = KindDefinition.decode(self.description.preprocessor).predicates.get(predicate, "")
        limit = time.monotonic() + SWITCHED_OFF
        self.owner.report_fault(predicate, version, reason)
        while predicate not in KindDefinition.decode(self.owner.describe().preprocessor).off:
            if time.monotonic() > limit:
                raise TidingsError(
                    f"the predicate '{predicate}' fails here ({reason}), and {self.name} does not "
                    "switch it off"
                )
            time.sleep(0.1)
        _log.error("the predicate '%s' is switched off: %s", predicate, reason)
        self.latest()

    def pin(self, version: int) -> Pinned:
        """A version to send to tasks. If the mirror has lost the version, the owner is asked for
        it."""
        try:
            return self._mirror.pin(version)
        except Unknown:
            self._mirror.put(self.owner.changes(0, 0))
            return self._mirror.pin(version)

    def view(self, version: int) -> View:
        """The view of a version, in this process."""
        return view_of(self.pin(version))

    def compile_latest(self) -> None:
        """Compile the latest version, without the nodes that have ended."""
        self._mirror.compile(self.version)

    def close(self) -> None:
        self._mirror.close()
        self.owner.close()

    def _follow(self) -> Changes:
        known = self._mirror.version
        told = self.owner.changes(known or 0, 0 if known is None else self.life)
        if told.life != self.life:
            raise TidingsError(
                f"{self.name} began a new life during the request; start the pipeline again"
            )
        if known is not None and told.version < known:
            raise TidingsError(
                f"{self.name} is at version {told.version}, but it was at "
                f"version {known} before; check that it has its latest journal"
            )
        self._mirror.put(told)
        if self._is_revised:
            log_set_aside(self._mirror.list_set_aside())
            self._is_revised = False
        return told

    def _describe(self) -> Description:
        """The owner's current description; if the owner does not answer, its last description."""
        known = read_description(self._folder)
        try:
            now = self.owner.describe(patient=known is None)
        except TimedOut as problem:
            if known is None:  # only in a check, which does not wait for the owner
                raise
            _log.warning("the channel %s does not answer: %s", self.owner.address, problem)
            return known
        if now != known:
            self._keep(now)
        return now

    @property
    def kind_told(self) -> ChannelKind | None:
        return kind_told(self.description)

    def _need_kind(self) -> None:
        """Raise EnvironmentProblem if this process does not have the class that the channel
        uses; workers check this too."""
        told = kind_told(self.description)
        if told is not None:
            kind_of(told)

    def _keep(self, now: Description) -> None:
        self.description = now
        write_sealed(self._folder / DESCRIPTION, msgspec.json.encode(now))

    def _open(self, life: int) -> Mirror:
        return Mirror(
            self._folder / str(life), self.attributes, self._rebuild_after, self.kind_told
        )


def read_description(folder: Path) -> Description | None:
    """The owner's last description; None if there is none."""
    data = read_sealed(folder / DESCRIPTION)
    return None if data is None else msgspec.json.decode(data, type=Description)


def open_mirror(folder: Path) -> Mirror | None:
    """The mirror in a folder, for readers; None if there is none."""
    said = read_description(folder)
    return None if said is None else _open_mirror(folder, said)


def _open_mirror(folder: Path, said: Description) -> Mirror:
    return Mirror(folder / str(said.life), attributes_of(said), kind=kind_told(said))


def attributes_of(said: Description) -> Attributes | None:
    """The attributes that a channel declares."""
    definition = KindDefinition.decode(said.preprocessor)
    return restore_attributes(said.attributes, extra_of(said), definition)


def _declared_in(said: Description) -> tuple[object, ...]:
    return said.attributes, said.extra, said.preprocessor


def kind_told(said: Description) -> ChannelKind | None:
    """The kind of a channel, for workers; None if all interests are filters without predicates."""
    definition = KindDefinition.decode(said.preprocessor)
    if definition.kind == "content" and not definition.predicates:
        return None
    return ChannelKind(said.attributes, said.extra, said.preprocessor)


def is_read_by_class(said: Description) -> bool:
    """Whether a class of an application reads the rows. The declared attributes of such a channel
    are those that the class returns, not the columns of the rows."""
    return KindDefinition.decode(said.preprocessor).kind == "application"


def extra_of(said: Description) -> Extra | None:
    return need_extra(said.extra) if said.attributes is not None else None
