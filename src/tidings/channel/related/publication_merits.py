"""The merits of a channel's publications, learnt from forwarded notifications."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Protocol

from tidings.model import TidingsError
from tidings.preprocessing import Contents, ExtraFields, Kind
from tidings.relations import RelationSettings, Term
from tidings.relations.merit import ForwardedMerit, TermReader
from tidings.relations.semantic import Growth
from tidings.routing.forwarding import GraphCaches
from tidings.routing.learning import Upkeep
from tidings.routing.protocol import messages as m
from tidings.routing.root import Relating, Relation


class Counting(Protocol):
    """The part of a state machine's interface that this module needs."""

    caches: GraphCaches

    def count_subscriptions(self, node: int) -> int:
        """How many subscriptions a node represents; 0 if all have ended."""


class PublicationMerits:
    """Computes merits of publications, and learns from the notifications that pass through
    `listen`. When subscriptions end, what was learnt for them is forgotten before the next use.
    """

    def __init__(self, settings: RelationSettings, most: int, now: Callable[[], float]) -> None:
        """`most` is the limit of attributes in bytes; publications with longer attributes have no
        merit."""
        self._forwarded = ForwardedMerit(
            settings.semantic, settings.weights, settings.store, self._count
        )
        self._reader = TermReader(settings.semantic, settings.reading, settings.asking)
        if settings.asking is not None:
            settings.asking.tell(self)
        self._most = most
        self._now = now
        self._contents: Contents | None = None
        self._machine: Counting | None = None
        self._upkeep: Upkeep | None = None

    def use_machine(self, machine: Counting) -> None:
        """Count subscriptions at this state machine. What was learnt about a node is kept if the
        node also exists in the new machine."""
        self._machine = machine
        store = self._forwarded.store
        self._upkeep = Upkeep(store, machine.caches, self._is_wanted, self._now())
        self._upkeep.check_all()

    def take_growth(self, grown: Sequence[Growth]) -> None:
        """Read all names again, because a dictionary now explains more of them."""
        self._reader.forget()
        self._forwarded.take_growth(grown)

    def _count(self, node: Hashable) -> int:
        assert isinstance(node, int)
        return 0 if self._machine is None else self._machine.count_subscriptions(node)

    def _is_wanted(self, hop: Hashable, _: Hashable) -> bool:
        return self._count(hop) > 0

    def use_kind(self, kind: Kind) -> None:
        """From now on, read attributes as this kind of interest does."""
        self._contents = Contents(kind, self._most, ExtraFields())

    def merit(self, message: m.Publish) -> float:
        if self._upkeep is not None:
            self._upkeep.catch_up()
        return self._forwarded.of(self._terms(message.content))

    def work(self, most: int) -> int:
        if most and self._upkeep is not None:
            self._upkeep.catch_up()
            self._upkeep.age(self._now())
        return self._forwarded.work(most)

    def tidy(self) -> bool:
        """Do one short step of grouping the learnt places and times; return False if nothing is
        left to do."""
        return self._upkeep is not None and self._upkeep.tidy()

    def listen(self, relating: Relating) -> Relating:
        """An object that relates notifications like `relating`, and learns from each of them."""
        return _Listening(relating, self)

    def note(self, content: bytes, nodes: Collection[int]) -> None:
        """Learn that a notification was tagged with these lowest nodes."""
        if nodes:
            self._forwarded.note(self._terms(content), tuple(nodes), self._now())

    def _terms(self, content: bytes) -> tuple[Term, ...]:
        if not content or self._contents is None:
            return ()
        try:
            return self._reader.terms(self._contents.read(content))
        except TidingsError:  # the publication will be refused
            return ()
        except Exception:  # `relate` reports it
            return ()


class _Listening:
    def __init__(self, inner: Relating, merits: PublicationMerits) -> None:
        self._inner = inner
        self._merits = merits

    def relate(
        self, content: bytes, lowest: tuple[int, ...], matched: Collection[int], upto: int | None
    ) -> Relation:
        found = self._inner.relate(content, lowest, matched, upto)
        self._merits.note(content, found.lowest)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
