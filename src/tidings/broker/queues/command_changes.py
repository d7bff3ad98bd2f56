"""Makes the changes to named subscriptions that commands request from a rendezvous point.

    command ──socket──> checked ──> placed, a few at a time ──> journal ──(on the disk)──> version
                           └─thread: read─┘

When the first command arrives, the ids and their nodes are read from the log. From then on, only
this process changes the ids and nodes. A group of changes is checked before any change is made, and
is refused as a whole. A large group is checked and placed in pieces. A thread reads the filters of
each piece, so that notifications need not wait. Filters that take long to place are placed a few at
a time. If the process dies before all changes are on the disk, the changes that are there stay, and
the command makes the remaining changes itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from tidings.model import EnvironmentProblem, Id, need_id
from tidings.routing.protocol import pack_interest
from tidings.routing.root import Rendezvous
from tidings.store import Adopt, Asked, ChangeLog, Declare, LiveIds, ProjectedIds, need_owner
from tidings.store.journal import Row

PIECE = 16  # changes; placing a filter takes 0.1 to 0.3 ms, or about 30 ms if it is wide
TIME = 0.005  # seconds of processor time for placing filters in one turn of the event loop
REST = 0.001  # seconds between two such turns, enough for several turns of other tasks
ALONE = 4  # up to this many filters are read on the event loop, without a thread


class _Known:
    """The named subscriptions in the folder."""

    def __init__(self, folder: Path) -> None:
        state = ChangeLog(folder).state()
        named = {id_: state.subscriptions[id_][1] for id_ in state.named}
        self.ids = LiveIds(named)
        self.ids.integer = state.integer
        self.owners = {id_: who for id_, who in state.owners.items() if id_ in named}
        self.uses = Counter(named.values())


class CommandChanges:
    """Makes the changes, as described at the top of the module. All methods run in the event loop,
    except `take`, `take_snapshot` and `take_declaration`."""

    def __init__(
        self,
        folder: Path,
        machine: Callable[[], Rendezvous],
        prepare: Callable[[Sequence[bytes]], object],
        wrote: Callable[[], None],
        stored: Callable[[], Awaitable[None]],
        adopt: Callable[[Adopt], Awaitable[int]],
        declare: Callable[[Declare], Awaitable[int]],
    ) -> None:
        """`machine` returns the state machine that is currently in use. `prepare` reads filters
        that are needed soon, in a thread. `wrote` is called after records are passed to the
        journal, and starts to write them. `stored` waits until all these records are on the disk,
        and raises EnvironmentProblem if they can't be written. `adopt` adopts a snapshot, and
        `declare` declares attributes."""
        self._adopt = adopt
        self._declare = declare
        self._folder = folder
        self._machine = machine
        self._prepare = prepare
        self._wrote = wrote
        self._stored = stored
        self._turn = asyncio.Lock()
        self._known: _Known | None = None
        self._is_stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """Use the event loop of the caller from now on."""
        self._loop = asyncio.get_running_loop()

    def take(self, asked: list[Asked]) -> Future[int]:
        """Make changes; the result is the last version. This may be called in any thread."""
        assert self._loop is not None, "`begin` was called"
        return asyncio.run_coroutine_threadsafe(self._change(asked), self._loop)

    def take_snapshot(self, asked: Adopt) -> Future[int]:
        """Adopt a snapshot; the result is its version. This may be called in any thread."""
        assert self._loop is not None, "`begin` was called"
        return asyncio.run_coroutine_threadsafe(self._take_snapshot(asked), self._loop)

    def take_declaration(self, asked: Declare) -> Future[int]:
        """Declare attributes; the result is the version of this change. This may be called in any
        thread."""
        assert self._loop is not None, "`begin` was called"
        return asyncio.run_coroutine_threadsafe(self._take_declaration(asked), self._loop)

    async def _take_declaration(self, asked: Declare) -> int:
        async with self._turn:
            if self._is_stopping:
                raise asyncio.CancelledError
            return await self._declare(asked)

    async def _take_snapshot(self, asked: Adopt) -> int:
        async with self._turn:
            if self._is_stopping:
                raise asyncio.CancelledError
            return await self._adopt(asked)

    def forget(self) -> None:
        """Let the next change read the subscriptions again, because nodes were renumbered, or a
        write failed."""
        self._known = None

    async def stop(self) -> None:
        """Finish the change that is being made, and then make no more changes."""
        self._is_stopping = True
        async with self._turn:
            pass

    async def _change(self, asked: list[Asked]) -> int:
        async with self._turn:
            if self._is_stopping:
                raise asyncio.CancelledError
            if self._known is None:
                found = asyncio.get_running_loop().run_in_executor(None, _Known, self._folder)
                self._known = await found
            known = self._known
            await self._check(asked, known)
            version, machine, rest = 0, self._machine(), 0.0
            for at in range(0, len(asked), PIECE):
                piece = asked[at : at + PIECE]
                await self._read(piece)
                if rest:  # while the thread ran, other tasks may have waited for the interpreter
                    await asyncio.sleep(rest)
                while piece:
                    self._need_same(machine, known)
                    end = time.thread_time() + TIME
                    first, many = self._place(machine, piece, known, end)
                    version, piece = first + many - 1, piece[many:]
                    self._wrote()
                    rest = REST if time.thread_time() > end else 0.0
                    await asyncio.sleep(rest)
            try:
                await self._stored()
            except BaseException:
                self._known = None
                raise
            return version

    def _need_same(self, machine: Rendezvous, known: _Known) -> None:
        """Raise EnvironmentProblem if a write has failed while this task waited."""
        if self._machine() is not machine or machine.failed or known is not self._known:
            raise EnvironmentProblem("the journal can't be written at present; try again")

    async def _check(self, asked: list[Asked], known: _Known) -> None:
        """Raise TidingsError if a change is impossible."""
        known.ids.anonymous = max(len(self._machine().registry) - len(known.uses), 0)
        projected = ProjectedIds(known.ids, self._folder)
        for at in range(0, len(asked), PIECE):
            piece = asked[at : at + PIECE]
            await self._read(piece)
            interests = self._machine().interests
            for one in piece:
                need_id(one.id)
                need_owner(one.owner)
                if (interest := _interest_of(one)) is not None:
                    interests.look_up(interest)
            projected.take((one.id, one.text) for one in piece)

    async def _read(self, piece: list[Asked]) -> None:
        """Read filters in a thread, so that the event loop only has to look them up."""
        texts = [text for one in piece if (text := _interest_of(one)) is not None]
        if len(texts) > ALONE:
            await asyncio.get_running_loop().run_in_executor(None, self._prepare, texts)

    def _place(
        self, machine: Rendezvous, piece: list[Asked], known: _Known, end: float
    ) -> tuple[int, int]:
        """Place at least one change, and more until the thread's processor time reaches `end`;
        return the version of the first, and how many were placed."""
        interests = [_interest_of(one) for one in piece]
        first, held = machine.holding.place(interests, lambda: time.thread_time() < end)
        rows: list[Row] = []
        for one, (node, key) in zip(piece[: len(held)], held, strict=True):
            owner = "" if one.text is None else one.owner or known.owners.get(one.id, "")
            known.owners.pop(one.id, None)
            if owner:
                known.owners[one.id] = owner
            rows.append(Row(one.id, one.text, node, key, one.dialect, 0, owner))
            self._use(machine, known, one.id, node)
        machine.queue.set_rows(first, rows)
        return first, len(rows)

    @staticmethod
    def _use(machine: Rendezvous, known: _Known, id_: Id, node: int) -> None:
        before = known.ids.set(id_, node)
        if node:
            known.uses[node] += 1
        if before:
            known.uses[before] -= 1
            if not known.uses[before]:
                del known.uses[before]
                machine.holding.let_go(before, lambda one: one in machine.wants)


def _interest_of(one: Asked) -> bytes | None:
    """The filter of a change, encoded as in nodes; None if a subscription is dropped."""
    return None if one.text is None else pack_interest(one.text.encode(), one.dialect)
