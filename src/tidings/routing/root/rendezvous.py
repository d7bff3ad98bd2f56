"""The root of a channel: it knows every node, numbers notifications, and forgets nothing.

    Publish ──> tag ──> number ──> journal ──(on the disk)──> acknowledge, forward
    Ask ──> node ──> journal ──(on the disk)──> answer

Nothing that was said may be taken back by a crash, so whatever depends on something written is held
until that is on the disk: acknowledgments, notifications, and the names of nodes. The owner writes
what the journal was given, and says `stored` when it is there.

Whatever goes wrong with one message, also by a mistake that nobody thought of, is refused in a
sentence to whoever sent it and logged; what others were promised is kept. So nothing is changed
before all that can go wrong is behind: a publisher's stamp is advanced when its notification is in
the journal's hands.

What is counted, for each node: `counts`, the notifications of which it was a lowest node, which is
what numbers are; and `totals`, those that matched it.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from tidings.model import TidingsError
from tidings.routing.forwarding import ways
from tidings.routing.forwarding.accounts import Payer
from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.claims import MOST_OWNERS, UNKNOWN, Claims, behind
from tidings.routing.forwarding.downstream import Downstream, Name, Sent, entries_of
from tidings.routing.forwarding.label_graph import Label
from tidings.routing.forwarding.router import Times
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.limits import LONG, Limits, long_bytes, work_of
from tidings.routing.protocol.lineage import Lineage
from tidings.routing.protocol.marks import Marks, columns
from tidings.routing.root import shares
from tidings.routing.root.interests import Interests, Placed, TooMuchWork
from tidings.routing.root.journal import Journal, Memory, Record
from tidings.routing.root.stamps import MOST_FIRST, Stamps

MOST_KNOWN = 10_000  # headers, and all nodes above them
LARGEST = frames.LARGEST - (1 << 16)  # bytes of a payload: for headers there is room besides
FEW = 8  # marks that are better taken one by one
ROUNDS = 4  # of setting filters aside for one notification; the next one goes on with it
MARKS, MATCH = "give marks to", "match"  # what filters do that are too many
RETIRED = 20, 500  # nodes that were set aside and are taken out: with a publication, with a tick
MOST_NAMED = 4 * MOST_OWNERS  # owners of a node that are behind one router
NEW_NODE = 100  # what a new node costs, in entries of an answer

_log = logging.getLogger(__name__)


class Retired(msgspec.Struct, frozen=True):
    """A node that is not there any more, though somebody may have missed its last numbers."""

    above: set[int]  # those that covered it
    count: int
    latest: int
    since: float


class Rendezvous(Downstream):
    """A rendezvous point, between its interests and its journal."""

    def __init__(
        self,
        name: str,
        interests: Interests,
        journal: Journal,
        memory: Memory,
        times: Times | None = None,
        cache: Cache | None = None,
        limits: Limits | None = None,
    ) -> None:
        """The life of this start is on the disk, as the last one of the memory."""
        life = memory.lineage[-1].life
        super().__init__(name, times or Times(), Cache() if cache is None else cache, life, limits)
        self.interests = interests
        self.journal = journal
        self.standing.life, self.standing.lineage = life, Lineage(memory.lineage)
        self.serial = memory.serial
        self.counts = dict(memory.counts)
        self.totals = dict(memory.totals)
        self.latest = dict(memory.latest)
        self._stamps = Stamps(memory.publishers)
        for one in memory.placed:
            self.graph.insert(one.node, one.parents, one.children)
        self.claims = Claims()
        self._last_node = 0
        for one in memory.placed:
            self._last_node = max(self._last_node, one.node)
            self.claims.measure(one.node, memory.sizes.get(one.node, 0))
            self.claims.replace(one.node, memory.owners.get(one.node, ()))
        self.claims.pass_time(float("-inf"), self._last_node, 0.0)
        self._aside: dict[int, int] = {}  # nodes that are to be taken out, after which serial
        self._who: dict[int, set[str]] = {}  # nodes of which it was asked whose they are,
        self._who_since = 0.0  # when, and what was said,
        self._named: Counter[tuple[int, Name]] = Counter()  # by which router how often
        self._most_marks = min(self.limits.all_marks, frames.MOST_MARKS)
        self._unwanted: dict[int, float] = {}  # nodes that nobody wants, since when
        self._retired: dict[int, Retired] = {}
        # of them, those that are new: who pays for them
        self._makers: dict[int, tuple[Payer, ...]] = {}
        self._records: deque[Record] = deque()  # those that wait until they are stored
        self._promised = 0  # entries of answers that wait until something is stored
        self._unsynced: deque[tuple[int, int]] = deque()  # written so far, bytes of a publication
        self._written = memory.written  # things that were given to the journal
        self._held: deque[tuple[int, Record | Sent]] = deque()  # waits for so many
        self._changed: dict[int, int] = {}  # totals since the last beat
        self._uncounted: dict[Label, int] = {}  # what went out and is not in the totals yet
        self._given = self.serial  # the last serial that has a number
        self._given_counts = dict(self.counts)
        # of publishers: stamps that are on the disk, and the serial of the last
        self._acks: dict[str, tuple[int, int, int]] = {}
        self._failed = ""  # why nothing can be written any more
        self._above: dict[Label, Label] = {}
        self._fitting: tuple[int, set[Label]] = -1, set()  # what is within all shares
        self._most_judged = 0  # nodes of a notification
        self._first: dict[int, Label] = {}
        self._beaten = float("-inf")
        self._checked = float("-inf")

    @property
    def publishers(self) -> dict[str, int]:
        """The last stamp of each."""
        return self._stamps.known

    # -- what comes in -------------------------------------------------------------------------

    def receive(self, sender: Name, message: m.Message, now: float) -> list[Sent]:
        """Take a message of a neighbour; what is to be sent now."""
        self.now = now
        if isinstance(message, (m.Ask, m.Count, m.Publish)):
            self.heard_of(sender)
            self._answer(sender, message)
        else:
            self.from_below(sender, message)
        return self.taken()

    def written(self) -> int:
        """How many things the journal was given so far; see `stored`."""
        return self._written

    def stored(self, count: int, now: float) -> list[Sent]:
        """The first `count` things that the journal was given are on the disk."""
        self.now = now
        while self._held and self._held[0][0] <= count:
            _, what = self._held.popleft()
            if isinstance(what, Record):
                self._records.popleft()
                with self._careful("tell of a notification"):
                    self._announce(what)
            else:
                self._count_all()
                self.send(*what)
                if isinstance(what[1], m.Answer):
                    self._promised -= len(what[1].counts)
        self._count_all()
        for publisher in [*self._acks]:
            self._send_acknowledged(publisher)
        while self._unsynced and self._unsynced[0][0] <= count:
            self.unsynced_bytes -= self._unsynced.popleft()[1]
        return self.taken()

    def tick(self, now: float) -> list[Sent]:
        """Do what is due: called at least once each `beat`."""
        self.now = now
        if not self._failed:
            self._retire_aside(RETIRED[1])
            self._settle_owners()
        self.claims.pass_time(now, self._last_node, self.times.expire)
        if now - self._checked >= self.times.retry:
            if self._checked < 0:  # nodes of a life before, which nobody may want any more
                there = self.graph.nodes.keys() - self.wants.keys() - self._unwanted.keys()
                self._unwanted |= dict.fromkeys(there, now)
            self._checked = now
            with self._careful("forget who is gone"):
                self.expire()
            if not self._failed:
                self._forget_unwanted()
                self._forget_publishers()
            with self._careful("prune the journal"):
                self.journal.prune(max(self.done(), self.serial - self.limits.kept))
        if now - self._beaten >= self.times.beat:
            self._beaten = now
            changed, self._changed = self._changed, {}
            self.beat(changed)
        return self.taken()

    @contextlib.contextmanager
    def _careful(self, what: str) -> Iterator[None]:
        """Whatever goes wrong is logged, and what comes after it is done all the same."""
        try:
            yield
        except Exception:
            self._problem(what)

    def _problem(self, what: str) -> str:
        """An exception that nobody expected: it is logged; the sentence for whom it concerns."""
        self.beyond["problems"] += 1
        _log.exception("%s: could not %s", self.name, what)
        return f"the rendezvous point could not {what}, by a mistake of its own; see its log"

    # -- questions -----------------------------------------------------------------------------

    def _answer(self, sender: Name, message: m.Ask | m.Count | m.Publish) -> None:
        if isinstance(message, m.Publish):
            self._take(sender, message)
        elif isinstance(message, m.Ask):
            message = self.stamped(sender, message)
            if self.may_ask(sender, message.owner) and not self._refused(sender, message):
                self._place(sender, message)
        elif not self.may_ask(sender):
            return
        elif message.epoch != self.epoch:
            self.tell_epoch(sender)
        elif message.node not in self.graph:
            self.send(sender, m.Refuse(self.epoch, (message.node,)))
        else:
            under = self._under(message.node)
            self.charge(sender, len(under))
            counts = self._counts_of(message.node, under, message.since)
            total = self.totals.get(message.node, 0)
            self.send(sender, m.Counted(self.epoch, message.request, message.node, self.serial,
                                        total, counts))  # fmt: skip

    def _take(self, sender: Name, message: m.Publish) -> None:
        """Take a publication, and count what waits for the disk: whoever reads from neighbours
        stops while that is too much."""
        if len(self.publishers) > self.many_publishers:
            self._stamps.heard(message.publisher)
        if self._aside and not self._failed:
            self._retire_aside(RETIRED[0])
        before = self._written
        self._publish(sender, message)
        if self._written > before:
            what = self._held[-1][1]
            if isinstance(what, Record):
                self._records.append(what)
            size = len(message.payload) + len(message.content)
            self._unsynced.append((self._written, size))
            self.unsynced_bytes += size

    def _refused(self, sender: Name, message: m.Ask) -> bool:
        """Is an interest beyond a limit? Where room may come, the asker asks again."""
        limits, payers = self.limits, self.payers(sender, message.owner)
        size = len(message.interest)
        self.charge(sender, work_of(message.interest), message.owner)
        is_full = len(self.graph) >= limits.all_nodes
        makes_many = len(self._makers) >= limits.all_new_nodes or any(
            one.account.made >= one.most(limits.new_nodes, limits.all_new_nodes) for one in payers
        )
        refusal = ""
        if size > limits.filter_bytes:
            refusal = f"found a filter of {size:,} bytes, expected at most {limits.filter_bytes:,}"
            self.beyond["filter_bytes"] += 1
        elif (is_full or makes_many) and self._would_be_new(message.interest):
            if not is_full:
                self.beyond["new_nodes"] += 1
                return True
            refusal = f"there are {len(self.graph):,} nodes, expected at most {limits.all_nodes:,}"
            self.beyond["all_nodes"] += 1
        elif self._promised > limits.burst:
            self.beyond["work"] += 1
            return True
        else:
            refusal = self._beyond_share(message)
        if refusal:
            self.send(sender, m.Answer(self.epoch, message.request, refusal=refusal))
        return bool(refusal)

    def _would_be_new(self, interest: bytes) -> bool:
        try:
            return self.interests.look_up(interest)[1] is None
        except TidingsError:
            return False  # placing it says why

    def stamped(self, sender: Name, message: m.Ask) -> m.Ask:
        message = super().stamped(sender, message)
        return message if message.owner else msgspec.structs.replace(message, owner=str(sender))

    def _beyond_share(self, message: m.Ask) -> str:
        """Why an owner may not have one filter more; empty if it may, or has it."""
        limits, owner = self.limits, message.owner
        held = self.claims.holding(owner)
        size = held.size + work_of(message.interest)
        long = long_bytes(work_of(message.interest))
        long += held.long if long else 0
        most_long = limits.long_filter_bytes * limits.long_percent // 100
        is_much = size > limits.filters_bytes or long > most_long or held.nodes >= limits.nodes
        if not held.aside and not is_much:
            return ""
        try:
            key, node = self.interests.look_up(message.interest)
        except TidingsError:
            return ""  # placing it says why
        there = node is not None and node not in self._aside
        if there and owner in self.claims.owners(node or 0):
            return ""
        if size > limits.filters_bytes:
            self.beyond["filters_bytes"] += 1
            return (
                f"the filters of {shares.whose(owner)} have {size:,} bytes with this one, of which "
                f"those beyond the first 1,024 of a filter count eightfold, expected at most "
                f"{limits.filters_bytes:,}; drop others first"
            )
        if long > most_long:
            self.beyond["long_filter_bytes"] += 1
            return (
                f"the filters of {shares.whose(owner)} that are longer than {LONG:,} bytes have "
                f"{long:,} with this one, expected at most {most_long:,}; drop others first"
            )
        if held.nodes >= limits.nodes:
            self.beyond["nodes"] += 1
            return (
                f"{shares.whose(owner)} has {held.nodes:,} filters, expected at most "
                f"{limits.nodes:,}; drop others first"
            )
        refusal = self.claims.is_refused(owner, key)
        self.beyond["marks"] += bool(refusal)
        return refusal

    def _place(self, sender: Name, message: m.Ask) -> None:
        if self._failed:
            self.send(sender, m.Answer(self.epoch, message.request, refusal=self._failed))
            return
        try:
            placed = self.interests.place(message.interest)
            is_new = placed.node not in self.graph
            if is_new:
                self._make(sender, placed, message)
        except TidingsError as problem:
            self.send(sender, m.Answer(self.epoch, message.request, refusal=str(problem)))
            return
        except Exception:
            refusal = self._problem("place the filter")
            self.send(sender, m.Answer(self.epoch, message.request, refusal=refusal))
            return
        node = placed.node
        self._last_node = max(self._last_node, node)
        self.claims.measure(node, work_of(message.interest))
        if node in self._aside:  # whoever asks now is another one, or has room again
            del self._aside[node]
            self.interests.bring_back(node)
            self.graph_changed()
            self._own(node, (message.owner,))
        elif is_new:
            self.claims.add(node, message.owner)
        elif node not in self.wants and node not in self._makers:
            self._own(node, (message.owner,))  # those whose it was have left
        elif self.claims.add(node, message.owner):
            self.journal.set_owners(node, self.claims.owners(node))
            self._written += 1
        if node not in self.wants:
            self._unwanted[node] = self.now  # from now on someone may
        # all numbers that were given by now are on the disk when this is sent
        given = self._given_counts
        counts = {one: given[one] for one in self._under(node) if one in given}
        self.charge(sender, len(counts), message.owner)
        self._promised += len(counts)
        pending = sum(node in record.matched for record in self._records)
        answer = m.Answer(
            self.epoch, message.request, node, self._given,
            self.totals.get(node, 0) + pending, counts,
        )  # fmt: skip
        self._hold((sender, answer))

    def _make(self, sender: Name, placed: Placed, message: m.Ask) -> None:
        """Put a new node into the graph and the journal, or nowhere."""
        node = placed.node
        try:
            for one in (placed, *placed.also):
                self.graph.insert(one.node, one.parents, one.children)
            self.journal.add_node(node, message.interest, message.owner)
        except Exception:
            with contextlib.suppress(Exception):
                self.interests.remove(node)
            if node in self.graph:
                self.graph.remove(node)
            self.graph_changed()
            raise
        self._written += 1
        self.graph_changed()
        self._makers[node] = payers = self.payers(sender, message.owner)
        for account, _ in payers:
            account.made += 1
        self.charge(sender, NEW_NODE, message.owner)

    def ask_above(self, message: m.Message) -> None:
        """A question that no cache here could answer: it is for the journal."""
        if not isinstance(message, m.Recover):
            return
        try:
            ranges = self._existing(message.ranges)
            found, lost = self.journal.find(ranges, self.limits.answer_bytes)
        except TidingsError:
            return  # it will be asked for again
        request = self._requests[message.request]
        self.charge(request.neighbour, entries_of(found))
        for notification in found:
            self.cache.put(notification)
        self.give_recovered(request.neighbour, request.number, found)
        self.pass_down(m.Settled(self.epoch, message.request, tuple(lost)))

    def told_whose(self, router: Name, owner: str, nodes: Iterable[int]) -> None:
        """It says it of those that it was asked for, and names no more than so many of each."""
        for node in nodes:
            if node in self._who and self._named[node, router] < MOST_NAMED:
                before = len(self._who[node])
                self._who[node].add(owner)
                self._named[node, router] += len(self._who[node]) - before

    def looked_for(self, ranges: list[m.Range]) -> tuple[list[m.Range], list[m.Range]]:
        exist = self._existing(ranges)
        here = [one for one in exist if self._is_known(one.node)]
        return here, [one for one in exist if not self._is_known(one.node)]

    def _is_known(self, node: int) -> bool:
        """Is a node there, or was it a while ago?"""
        return node in self.counts or node in self.graph or node in self._retired

    def _existing(self, ranges: Iterable[m.Range]) -> list[m.Range]:
        """Without numbers that there are none of: what is not on the disk yet is not lost, it comes
        by itself. And no more than are found at once."""
        found: list[m.Range] = []
        left = self.limits.burst
        for node, first, last in ranges:
            first = max(first, 1)
            if self._is_known(node):
                last = min(last, self._count_of(node))  # of others nobody knows but the journal
            last = min(last, first + left - 1)
            if first <= last:
                found.append(m.Range(node, first, last))
                left -= last - first + 1
        return found

    # -- publishing ----------------------------------------------------------------------------

    def _publish(self, sender: Name, message: m.Publish) -> None:
        who, stamp = message.publisher, message.stamp
        expected = self._expected(sender, message)
        if expected is None:
            return
        if stamp < expected:  # it came before; the acknowledgment may be on its way
            answer = self._said_before(message, expected - 1)
            if answer is not None and answer.refusal:
                self.send(sender, answer)
            elif answer is not None:
                self._hold((sender, answer))
            return
        if self._failed:
            self._skip(sender, message, self._failed)
            return
        if stamp > expected:  # one before it was lost; the publisher will say both again
            return
        refusal = ""
        try:
            try:
                record = self._record(message)
            except TidingsError as problem:  # said again it would be refused again, so it is done
                refusal, record = str(problem), Record(0, who, stamp, (), (), b"")
            self.journal.append(record)
        except TidingsError as problem:
            self._skip(sender, message, str(problem))
            return
        except Exception:
            self._skip(sender, message, self._problem("match the notification"))
            return
        self._written += 1
        self._stamps.advance(who, stamp, refused=bool(refusal))
        # not before: a stamp that was made up would lead acknowledgments to who made it up
        self.know_publisher(who, sender)
        if refusal:
            self._hold((sender, m.Published(self.epoch, who, stamp, refusal)))
            return
        self._given = record.serial
        self._given_counts.update(zip(*columns(record.marks), strict=True))
        self._held.append((self._written, record))

    def _expected(self, sender: Name, message: m.Publish) -> int | None:
        """The stamp that comes next of a publisher; None where it is told what is wrong."""
        who, first = message.publisher, message.first
        expected = self._stamps.expected(who, first)
        if expected is None and who in self.publishers:
            lacks = self.publishers[who] + 1
            self.send(sender, m.Published(self.epoch, who, 0, expected=lacks))
        elif expected is None:
            refusal = f"found {first:,} as the first stamp, expected at most {MOST_FIRST:,}"
            self.send(sender, m.Published(self.epoch, who, message.stamp, refusal))
        return expected

    def _skip(self, sender: Name, message: m.Publish, refusal: str) -> None:
        """Refuse a publication without a word in the journal."""
        self._stamps.skip(message.publisher, message.stamp, message.first)
        self.send(sender, m.Published(self.epoch, message.publisher, message.stamp, refusal))

    def _record(self, message: m.Publish) -> Record:
        """What a publication becomes; nothing is changed by it."""
        lowest = self._tagged(message)
        return Record(
            self._given + 1, message.publisher, message.stamp, self._number(lowest),
            self._all_above(lowest), message.payload,
        )  # fmt: skip

    def _tagged(self, message: m.Publish) -> Label:
        """The lowest nodes of a publication; TidingsError where it is refused. That it matches many
        filters is no reason: those that are beyond a share are set aside."""
        if len(message.payload) > LARGEST:
            raise TidingsError(
                f"found a payload of {len(message.payload):,} bytes, expected at most {LARGEST:,}"
            )
        limits, tag = self.limits, self._tag
        lowest = tag(message.content)
        rounds = 0
        known = self._above
        while (
            len(lowest) > limits.marks
            or len(known.get(lowest) or self._all_above(lowest)) > limits.matches
        ):
            rounds += 1
            late = rounds > ROUNDS and len(lowest) <= self._most_marks
            if late or not self._set_aside(lowest):
                break
            lowest = tag(message.content)
        return lowest

    def _tag(self, content: bytes) -> Label:
        """Those that the filters say; the filters of owners for whom that takes longer than a share
        are set aside."""
        try:
            return tuple(sorted(self.interests.tag(content)))
        except TooMuchWork:
            found = self.interests.tag_fairly(content, self.claims.owners)
        self._apply(shares.lighten(self.claims, found.over))
        return tuple(sorted(found.nodes))

    def _set_aside(self, lowest: Label) -> bool:
        """Set aside what is beyond a share of the nodes of a notification; False if nothing is.
        Most notifications have the nodes of one before, and nothing has changed since."""
        if self._fitting[0] != self.claims.version:
            self._fitting = self.claims.version, set()
        if lowest in self._fitting[1]:
            return False
        if self._who and len(lowest) <= self._most_judged:
            return False  # whose some of them are is being asked
        self._most_judged = len(lowest)
        limits, wanted = self.limits, self.wants.__contains__
        verdict = shares.judge(self.claims, lowest, limits.marks, self._most_marks, wanted, MARKS)
        if not verdict.aside:
            matched = self._all_above(lowest)
            is_fitting = not (verdict.less or verdict.doubts)
            self._apply_less(verdict)  # what goes now is judged by who is left
            more = shares.judge(
                self.claims, matched, limits.matches, limits.all_nodes, wanted, MATCH
            )
            if is_fitting and not (more.aside or more.less or more.doubts):
                self._fitting[1].add(lowest)
            more.doubts = [*{*verdict.doubts, *more.doubts}]
            verdict = more
        return self._apply(verdict)

    def _apply_less(self, verdict: shares.Verdict) -> None:
        for node, owners in verdict.less.items():
            self._own(node, owners)

    def _apply(self, verdict: shares.Verdict) -> bool:
        """Set aside what is to be; False if nothing is."""
        self._apply_less(verdict)
        for node, (owner, why) in verdict.aside.items():
            self.claims.set_aside(owner, self.interests.identity(node), why)
            self._aside[node] = self._given
            self._unwanted.pop(node, None)
            self._settle(node)
            self.refuse_all(node)
        if verdict.aside:
            self.beyond["marks"] += len(verdict.aside)
            self.interests.set_aside(verdict.aside)
            self.graph_changed()
        if verdict.doubts and not self._who:
            self._who = {node: set() for node in verdict.doubts}
            self._named.clear()
            self._who_since = self.now
            for owner, nodes in self.ask_who(self._who).items():
                for node in nodes:
                    self._who[node].add(owner)
        return bool(verdict.aside)

    def _own(self, node: int, owners: Iterable[str]) -> None:
        if self._failed:  # there may be another journal by now, which another machine goes on with
            return
        if self.claims.replace(node, owners):
            self.journal.set_owners(node, self.claims.owners(node))
            self._written += 1

    def _settle_owners(self) -> None:
        """All that know whose nodes are have said it by now. Where nobody did, those whose they
        were are taken at their word: silence takes no node out of anybody's share."""
        if self._who and self.now - self._who_since >= self.times.retry:
            for node, owners in self._who.items():
                if node in self.graph and node not in self._aside:
                    if owners:
                        self._own(node, owners)
                    self.claims.confirm(node, self.now)
            self._who = {}

    def _retire_aside(self, most: int) -> None:
        """Take out some of the nodes that were set aside, once all that they were marks of went
        out."""
        for node, serial in [*islice(self._aside.items(), most)]:
            if serial > self.serial:
                break
            del self._aside[node]
            self._retire(node)

    def _number(self, lowest: Label) -> Sequence[m.Mark]:
        """The marks of a notification; they count once it is in the journal's hands."""
        given = self._given_counts
        if len(lowest) < FEW:
            return tuple(m.Mark(node, given.get(node, 0) + 1, (node,)) for node in lowest)
        return Marks(lowest, tuple([given.get(node, 0) + 1 for node in lowest]))

    def _said_before(self, message: m.Publish, last: int) -> m.Published | None:
        """The acknowledgment of one that was taken, or refused, before. That one was refused need
        not be remembered: it would be again. None where that can't be said now."""
        who, stamp = message.publisher, message.stamp
        solid = self._stamps.solid(who, stamp)
        if solid is not None:
            return m.Published(self.epoch, who, last, since=solid, serial=self._given)
        try:
            self._tagged(message)
        except TidingsError as problem:
            return m.Published(self.epoch, who, stamp, str(problem))
        except Exception:
            self._problem("match the notification")
            return None
        return m.Published(self.epoch, who, stamp, since=stamp, serial=self._given)

    def _announce(self, record: Record) -> None:
        """A notification is on the disk: it counts, it is acknowledged, and it goes out."""
        self.serial = record.serial
        self._acknowledge(record)
        uncounted = self._uncounted
        uncounted[record.matched] = uncounted.get(record.matched, 0) + 1
        nodes: Label = ()
        if len(record.marks) < FEW:
            for node, number, _ in record.marks:
                self.counts[node] = number
                self.latest[node] = record.serial
                nodes = (*nodes, node)
        else:
            nodes, numbers = columns(record.marks)
            self.counts.update(zip(nodes, numbers, strict=True))
            self.latest.update(dict.fromkeys(nodes, record.serial))
        if nodes:
            self.release(record, nodes)

    def _count_all(self) -> None:
        """Count what went out. Most notifications match the same nodes as others before."""
        totals, moved, changed = self.totals, self._moved, self._changed
        for matched, times in self._uncounted.items():
            for node in matched:
                before = totals.get(node, 0)
                if node not in moved:
                    moved[node] = before
                changed[node] = totals[node] = before + times
        self._uncounted.clear()

    def _acknowledge(self, record: Record) -> None:
        """One is on the disk. Those that follow each other are acknowledged together."""
        publisher, stamp = record.publisher, record.stamp
        first, last, _ = self._acks.get(publisher, (stamp, stamp - 1, 0))
        if stamp != last + 1:
            self._send_acknowledged(publisher)
            first = stamp
        self._acks[publisher] = first, stamp, record.serial

    def _send_acknowledged(self, publisher: str) -> None:
        first, last, serial = self._acks.pop(publisher)
        solid = self._stamps.solid(publisher, first)
        since = first if solid is None else solid
        self.send_back(m.Published(self.epoch, publisher, last, since=since, serial=serial))

    def _first_label(self, node: int) -> Label:
        found = self._first.get(node)
        if found is None:
            found = self._first[node] = ways.first_label(self.graph, node, self.forwarding)
        return found

    def release(self, record: Record, nodes: Label) -> None:
        """Let a notification out, with the labels that its marks begin their way with."""
        labels = [self._first_label(node) for node in nodes]
        marks = [
            m.Mark(mark.node, mark.number, label)
            for mark, label in zip(record.marks, labels, strict=True)
        ]
        notification = record.notification(self.epoch, tuple(marks))
        self.cache.put(notification)
        self.forward(notification)

    def _hold(self, sent: Sent) -> None:
        """Send something when all that was written by now is on the disk."""
        self._held.append((self._written, sent))

    def fail(self, reason: str) -> list[Sent]:
        """What was written could not be put on the disk: whoever waits for it is told so, and from
        now on whoever wants something written. The owner begins anew with what is there."""
        self._failed = reason
        for _, what in self._held:
            if isinstance(what, Record):
                self._stamps.take_back(what.publisher, what.stamp)
                self.send_back(m.Published(self.epoch, what.publisher, what.stamp, reason))
            elif isinstance(what[1], m.Answer):
                self.send(what[0], m.Answer(self.epoch, what[1].request, refusal=reason))
            elif isinstance(what[1], m.Published) and what[1].refusal:
                self._stamps.take_back(what[1].publisher, what[1].stamp)
                self.send(*what)  # it was refused for another reason
        self._held.clear()
        self._promised = self.unsynced_bytes = 0
        self._unsynced.clear()
        self._records.clear()
        self._given = self.serial  # no acknowledgment may speak of what is not there
        return self.taken()

    @property
    def failed(self) -> bool:
        """Must the owner begin anew?"""
        return bool(self._failed)

    # -- nodes ---------------------------------------------------------------------------------

    def admitted(self, name: Name, nodes: Iterable[int]) -> list[int]:
        """Nodes that are not there are refused, all at once."""
        asked = list(nodes)
        aside = self._aside
        unknown = tuple(node for node in asked if node not in self.graph or node in aside)
        if unknown:
            self.beyond["no such node"] += len(unknown)
            self.send(name, m.Refuse(self.epoch, unknown))
            asked = [node for node in asked if node in self.graph and node not in aside]
        return super().admitted(name, asked)

    def wanted(self, node: int) -> None:
        self._unwanted.pop(node, None)
        self._settle(node)
        if node not in self.graph:
            self.refuse_all(node)

    def unwanted(self, node: int) -> None:
        if node in self.graph:
            self._unwanted[node] = self.now
            self.claims.dropped(node)

    def _unsubscribe(self, sender: Name, node: int) -> None:
        super()._unsubscribe(sender, node)
        owner = self.owner_of(sender)
        if owner and node in self.wants and owner in self.claims.owners(node):
            left = {self.owner_of(name) or behind(name, UNKNOWN) for name in self.wants[node]}
            if owner not in left:  # what others want is theirs from now on
                others = {*self.claims.owners(node)} - {owner}
                self._own(node, others or left)
                if not others:  # routers know whose it is behind them, and are asked in time
                    self.claims.doubt(node)

    def total(self, node: int) -> int:
        return self.totals.get(node, 0)

    def graph_changed(self) -> None:
        super().graph_changed()
        self._above.clear()
        self._fitting = -1, set()
        self._first.clear()

    def _all_above(self, lowest: Label) -> Label:
        """The nodes of a header and all that cover them; known until the graph changes."""
        found = self._above.get(lowest)
        if found is None:
            nodes = self.graph.nodes
            above = set(lowest).union(
                *(self.graph.ancestors(node) for node in lowest if nodes[node].parents)
            )
            above -= self._aside.keys()
            if len(self._above) >= MOST_KNOWN:
                self._above.clear()
            found = self._above[lowest] = tuple(sorted(above))
        return found

    def _under(self, node: int) -> set[int]:
        return self.graph.descendants(node) | {node}

    def _counts_of(self, node: int, nodes: Iterable[int], since: int) -> dict[int, int]:
        """Of nodes under a node, and of those that were and are retired."""
        found = {one: self.counts[one] for one in nodes if self.latest.get(one, 0) > since}
        for number, one in self._retired.items():
            if one.latest > since and node in one.above:
                found[number] = one.count
        return found

    def _count_of(self, node: int) -> int:
        retired = self._retired.get(node)
        return self.counts.get(node, 0) if retired is None else retired.count

    def _forget_unwanted(self) -> None:
        """Retire nodes that nobody wanted for so long that nobody can still be about to; and forget
        them when nobody can still ask for their numbers: who is away for longer is told so."""
        late = self.now - 2 * self.times.expire
        old = {node for node, since in self._unwanted.items() if since < late}
        if old:
            old.difference_update(*(record.matched for record in self._records))
        for node in sorted(old):
            del self._unwanted[node]
            with self._careful(f"forget node {node}"):
                self._retire(node)
        late, done = self.now - 3 * self.times.expire, self.done()
        many = len(self._retired) - self.limits.all_new_nodes
        for at, (node, one) in enumerate([*self._retired.items()]):
            if at < many or (one.since < late and one.latest <= done):
                del self._retired[node]

    def _retire(self, node: int) -> None:
        """Take out a node that nobody wants; somebody may still have to hear of its numbers."""
        self._settle(node)
        self.interests.remove(node)
        self.claims.remove(node)
        above = {*self.graph.ancestors(node)}
        self.graph.remove(node)
        self.graph_changed()
        count, latest = self.counts.get(node, 0), self.latest.get(node, 0)
        self._retired[node] = Retired(above, count, latest, self.now)
        self.journal.drop_node(node)
        self._written += 1
        for table in (self.counts, self._given_counts, self.totals, self.latest):
            table.pop(node, None)

    def _settle(self, node: int) -> None:
        """A node is wanted, or gone: it is not new any more."""
        for account, _ in self._makers.pop(node, ()):
            account.made -= 1

    def _forget_publishers(self) -> None:
        """Forget the stamps of those that published nothing for the longest time. One that comes
        back says itself which of its publications it knows to be acknowledged."""
        many = len(self.publishers) - self.limits.publishers
        if many > 0:
            self.journal.forget_publishers(self._stamps.forget(many))
            self.beyond["publishers"] += many
