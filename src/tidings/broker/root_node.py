"""A running rendezvous point. It acknowledges publications only when they are on the disk.

Many acknowledgments can share one sync.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tidings.broker.admission.direct_tickets import DirectTicket
from tidings.broker.admission.listen import Direct, Door
from tidings.broker.admission.permissions import Permissions
from tidings.broker.early import EarlySending, serving_of
from tidings.broker.links import Lane
from tidings.broker.outgoing_frames.block_frames import join_frames
from tidings.broker.outgoing_frames.frame_warming import load_block_kernels
from tidings.broker.outgoing_frames.framed_rendezvous import FramedRendezvous
from tidings.broker.predicates import Deciding, PredicateHelpers
from tidings.broker.queues.command_changes import CommandChanges
from tidings.broker.queues.merit_publications import MeritPublications
from tidings.broker.queues.preparing import Preparing
from tidings.broker.queues.spill import Spill
from tidings.broker.recompiling import Recompiling
from tidings.broker.reports import advise, shorten
from tidings.broker.root_reports import list_names, list_preprocessors, list_sources
from tidings.broker.server import CACHE_BYTES, Server
from tidings.channel import Declaration, renumber
from tidings.channel.interests import (
    ArrayInterests,
    ExtraFields,
    find_changed,
    load_interest_kernels,
)
from tidings.filters import Attributes, Ontology
from tidings.filters.values import Revision
from tidings.matching import load_kernels
from tidings.model import EnvironmentProblem, TidingsError, Undecided, pause_gc
from tidings.network import FrameCache, ask_for_kernels, draw_life
from tidings.preprocessing import Kind, KindDefinition, PredicateCall
from tidings.routing.forwarding import Forwarding
from tidings.routing.protocol import Limits, Times, messages as m
from tidings.routing.root import (
    SECONDS,
    FollowerState,
    Placed,
    Run,
    find_runs,
)
from tidings.store import Adopt, ChangeLog, Declare, stored_filters
from tidings.store.adoptions import Adoption
from tidings.store.declared import DeclarationError, StoredDeclaration, need_fit
from tidings.store.journal import FileJournal, Retention

if TYPE_CHECKING:
    from tidings.channel.related import PublicationMerits
    from tidings.relations import RelationSettings

FEW = 8  # if a buffer has fewer frames, they are read one by one
LOAD_AGAIN = 10.0  # seconds before another attempt to load kernels
BETWEEN_WRITES = 0.0015  # seconds between two writes of the event loop itself
TEND_AGAIN = 30.0  # seconds before another attempt to maintain the journal
TEND_PAUSE = 0.02  # seconds between two checks whether the journal needs maintenance
ATTEMPTS = 4  # how often a change of the whole channel is tried, if nodes change meanwhile
MOST_TOLD = 200  # the most characters of predicates' names in a status

_REACHED = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # host to listen on -> host to connect to

_log = logging.getLogger(__name__)


class RootNode(Server):
    """The rendezvous point of a channel."""

    machine: FramedRendezvous

    def __init__(
        self,
        name: str,
        journal: str | Path,
        door: Door,
        *,
        attributes: Attributes | None = None,
        kind: KindDefinition | None = None,
        times: Times | None = None,
        forwarding: Forwarding | None = None,
        cache_bytes: int = CACHE_BYTES,
        direct: Direct | None = None,
        relations: RelationSettings | None = None,
    ) -> None:
        """`direct` says which agents are offered links that bypass the tree; None offers no such
        links. Without `relations`, frames have no context, and no notification is related to a
        filter."""
        self._relations = relations
        self._merits = self._make_merits(door.limits)
        self._direct = direct or Direct(0)
        self._path = Path(journal)
        self._attributes = attributes
        self.kind = kind or KindDefinition()
        """The kind of interest in the file, without topics that earlier revisions removed."""
        self.extra = ExtraFields()  # shared by all state machines of this node
        self._times = times
        self._name = name
        self._cache_bytes = cache_bytes
        self._limits = door.limits
        limits = door.limits
        retention = Retention(
            bytes=limits.kept_bytes,
            marks=limits.kept_marks,
            seconds=limits.kept_seconds,
            disk_bytes=limits.disk_bytes,
        )
        with pause_gc():
            self.journal = FileJournal(self._path, retention, apart=True, listens=True)
            try:
                self.declaration = self._declare(self.kind, door.channel)
                self._begin_revised()
            except BaseException:
                self.journal.close()
                raise
            machine = self._load_machine()
        self._commands = CommandChanges(
            self._path, lambda: self.machine, self._prepare, self.after_receiving,
            self._await_stored, self.adopt, self.redeclare,
        )  # fmt: skip
        # for each waiting task, the number of the write that it waits for, and its future
        self._awaiting: list[tuple[int, asyncio.Future[None]]] = []
        super().__init__(machine, door, forwarding)
        if relations is not None and self._merits is not None:
            spill = Spill(Path(f"{self._path}.waiting"))
            self.publications = MeritPublications(
                self._take_later, self._end_slice, self._merits, spill, ageing=relations.ageing
            )
        self._writing: asyncio.Task[None] | None = None
        self._wrote = float("-inf")  # when the last write ended
        self._revising = asyncio.Lock()
        self._tending: asyncio.Task[None] | None = None
        self._tended = float("-inf")  # when maintaining the journal last failed
        self._checked = float("-inf")  # when it was last checked whether that is due
        self._check: asyncio.TimerHandle | None = None  # the next check, if one is planned
        self._takes_parts = False  # are the kernels for parts and runs loaded?
        self._tried = 0.0  # when a restart of the machine was last tried
        self._recompiling = Recompiling()
        self._advice: tuple[m.RouterLoad, ...] = ()
        self._advised_at = float("-inf")
        self._preparing = Preparing(
            self._prepare, super().take_question, self._is_answering, self._are_behind
        )
        self._helpers = self._make_helpers()
        self._faulty: set[str] = set()  # predicates that are being switched off
        self._deciding = Deciding(self._missing_calls, self._ask_predicates, self._take_later)

    def make_early(self) -> EarlySending | None:
        settings = self._relations
        if settings is None:
            return None
        tidy = None if self._merits is None else self._merits.tidy
        return EarlySending(self, lambda: serving_of(settings), tidy)

    def prepare(self, machine: FramedRendezvous, channel: str) -> None:
        super().prepare(machine, channel)
        machine.offers.most = self._direct.most
        machine.offers.is_direct = self.is_direct
        machine.offers.issue = self._issue

    def _issue(self, message: m.Apply) -> tuple[str, str]:
        """The address and the ticket for a direct link; both empty if there are too many such
        links."""
        if self.connections.count_direct() >= self._direct.links:
            self.machine.beyond["direct links"] += 1
            return "", ""
        host = _REACHED.get(self.door.address.host, self.door.address.host)
        address = self._direct.address or f"{f'[{host}]' if ':' in host else host}:{self.port}"
        ends = self.now + SECONDS
        ticket = DirectTicket(message.agent, message.owner, message.party, message.within, ends)
        return address, self.connections.tickets.issue(ticket)

    def _check_links(self, now: float) -> None:
        super()._check_links(now)
        self.connections.end_tickets(now)

    async def start(self) -> None:
        # load the kernels before clients connect: without a cache this takes seconds
        await asyncio.get_running_loop().run_in_executor(None, load_kernels)
        await asyncio.get_running_loop().run_in_executor(None, load_interest_kernels)
        await super().start()
        if self.early is not None:
            self.early.begin(self.own)
        self._commands.begin()
        commands = self._commands
        self.journal.serve(
            commands.take, commands.take_snapshot, self._welcome_soon(), commands.take_declaration
        )
        self._spawn(self._load_block_kernels())

    def _welcome_soon(self) -> Callable[[socket.socket], None]:
        """A function that accepts a connection through the folder. Any thread may call this
        function."""
        loop = asyncio.get_running_loop()

        def welcome(found: socket.socket) -> None:
            loop.call_soon_threadsafe(lambda: self._spawn(self.connections.welcome_local(found)))

        return welcome

    def take_machine(self, machine: FramedRendezvous) -> None:
        self._commands.forget()
        super().take_machine(machine)
        if self.early is not None:
            self.early.begin(self.own)

    async def _await_stored(self) -> None:
        """Wait until all records that have been passed to the journal are on the disk."""
        if self.machine.failed:
            raise EnvironmentProblem(f"the journal {self._path} can't be written at present")
        done = asyncio.get_running_loop().create_future()
        self._awaiting.append((self.machine.written, done))
        self.after_receiving()  # completes `done`, even if all is written already
        await done

    def _tell_stored(self, upto: int, problem: str = "") -> None:
        """Wake the tasks that wait for the writes up to number `upto`, or all tasks if there is a
        problem."""
        left = []
        for count, done in self._awaiting:
            if done.done():
                continue
            if problem:
                done.set_exception(EnvironmentProblem(problem))
            elif count <= upto:
                done.set_result(None)
            else:
                left.append((count, done))
        self._awaiting = left

    def take_question(self, link: Lane, message: m.Message) -> None:
        if isinstance(message, m.Ask) and not (
            message.node and self.machine.placing.knows(message)
        ):
            self.publications.expect_questions()
            self._preparing.put(link, message)
        elif isinstance(message, m.Advise):
            self._advise(link, message)
        elif isinstance(message, m.Fault):
            self._spawn(self._take_fault(link.name, message))
        else:
            super().take_question(link, message)

    def _advise(self, link: Lane, message: m.Advise) -> None:
        """Send an agent the list of routers, with the load of each."""
        machine, now = self.machine, self.now
        machine.context.now = now
        machine.hear(link.name)
        if machine.charges.may_ask(link.name):
            if now - self._advised_at > machine.times.beat / 2:
                self._advised_at = now
                report = self.reports.gather(self.status(now), now)
                self._advice = advise(report, machine.times.expire)
            machine.charges.charge(link.name, 1 + len(self._advice))
            link.send(m.Advised(machine.epoch, message.request, self._advice))

    def _prepare(self, filters: Sequence[bytes]) -> list[float]:
        return self._interests.prepare(filters)

    def _is_answering(self) -> bool:
        """Are messages waiting for their turn, or for the disk?"""
        return len(self.backlog) > 0 or len(self.machine.queue) > 0

    def forget_lane(self, lane: Lane) -> None:
        super().forget_lane(lane)
        self._preparing.forget(lane)
        self._deciding.forget(lane)

    # -- predicates ----------------------------------------------------------------------------

    def _take_later(self, link: Lane, message: m.Message) -> None:
        """Process a message. A publication that needs predicates waits until they have answered,
        and later publications of the same publisher wait behind it. If the channel has relations,
        bodies are sent early."""
        if self.early is not None and isinstance(message, m.Publish | Run):
            self._send_early(self.early, message)
        if not isinstance(message, m.Publish | Run) or not self._deciding.holds(link, message):
            try:
                super()._take_later(link, message)
                return
            except Undecided:
                self.dispatch(self.machine.drain_outgoing())
        assert isinstance(message, m.Publish | Run)  # nothing else needs predicates
        for one in message.take_rest() if isinstance(message, Run) else (message,):
            self._deciding.put(link, one)

    def _send_early(self, early: EarlySending, message: m.Publish | Run) -> None:
        try:
            relating = self.machine.tagger.relating
            if relating is not None:
                early.publish(self.own, message, relating.context)
        except Exception:  # no harm: the notification itself follows as usual
            _log.exception("%s: a notification could not be sent early", self._name)

    def _missing_calls(self, content: bytes) -> Sequence[PredicateCall]:
        return self._interests.missing_calls(content)

    async def _ask_predicates(self, calls: Sequence[PredicateCall]) -> None:
        await self._helpers.ask(calls)

    def _make_helpers(self) -> PredicateHelpers:
        kind = self.declaration.kind
        return PredicateHelpers(kind.definition, kind.decisions, self._switch_off)

    async def _switch_off(self, name: str, reason: str) -> None:
        """Switch a predicate off. This creates a new version of the channel: every process that
        tags learns of it, and filters that call the predicate are refused, with the reason."""
        _log.error("the predicate '%s' is switched off: %s", name, reason)
        await self.revise(self.kind.switch_off({name: reason}))

    async def _take_fault(self, sender: str, fault: m.Fault) -> None:
        """Switch off a predicate that fails in the processes of a pipeline."""
        definition, name = self.declaration.kind.definition, fault.predicate
        is_used = name in definition.callable_predicates and name not in self._faulty
        if is_used and definition.predicates[name] == fault.version:
            self._faulty.add(name)  # other processes may report the same fault
            try:
                await self._switch_off(name, f"{fault.reason} (at {sender})")
            finally:
                self._faulty.discard(name)

    def _list_off(self) -> str:
        """The names of the predicates that are switched off, shortened for a status."""
        names = ", ".join(sorted(self.declaration.kind.definition.off))
        return names if len(names) <= MOST_TOLD else names[: MOST_TOLD - 3] + "..."

    async def _renew_helpers(self) -> None:
        """Replace the helper processes with processes for the predicates of the current
        declaration."""
        before, self._helpers = self._helpers, self._make_helpers()
        await before.stop()

    async def _load_block_kernels(self) -> None:
        """Load the kernels that only parts and runs of publications need. If this fails, because
        the disk is full for example, it is tried again later."""
        while True:
            try:
                await asyncio.get_running_loop().run_in_executor(None, load_block_kernels)
            except Exception:
                _log.exception("can't load the kernels for parts; trying again in %d s", LOAD_AGAIN)
                await asyncio.sleep(LOAD_AGAIN)
            else:
                self._takes_parts = True
                return

    def take_runs(self, lane: Lane, buffer: bytes, starts: list[int]) -> bool:
        if not self._takes_parts or len(starts) < FEW:
            return False
        ask_for_kernels()  # with many frames, the code that finds them should be compiled too
        link = lane.link
        for at, run in find_runs(buffer, starts):
            found = self.connections.permissions_in(link, self.door.channel)
            if run is None:
                self._take_frame(link, lane, buffer, starts[at])
            elif found is None or _must_split(run, found):
                for start in starts[at : at + len(run)]:
                    self._take_frame(link, lane, buffer, start)
            else:
                if not found.may_tag:
                    run.drop_tags()
                link.told_in += len(run)
                self.publications.put(lane, run)
        return True

    def take_part(self, link: Lane, message: m.HandOver) -> None:
        if self._takes_parts:
            super().take_part(link, message)
        else:
            taken = m.Taken(self.machine.epoch, message.source, message.batch, message.part)
            reason = "the rendezvous point was just started, and can't accept parts yet"
            link.send(msgspec.structs.replace(taken, refusal=reason, later=True))

    def _load_machine(self) -> FramedRendezvous:
        """A state machine that continues from the state on disk."""
        history = self.journal.history
        last = max(history.base, history.version)
        interests = self._interests = self._make_interests(
            self.journal.interests(), last, self.extra, self.declaration.kind
        )
        interests.log_refused()
        self._renew(interests)
        memory = self.journal.memory(interests.all_placed())
        self._frames = FrameCache(self._cache_bytes)
        machine = FramedRendezvous(
            self._name, interests, self.journal, memory, self._times, self._frames, self._limits,
            self.declaration.definition, interests.relating, keeps_order=self._merits is None,
            nodes_for_types=self.declaration.kind.definition.nodes_for_types,
        )  # fmt: skip
        if self._merits is not None and machine.tagger.relating is not None:
            self._merits.use_kind(self.declaration.kind)
            self._merits.use_machine(machine)
            machine.tagger.relating = self._merits.listen(machine.tagger.relating)
        return machine

    def _make_merits(self, limits: Limits) -> PublicationMerits | None:
        """An object that computes the merits of publications; None unless the channel's order is
        merit."""
        if self._relations is None or self._relations.order != "merit":
            return None
        from tidings.channel.related import PublicationMerits

        return PublicationMerits(self._relations, limits.content_bytes, lambda: self.now)

    def _make_interests(
        self,
        stored: Sequence[tuple[int, bytes]],
        last: int,
        extra: ExtraFields | None,
        kind: Kind,
    ) -> ArrayInterests:
        """The interests of the channel, with relations if the node's file describes any."""
        named: list[tuple[bytes, int]] = []
        if kind.definition.kind == "application":  # in all others, they are not needed
            cursors = self.journal.memory(()).cursors.values()
            named = [(one.interest, one.node) for one in cursors]
        if self._relations is None:
            return ArrayInterests(
                None, stored, last, self._limits, extra, self._folder, kind, named
            )
        from tidings.channel.related import RelatedArrayInterests

        return RelatedArrayInterests(
            self._relations, stored, last, self._limits, extra, self._folder, kind, named
        )

    def _declare(self, kind: KindDefinition, channel: str) -> Declaration:
        """The next declaration, after the one in the journal. Raises DeclarationError if a filter
        uses an attribute that would get another type."""
        found = Declaration(channel, self._attributes, kind, self.journal.history.declaration)
        now = found.kind
        if now.definition.kind == found.before.kind == "content":
            filters = stored_filters(self.journal.read_state())
            before = found.before.attributes
            need_fit(before, now.attributes, filters, now.functions, only_types=True)
        return found

    def _need_fit(self, found: Declaration) -> None:
        """Refuse a declaration that does not fit the filters on the disk."""
        now, filters = found.kind, ChangeLog(self._path).filters()
        need_fit(found.before.attributes, now.attributes, filters, now.functions)

    async def redeclare(self, asked: Declare) -> int:
        """Replace the declaration of the attributes for a command; return the version. Raises
        DeclarationError if that is impossible; then nothing changes. Nodes keep their numbers.

        The state machine is replaced, as in `revise`.
        """
        async with self._revising:
            await self._wait_for_disk()
            stored = self.journal.history.declaration
            if asked.before != stored:
                raise DeclarationError(
                    "somebody else has declared other attributes meanwhile; try again"
                )
            given = StoredDeclaration.decode(asked.text)
            if given.preprocessor or self.kind.kind != "content":
                raise DeclarationError(
                    "this channel has predicates, or interests other than filters, so its "
                    "attributes are declared in the file of its rendezvous point"
                )
            attributes = given.attributes
            found = Declaration(self.door.channel, attributes, self.kind, stored, is_whole=True)
            if found.text == stored:
                return self.journal.version
            loop, version = asyncio.get_running_loop(), -1
            for _ in range(ATTEMPTS):
                version = self.journal.version
                await loop.run_in_executor(None, self._need_fit, found)
                await loop.run_in_executor(None, self._read, found.kind)
                await self._wait_for_disk()
                if version == self.journal.version:
                    break
            else:
                raise EnvironmentProblem(
                    "too many nodes changed during this declaration; try again"
                )
            # no await from here on: by now, everything that was accepted is on the disk
            following = self.machine.following.followers
            self.journal.begin_life(draw_life(revised=True))
            self._attributes, self.declaration = attributes, found
            self._start_machine(following)
            self._spawn(self._renew_helpers())
            return self.journal.version

    async def revise(self, kind: KindDefinition) -> Revision | None:
        """Use another kind of interest from now on, such as a revised ontology; return what
        changed, or None if nothing changed. Raises TidingsError if the kind of interest can't be
        used; then nothing changes.

        The state machine is replaced, as after a restart: nodes keep their numbers, a new life
        begins, neighbours resubscribe, and every process that tags starts over. Interests that now
        have another meaning get new nodes, and their subscribers continue at the new nodes. Cost:
        all filters are read again, in a thread; then the event loop is blocked, for about twice as
        long as a restart with compiled filters takes.
        """
        async with self._revising:
            declaration = self._declare(kind, self.door.channel)
            if declaration.text == self.declaration.text:
                self.kind = kind
                return None
            following = self.machine.following.followers
            await asyncio.get_running_loop().run_in_executor(None, self._read, declaration.kind)
            await self._wait_for_disk()
            # no await from here on: by now, everything that was accepted is on the disk
            following = {**following, **self.machine.following.followers}
            self._replace_nodes(self._interests.all_placed(), self._read(declaration.kind))
            self.kind, self.declaration = kind, declaration
            self._start_machine(following)
            self._spawn(self._renew_helpers())
            return declaration.revision or Revision(Ontology({}))

    async def _wait_for_disk(self) -> None:
        """Wait until nothing is being written; raise EnvironmentProblem if writing fails."""
        while self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing])
        if self.machine.failed:
            raise EnvironmentProblem(f"the journal {self._path} can't be written at present")

    def _start_machine(self, following: Mapping[str, FollowerState]) -> None:
        """Continue with another state machine; its life has already begun. Followers are treated as
        if they had just been heard from, and must acknowledge the changes."""
        machine = self._load_machine()
        machine.stamps.continue_from(self.machine.stamps)
        self.take_machine(machine)
        heard = {name: one._replace(time=self.now) for name, one in following.items()}
        self.machine.following.followers = heard

    async def adopt(self, asked: Adopt) -> int:
        """Adopt a snapshot that a command put into the folder; return its version. Raises
        TidingsError if the snapshot can't be adopted; then nothing changes.

        The state machine is replaced, as in `revise`. A thread writes the bulk and compiles all
        nodes; then the event loop is blocked for about as long as a restart with compiled filters
        takes.
        """
        loop = asyncio.get_running_loop()
        async with self._revising:
            if self.kind.kind != "content":
                raise TidingsError(
                    f"found a channel of the kind '{self.kind.kind}', expected the kind 'content'; "
                    "only channels whose interests are filters can adopt a snapshot"
                )
            adoption = await loop.run_in_executor(None, Adoption, self._path, asked, self._key_of)
            if not len(adoption):
                return self.journal.version
            try:
                for _ in range(ATTEMPTS):
                    await loop.run_in_executor(None, self._prepare_adoption, adoption)
                    await self._wait_for_disk()
                    # there must be no await from here until the state machine is replaced
                    version = adoption.commit(self.journal)
                    if version:
                        self.journal.begin_life(draw_life())
                        self._start_machine(self.machine.following.followers)
                        return version
            finally:
                adoption.discard()
        raise EnvironmentProblem(
            "during the adoption, nodes with the same filters changed; try again"
        )

    def _prepare_adoption(self, adoption: Adoption) -> None:
        """Write a bulk, and compile all nodes, including the nodes of the bulk."""
        nodes = adoption.prepare()
        stored = [*self.journal.interests(), *nodes]
        last, kind = nodes[-1][0] if nodes else 0, self.declaration.kind
        found = self._make_interests(stored, last, None, kind)
        for number, _ in nodes:
            one = found.refused.get(number)
            if one is not None:
                raise TidingsError(f"the filter {one.text!r:.200} is refused: {one.reason}")

    def _key_of(self, text: str, dialect: str) -> bytes | None:
        """The identity of a filter; None if the filter is refused."""
        try:
            return self.declaration.kind.parse(text, dialect).key
        except TidingsError:
            return None

    def _begin_revised(self) -> None:
        """Begin a life when the node starts. If the file has a different kind of interest than
        before, the start counts as a revision."""
        before, now = self.declaration.kind_before(), self.declaration.kind
        same_text = self.declaration.text == self.journal.history.declaration
        if same_text or all(one and not one.definition.encode() for one in (before, now)):
            self.journal.begin_life(draw_life())
        else:
            placed = () if before is None else self._read(before).all_placed()
            self._replace_nodes(placed, self._read(now))

    def _replace_nodes(self, before: Sequence[Placed], fresh: ArrayInterests) -> None:
        """Begin a life in which interests may have another meaning. Interests whose nodes now have
        different nodes below them get new nodes. When this function returns, all changes are on the
        disk."""
        after = fresh.all_placed()
        changed = find_changed(before, after)
        self.journal.begin_life(draw_life(revised=True))
        renumber(self.journal, changed, before, after, fresh.equal_to, fresh.alike)
        batch = self.journal.take()
        if batch is not None:
            self.journal.write(batch)

    def _read(self, kind: Kind) -> ArrayInterests:
        """Read the stored filters by the rules of this kind. Many filters are also compiled, so
        that the next call only opens the result."""
        stored, last = self.journal.interests(), self.journal.history.base
        return self._make_interests(stored, last, None, kind)

    def status(self, now: float) -> m.NodeStatus:
        followers, acknowledged = self.machine.following.count_followers()
        found = super().status(now)
        own = shorten(self.own.name)
        return msgspec.structs.replace(
            found, defined=self.kind.digest, renewed=self.machine.history.renewed,
            followers=followers, acknowledged=acknowledged, switched_off=self._list_off(),
            preprocessors=list_preprocessors(self.machine, now),
            carried=tuple(
                one if one.name != own else
                msgspec.structs.replace(one, kind=self.kind.kind, followers=followers)
                for one in found.carried
            ),
            sources=list_sources(self.machine, now), pipelines=len(self.machine.sources.known),
            names=list_names(self.machine), named=len(self.machine.naming.cursors.known),
        )  # fmt: skip

    @property
    def _folder(self) -> Path:
        return Path(f"{self._path}.interests")

    @property
    def undeclared(self) -> int:
        return self.extra.fields

    def _renew(self, interests: ArrayInterests) -> None:
        """Tell programs that tag to start over, if stored filters are now read differently."""
        hidden, declaration = tuple(sorted(interests.refused)), self.declaration.text
        history = self.journal.history
        if (hidden, declaration) != (history.hidden, history.declaration):
            self.journal.renew(interests.take_number(), hidden, declaration)

    async def stop(self) -> None:
        self.journal.stop_serving()
        await self._commands.stop()
        await super().stop()
        if isinstance(self.publications, MeritPublications):
            self.publications.close()
        await self._preparing.stop()
        await self._deciding.stop()
        await self._helpers.stop()
        tasks = [one for one in (self._writing, self._tending) if one is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._check is not None:
            self._check.cancel()
        await self._recompiling.stop()
        self.journal.close()

    def after_receiving(self) -> None:
        """Start a write, unless a write is running or nothing needs to be written. Records that
        arrive during a write share the next sync. Fast notifications are not written, but if a
        write is running, they are sent after that write."""
        if self.early is not None:
            self.early.ask_soon()
        if self._writing is not None and not self._writing.done():
            return
        waits = self.journal.has_waiting or len(self.machine.queue) > 0 or self._awaiting
        if waits or self.machine.failed or self.machine.released:
            self._writing = asyncio.get_running_loop().create_task(self._write())
        else:
            self._tend()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        if self.machine.failed:
            await self._restart_machine()
        while True:
            # While the event loop is busy, a thread gets the interpreter only once every half
            # millisecond, but needs it ten times for one write. So while publications wait, the
            # event loop itself writes.
            is_behind = isinstance(self.publications, MeritPublications) and self.publications.waits
            if is_behind and (wait := self._wrote + BETWEEN_WRITES - loop.time()) > 0:
                await asyncio.sleep(wait)  # so that many publications share a sync
            # after a failed write nothing more may be written
            batch = None if self.machine.failed else self.journal.take()
            if batch is None:
                # some messages may still wait for records of an earlier write
                self._release_stored(self.machine.written)
                self._tell_stored(self.machine.written)
                self._tend()
                return
            try:
                if is_behind:
                    self.journal.write(batch)
                else:
                    await loop.run_in_executor(None, self.journal.write, batch)
                self._wrote = loop.time()
            except Exception as problem:  # after a failure of any kind, nothing may be acknowledged
                if isinstance(problem, EnvironmentProblem):
                    _log.error("%s", problem)
                else:
                    _log.exception("the journal %s can't be written", self._path)
                said = str(problem) or type(problem).__name__
                self.dispatch(self.machine.fail(said))
                self._tell_stored(0, said)
                return
            while (upto := self.machine.next_stop(batch.upto)) < batch.upto:
                self._release_stored(upto)
                await asyncio.sleep(0)  # let other tasks run between blocks
            self._release_stored(batch.upto)
            self._tell_stored(batch.upto)
            self._tend()

    def _tend(self) -> None:
        """Maintain the journal and recompile the filters in the background, if that is due. The
        check visits all segments of the journal, so it is not repeated after every write."""
        wait = self._checked + TEND_PAUSE - self.now
        if wait > 0:  # nothing else may call this until the next frame arrives
            if self._check is None:
                self._check = asyncio.get_running_loop().call_later(wait, self._tend_again)
            return
        self._checked = self.now
        self._recompiling.tend(self._interests)
        at_work = self._tending is not None and not self._tending.done()
        if not at_work and self.now - self._tended > TEND_AGAIN and self.journal.is_due:
            self._tending = asyncio.get_running_loop().create_task(self._tend_now())

    def _tend_again(self) -> None:
        self._check = None
        self._tend()

    async def _tend_now(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.journal.tend)
        except Exception as problem:  # the log is intact, but the next start takes longer
            self._tended = self.now
            _log.error("%s", problem)

    def _release_stored(self, count: int) -> None:
        self.dispatch(self.machine.mark_stored(count, self.now))
        released, self.machine.released = self.machine.released, []
        for run in join_frames(released):
            try:
                self.forward(run.data, run.starts, run.ends)
            except Exception:  # none is lost: subscribers ask for missing notifications
                _log.exception("%s: notifications could not be forwarded", self._name)

    async def _restart_machine(self) -> None:
        """Continue from the state on disk if the journal can be written again. As long as the
        journal can't be written, the state machine refuses everything that must be written."""
        if self.now - self._tried < self.machine.times.retry:
            return
        self._tried = self.now
        try:
            machine = await asyncio.get_running_loop().run_in_executor(None, self._revive)
        except EnvironmentProblem as problem:
            _log.info("%s", problem)
            return
        self.take_machine(machine)
        _log.warning("the journal %s can be written again", self._path)

    def _revive(self) -> FramedRendezvous:
        """Reopen the journal and begin a new life, because the file may have been replaced."""
        self.journal.revive()
        self.journal.begin_life(draw_life())
        return self._load_machine()


def _must_split(run: Run, found: Permissions) -> bool:
    """Must the publications of a run be checked one by one? If not, the whole run is accepted: all
    its publications have the same publisher."""
    return bool(found.refusal(run.message(0))) or (not found.may_tag and run.lacks_contents)
