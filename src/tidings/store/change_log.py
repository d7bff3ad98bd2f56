"""ChangeLog: the named subscriptions of a channel, and the changes to them, in order and durable.

Every change has a version. Readers that pin the same version see the same subscriptions, in any
process, as long as the log still has that version:

    put, drop ----> [ 1 ][ 2 ][ 3 ] ... [ 7 ]     version = 7
                                                  subscriptions(3), then changes(after=3)

On disk, the changes are entries of the channel's log. If the channel has a rendezvous point, it
writes to the same log: see folder.py and journal/entries.py. So commands, pipelines and the
rendezvous point use the same versions and the same node numbers. If the rendezvous point created a
node for agents, the node counts here as a subscription, whose id is derived from the number of the
node.

reader.py follows a log, and writer.py appends to it. Before a log is read or written,
log_opening.py makes it readable.

Threads that write at the same time share one sync: the first of them appends the changes of all
waiting threads as one group.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidings.files import local_path
from tidings.filters import Attributes, Filter, parse
from tidings.model import (
    EnvironmentProblem,
    FilterError,
    Id,
    RefusedFilters,
    TidingsError,
    id_pairs,
    need_id,
)
from tidings.store import folder as f
from tidings.store.change_records import SEGMENT_BYTES, AdoptedHere, Found, LogError
from tidings.store.compaction import KEPT_SECONDS, forget, last_version_before
from tidings.store.declared import (
    DeclarationError,
    DeclarationReader,
    LastDeclaration,
    StoredDeclaration,
    StoredFilter,
    find_difference,
    hand_over_declaration,
    may_store,
    need_fit,
)
from tidings.store.journal import FileJournal
from tidings.store.journal.entries import Adopted, Renewed
from tidings.store.journal.losses import version_in
from tidings.store.journal.rows import SQL
from tidings.store.known_log import RequestedChange
from tidings.store.layered import own_part
from tidings.store.log_contents import (
    Adoption,
    Change,
    Declared,
    KeyedChange,
    Repair,
    State,
    Subscriptions,
    Summary,
    change_of,
    read_state,
    stored_filters,
)
from tidings.store.log_opening import settle
from tidings.store.numbers import Accepting
from tidings.store.owner import (
    Asked,
    Declare,
    Died,
    Ownership,
    Unowned,
    ask_for_folder,
    find_versions,
    hand_over,
)
from tidings.store.reader import Reader, state_at
from tidings.store.writer import PendingGroup, Redeclared, Writer

if TYPE_CHECKING:
    from tidings.snapshots import Snapshot

Functions = Mapping[str, Callable[..., Any]]
T = TypeVar("T")
MOST_OWNER = 200  # characters
PAUSE = 0.02  # seconds until an owner is asked again

_log = logging.getLogger(__name__)


class ChangeLog:
    """The subscriptions in a channel's folder; any number of threads and processes on one machine
    may share it. If another process owns the folder, it makes the changes: see owner/.

    Filters are checked and compared with the attributes that the channel declares (declared/), and
    with `functions`, so all writers should use the same functions. `attributes` are those that the
    caller expects: if the channel declares none yet, and never had a rendezvous point, the first
    change declares them; otherwise each of them must be declared with the same type. Filters
    already in the log keep their nodes when the declaration changes. Ids are strings or integers,
    and the ids of all current subscriptions are of the same kind. When a file reaches
    `segment_bytes`, the next group begins a new file.
    """

    def __init__(
        self,
        path: str | Path,
        attributes: Attributes | None = None,
        functions: Functions | None = None,
        *,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.path = local_path(path, "a log of subscriptions")
        self._given = attributes
        self._current = attributes  # the attributes as last read, for `_key_of`
        self.functions = functions
        try:
            f.make_folder(self.path)
        except OSError as problem:
            raise LogError(f"can't open a log in '{path}': {problem.strerror}") from problem
        self._reader = Reader(self.path)
        self._declared = DeclarationReader(self.path)
        self._is_settled = False
        self._writer = Writer(self.path, segment_bytes, self._key_of)
        self._writing = threading.Lock()
        self._waiting: deque[PendingGroup] = deque()
        self._ownership: Ownership | None = None
        self.numbers = Accepting(self.path / f.NUMBERS)
        """Numbers the notifications that pipelines find for these subscriptions."""

    # -- writing -------------------------------------------------------------------------------

    def put(self, id: Id, filter: str | Filter, dialect: str = SQL, *, owner: str = "") -> int:
        """Set the filter of an id; return the version once the change is on the disk. The log keeps
        the text of a filter and its dialect; a Filter is kept as SQL. `owner` is the owner of the
        subscription; without it, a subscription that is replaced keeps its owner."""
        need_owner(owner)
        return self._commit(lambda known: [self._request(id, filter, dialect, owner, known)])

    def put_many(
        self,
        pairs: Iterable[tuple[Id, str | Filter]] | Mapping[Any, str | Filter],
        dialect: str = SQL,
        *,
        owner: str = "",
    ) -> int:
        """Set the filters of many ids, given as pairs or a mapping; return the last version. Each
        change has its own version.

        The pairs are acknowledged together: all of them are stored, or none. If filters are
        refused, RefusedFilters lists all of them.
        """
        need_owner(owner)
        listed = [*id_pairs(pairs)]

        def make(known: Attributes | None) -> list[RequestedChange]:
            changes = []
            refused: dict[Id, FilterError] = {}
            for id_, filter_ in listed:
                try:
                    changes.append(self._request(id_, filter_, dialect, owner, known))
                except FilterError as problem:
                    refused[id_] = problem
            if refused:
                raise RefusedFilters(refused, len(changes) + len(refused))
            return changes

        return self._commit(make) if listed else self.version

    def drop(self, id: Id) -> int:
        """End the subscription of an id; return the version once the change is on the disk."""
        need_id(id)
        return self._commit_changes([RequestedChange(id, None)], None)

    def adopt(self, snapshot: Snapshot, *, owner: str = "") -> int:
        """Adopt all subscriptions of a snapshot as one version; return the version. The nodes get
        the numbers up to that version. The snapshot must have been compiled with attributes of the
        channel; if the channel declares none yet, it declares those of the snapshot. An id that is
        already subscribed is refused. A filter that already has a node keeps that node. A pipeline
        that owns the folder stops being the owner for this; a rendezvous point adopts the snapshot
        itself."""
        need_owner(owner)
        self._need_same(snapshot)
        with self._writing:
            try:
                self._settle()
                with self._drop_old_files_after():
                    try:
                        return self._writer.adopt(snapshot, owner)
                    except f.Owned:  # a pipeline disowns the folder, and then follows the log
                        if not ask_for_folder(self.path):
                            return self._hand_snapshot(snapshot, owner)
                        return self._writer.adopt(snapshot, owner)
            except f.Owned:
                raise
            except (OSError, EnvironmentProblem) as problem:
                raise _refusal(problem) from problem

    def _need_same(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot that was compiled with types that differ from those of the channel."""
        then = snapshot.attributes
        now = self._declare_given(then).attributes
        difference = None if then is None else find_difference(then, now, self._channel)
        if difference is not None:
            raise DeclarationError(
                f"the snapshot was compiled with other attributes: {difference}; compile it with "
                "those of the channel, which `tidings channel show` lists"
            )

    def _hand_snapshot(self, snapshot: Snapshot, owner: str) -> int:
        from tidings.store.adoptions import hand_snapshot  # loads pyarrow

        return hand_snapshot(
            self.path, snapshot, owner, lambda: self._writer.commit([]),
            lambda: self._writer.adopt(snapshot, owner),
        )  # fmt: skip

    def bulk_of(self, version: int) -> Path:
        """The folder of the snapshot that was adopted as a version."""

        def read() -> Path:
            bulks = state_at(self.path, self._reader.end()).bulks
            for one in bulks:
                if one.version == version:
                    return self.path / f.BULKS / one.name
            raise LogError(f"version {version} of '{self.path}' did not adopt a snapshot")

        return self._steady(read)

    def bulk_at(self, version: int) -> Path | None:
        """The folder of an adopted snapshot that has all subscriptions of a version, and no others;
        None if there is none."""

        def read() -> Path | None:
            if not (self.path / f.BULKS).exists():
                return None
            state = state_at(self.path, self._reader.end(), version)
            if len(state.bulks) != 1 or state.version != state.bulks[0].version:
                return None
            is_all = not own_part(state.nodes) and not own_part(state.subscriptions)
            return self.path / f.BULKS / state.bulks[0].name if is_all else None

        return self._steady(read)

    def _request(
        self,
        id_: Id,
        filter_: str | Filter,
        dialect: str,
        owner: str,
        attributes: Attributes | None,
    ) -> RequestedChange:
        need_id(id_)
        if isinstance(filter_, Filter):
            # The filter is parsed again, because it may have been created with other attributes.
            filter_, dialect = filter_.sql(), SQL
        parsed = parse(filter_, dialect, attributes=attributes, functions=self.functions)
        return RequestedChange(id_, str(filter_), parsed.key, dialect, owner)

    def _commit(self, make: Callable[[Attributes | None], list[RequestedChange]]) -> int:
        """Commit the changes that `make` returns for the attributes of the channel. If somebody
        declares other attributes meanwhile, `make` is called again."""
        while True:
            found = self._declare_given(self._given)
            try:
                return self._commit_changes(make(self._use(found)), found.text)
            except Redeclared:
                continue

    def _commit_changes(self, changes: list[RequestedChange], declaration: str | None) -> int:
        mine = PendingGroup(changes, declaration)
        self._waiting.append(mine)
        with self._writing:
            if not mine.done:  # not if another thread has already written the change
                self._commit_waiting()
        if mine.error is not None:
            raise mine.error
        return mine.version

    def _commit_waiting(self) -> None:
        wanted = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            try:
                self._settle()
                with self._drop_old_files_after():
                    self._writer.commit(wanted)
            except f.Owned:
                for one in wanted:
                    try:
                        self._hand_over(one)
                    except Exception as problem:
                        one.error = _refusal(problem)
        except Exception as problem:
            for one in wanted:  # each thread gets its own error, with its own traceback
                one.error = one.error or _refusal(problem)
        except BaseException:
            for one in wanted:
                one.error = one.error or LogError("the write was interrupted; try again")
            raise
        finally:
            for one in wanted:
                one.done = True

    def _hand_over(self, one: PendingGroup) -> None:
        """Let the owner of the folder make changes. If the owner dies meanwhile, look for the
        changes in the log, and make those that are missing.

        The log is read only when two things are certain: the dead owner can no longer write, and
        the end mark includes everything that it wrote. Both are certain once the owner's successor
        has sent its greeting, or while this process holds the lock. If the log were read too early,
        a change could look missing although the successor finds it after the end mark later, and
        keeps it.
        """
        since, died, left, found = self.version, b"", one.changes, 0

        def missing() -> list[Asked]:
            nonlocal left, found
            if died:
                made = (it for it in self.entries(since) if isinstance(it, Change))
                versions = find_versions(made, one.changes)
                left = one.changes[len(versions) :]
                found = versions[-1] if versions else 0
            return [Asked(it.id, it.text, it.dialect, it.owner) for it in left]

        while True:
            try:
                one.version = hand_over(self.path, missing, but=died) or found
                return
            except Died as problem:
                died = problem.instance
            except Unowned:
                try:
                    if died:
                        self._writer.commit([])  # keeps the complete groups of the dead owner
                        missing()
                    rest = PendingGroup(left, one.declaration, found)
                    if left:
                        self._writer.commit([rest])
                    one.version, one.error = rest.version, rest.error
                    return
                except f.Owned:  # there is another owner now
                    time.sleep(PAUSE)
            except TidingsError as problem:
                one.error = LogError(str(problem)) if isinstance(
                    problem, EnvironmentProblem) else problem  # fmt: skip
                return

    def own(self) -> bool:
        """Become the owner of the folder: make the changes of other processes too, until `close`,
        or until a rendezvous point wants the folder. If another process owns the folder, or if the
        folder is read-only, returns False and changes nothing."""
        with self._writing:
            self._settle()
            if self._ownership is None:
                try:
                    self._ownership = Ownership(
                        self.path, self._catch_up, self._take, self._give_up,
                        self._take_declaration,
                    )  # fmt: skip
                except OSError:
                    return False
                finally:
                    self._writer.is_owner = self._ownership is not None
            return True

    def _catch_up(self) -> None:
        self._writer.is_owner = True
        self._writer.commit([])

    def close(self) -> None:
        """Stop being the owner."""
        with self._writing:
            self._give_up_now()

    def _give_up(self) -> None:
        with self._writing:
            self._give_up_now()

    def _give_up_now(self) -> None:
        owned, self._ownership = self._ownership, None
        self._writer.is_owner = False
        if owned is not None:
            owned.end()

    def _take(self, asked: list[Asked]) -> Future[int]:
        """Make changes for another process."""
        done: Future[int] = Future()
        try:
            for it in asked:
                need_id(it.id)
                need_owner(it.owner)

            def make(known: Attributes | None) -> list[RequestedChange]:
                return [
                    RequestedChange(it.id, None) if it.text is None
                    else self._request(it.id, it.text, it.dialect, it.owner, known)
                    for it in asked
                ]  # fmt: skip

            done.set_result(self._commit(make))
        except LogError as problem:
            done.set_exception(EnvironmentProblem(str(problem)))
        except Exception as problem:
            done.set_exception(problem)
        return done

    # -- declaring -----------------------------------------------------------------------------

    @property
    def attributes(self) -> Attributes | None:
        """The attributes that the channel declares; if it declares nothing, the given ones. Raises
        DeclarationError if both exist and differ."""
        return self._use(self.last_declaration.declaration)

    @property
    def last_declaration(self) -> LastDeclaration:
        """The channel's current declaration."""

        def read() -> LastDeclaration:
            end = self._reader.end()
            try:
                return self._declared.read(end)
            except EnvironmentProblem:  # reading the state raises an error that names the damage
                state = state_at(self.path, end)
                found = StoredDeclaration.decode(state.history.declaration)
                return LastDeclaration(found, state.history.renewed, bool(state.lives))

        return self._steady(read)

    def declare(self, attributes: Attributes | None, before: str | None = None) -> int:
        """Declare attributes, in place of those that the channel declares; return the version once
        the declaration is on the disk. Filters and nodes stay as they are. Raises DeclarationError
        if a filter uses an attribute that would have another type. `before` is the text of the
        declaration to replace, by default the current one."""
        now = self.last_declaration.declaration
        asked = Declare(
            now.text if before is None else before,
            StoredDeclaration.of(attributes, now.preprocessor).text,
        )
        if attributes is not None and not may_store(attributes):
            raise DeclarationError(
                "found an attribute with an ontology, expected a type; an ontology belongs to a "
                "channel of topics, which the file of a rendezvous point declares"
            )
        version = self._declare(asked)
        self._given = attributes
        return version

    def declare_given(self) -> None:
        """Declare the attributes that were given, if they are the first ones; otherwise raise
        DeclarationError if they differ from those that the channel declares."""
        self._use(self._declare_given(self._given))

    def _declare(self, asked: Declare) -> int:
        wanted = StoredDeclaration.decode(asked.text)

        def find() -> int | None:
            found = self.last_declaration
            return found.version if found.declaration.says_the_same(wanted) else None

        def declare() -> int:
            return self._writer.declare(asked.text, lambda before: self._need_fit(before, asked))

        with self._writing:
            try:
                self._settle()
                with self._drop_old_files_after():
                    try:
                        return declare()
                    except f.Owned:
                        return hand_over_declaration(self.path, asked, find, declare)
            except (OSError, EnvironmentProblem) as problem:
                raise _refusal(problem) from problem

    def _need_fit(self, before: str, asked: Declare) -> None:
        """Refuse a declaration that does not fit the filters, or whose `before` is no longer the
        current declaration."""
        if before != asked.before:
            raise DeclarationError(
                f"somebody else has declared other attributes in '{self.path}' meanwhile; try again"
            )
        old, new = StoredDeclaration.decode(before), StoredDeclaration.decode(asked.text)
        if old.preprocessor != new.preprocessor:
            raise DeclarationError(
                "found a kind of interest other than the channel's; to change the kind, edit the "
                "file of the rendezvous point, which alone declares it"
            )
        need_fit(old.attributes, new.attributes, self._read_locked(), self.functions)

    def _read_locked(self) -> Iterator[StoredFilter]:
        """Like `filters`, while this process holds the lock."""
        yield from stored_filters(state_at(self.path, self._reader.end()))

    def filters(self) -> Iterator[StoredFilter]:
        """The filters of all subscriptions and nodes. The log is read when the first filter is
        requested."""
        yield from stored_filters(self._steady(lambda: state_at(self.path, self._reader.end())))

    def _declare_given(self, given: Attributes | None) -> StoredDeclaration:
        """The declaration of the channel. If there is none yet, the given attributes become the
        first declaration, unless the channel has a rendezvous point, whose file declares the
        attributes."""
        found = self.last_declaration
        now = found.declaration
        if now.text or found.had_root or given is None or not may_store(given):
            return now
        first = StoredDeclaration.of(given)
        try:
            self._declare(Declare("", first.text))
        except DeclarationError:
            if self.last_declaration.declaration.text in ("", first.text):
                raise
        return self.last_declaration.declaration

    def _take_declaration(self, asked: Declare) -> Future[int]:
        """Declare attributes for another process."""
        done: Future[int] = Future()
        try:
            done.set_result(self._declare(asked))
        except LogError as problem:
            done.set_exception(EnvironmentProblem(str(problem)))
        except Exception as problem:
            done.set_exception(problem)
        return done

    @property
    def _channel(self) -> str:
        return f"the channel '{self.path}'"

    def _use(self, found: StoredDeclaration) -> Attributes | None:
        """The attributes with which filters are read."""
        given = self._given
        if given is not None and given.ontologies and not found.text:
            return given
        if not found.text and (given is None or not self.last_declaration.had_root):
            self._current = given
            return given
        if given is not None:
            difference = find_difference(given, found.attributes, self._channel)
            if difference is not None:
                raise DeclarationError(
                    f"{difference}; correct it here, or change the channel with `tidings channel "
                    "declare`"
                )
        self._current = found.attributes
        return self._current

    def forget_before(self, version: int) -> None:
        """Drop the files that contain only versions up to this one, but keep the state at this
        version.

        From then on `subscriptions` works for this version and later ones, and `changes` only for
        versions whose files remain. Only tests call this; a log drops old files by itself.
        """
        self._need_version(version, self.version)
        if version:
            try:
                forget(self.path, version, is_owner=self._writer.is_owner)
            except (OSError, EnvironmentProblem) as problem:
                raise LogError(f"the log can't drop files: {problem}") from problem

    @contextmanager
    def _drop_old_files_after(self) -> Iterator[None]:
        """If the block begins a new file, drop the files that nobody has written to for a long
        time. The changes are already acknowledged, so a failure to drop files is only logged; the
        next new file triggers another attempt."""
        begun = self._writer.begun
        yield
        if self._writer.begun == begun:
            return
        try:
            if version := last_version_before(self.path, time.time() - KEPT_SECONDS):
                forget(self.path, version, is_owner=self._writer.is_owner)
        except (OSError, EnvironmentProblem) as problem:
            _log.warning("the log '%s' can't drop old files: %s", self.path, problem)

    def repair(self) -> Repair:
        """Repair a damaged log: keep the readable changes, and accept the loss of the others.

        Versions and node numbers that may have been used are not used again. Readers that ask for a
        lost version get an error that says so. A log without damage is not changed.
        """
        with self._writing:
            try:
                if f.read_format(self.path) is None:
                    self._settle()
                done = _repair(self.path)
            except (OSError, EnvironmentProblem) as problem:
                raise LogError(f"the log can't be repaired: {problem}") from problem
            self._reader = Reader(self.path)
            self._writer = Writer(self.path, self._writer.segment_bytes, self._key_of)
            return done

    # -- reading -------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The latest version that any process acknowledged."""
        return version_in(self._steady(self._reader.end))

    def summary(self) -> Summary:
        """How much is in the log. This reads the whole log, including the notifications."""

        def read() -> Summary:
            end = self._reader.end()
            state = state_at(self.path, end, counted=True)
            sizes = len(state.nodes), len(state.subscriptions), state.serial
            return Summary(version_in(end), *sizes)

        return self._steady(read)

    @property
    def id_kind(self) -> type[str] | type[int] | None:
        """The type of the subscriptions' ids. If there are no subscriptions now, this is the type
        of the last id, or None if that id is not known."""
        version = self.version
        try:  # the id in the last change has that type, if the log still has the change
            return type(self.changes(version - 1, version)[0].id) if version else None
        except AdoptedHere:
            state = self._steady(lambda: state_at(self.path, self._reader.end()))
            return int if state.integer else str
        except (LogError, IndexError):
            return next(map(type, self.subscriptions(version)), None)

    def changes(self, after: int, upto: int | None = None) -> list[Change]:
        """All changes after a version, up to another version or to the latest, in order. Raises
        LogError if a whole snapshot was adopted in between; `entries` lists it."""
        return [change for change, _ in self.keyed_changes(after, upto)]

    def keyed_changes(self, after: int, upto: int | None = None) -> list[KeyedChange]:
        """Like `changes`, with the identity of the filter for each change that has a new node."""
        found: list[KeyedChange] = []
        for record in self._records(after, upto):
            if isinstance(record, Adopted):
                raise AdoptedHere(record)
            if isinstance(record, Renewed):
                continue
            found.append((change_of(record), record.key))
        return found

    def entries(self, after: int, upto: int | None = None) -> list[Change | Adoption | Declared]:
        """Like `changes`; a snapshot that was adopted in between is an entry of its own, and so is
        a declaration."""
        return [
            Adoption(one.version, one.first, one.many, one.owner) if isinstance(one, Adopted)
            else Declared(one.version, StoredDeclaration.decode(one.declaration))
            if isinstance(one, Renewed) else change_of(one)
            for one in self._records(after, upto)
        ]  # fmt: skip

    def _records(self, after: int, upto: int | None) -> list[Found]:
        def read() -> list[Found]:
            end = self._reader.end()
            last = version_in(end) if upto is None else upto
            self._need_version(after, version_in(end))
            self._need_version(last, version_in(end))
            if after >= last:
                return []
            records = self._reader.changes(after, end)
            return [*takewhile(lambda one: one.version <= last, records)]

        return self._steady(read)

    def subscriptions(self, version: int | None = None) -> Subscriptions:
        """The text and node of every subscription, by id, at a version or at the latest one.

        `subscriptions` reads the whole log. To follow a log, call `subscriptions` once and then
        `changes`.
        """
        return self.state(version).subscriptions

    def state(self, version: int | None = None) -> State:
        """The subscriptions, and the identities of nodes, at a version or at the latest one."""

        def read() -> State:
            end = self._reader.end()
            at = version_in(end) if version is None else version
            self._need_version(at, version_in(end))
            return read_state(state_at(self.path, end, at))

        return self._steady(read)

    def _need_version(self, version: int, latest: int) -> None:
        if type(version) is not int or not 0 <= version <= latest:
            raise LogError(
                f"found version {version!r}, expected a version from 0 to {latest}, the latest "
                f"in '{self.path}'"
            )

    def _steady(self, read: Callable[[], T]) -> T:
        """Call `read`; if segments or bulks were dropped meanwhile, call `read` again under a
        shared lock, which prevents such drops."""
        try:
            try:
                self._settle()
                return read()
            except (LogError, EnvironmentProblem, FileNotFoundError):
                settle(self.path, self._key_of)
                self._reader.forget_points()
                with f.keep_unchanged(self.path):
                    return read()
        except (OSError, EnvironmentProblem) as problem:
            raise LogError(f"the log can't be read: {problem}") from problem

    def _settle(self) -> None:
        if not self._is_settled:
            settle(self.path, self._key_of)
            self._is_settled = True

    def _key_of(self, text: str, dialect: str) -> bytes | None:
        try:
            # this may be called while the log is being opened, so nothing is read here
            return parse(text, dialect, attributes=self._current, functions=self.functions).key
        except FilterError:
            return None


def need_owner(owner: str) -> str:
    """Check the name of an owner; raises TidingsError if it is too long, or has
    characters that can't be printed."""
    if type(owner) is not str or len(owner) > MOST_OWNER or not (owner.isprintable()):
        raise TidingsError(
            f"found the owner {owner[:80]!r}, expected at most {MOST_OWNER} printable characters"
        )
    return owner


def _repair(folder: Path) -> Repair:
    aside = folder / f.ASIDE
    before = {*aside.iterdir()} if aside.is_dir() else set()
    journal = FileJournal(folder, repairs=True)
    try:
        problems, lost = journal.repair()
        moved = aside.is_dir() and {*aside.iterdir()} != before
        return Repair(problems, list(lost), journal.version, str(aside) if moved else "")
    finally:
        journal.close()


def _refusal(problem: Exception) -> Exception:
    sentence = str(problem)
    if isinstance(problem, OSError | EnvironmentProblem):
        sentence = f"the log can't be written: {problem}; nothing was acknowledged"
    elif not isinstance(problem, LogError):
        return problem
    refusal = LogError(sentence)
    refusal.__cause__ = problem
    return refusal
