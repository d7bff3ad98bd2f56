"""The merits of a channel's publications, learnt from forwarded notifications."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from tidings.model import TidingsError
from tidings.preprocessing import Contents, ExtraFields, Kind
from tidings.relations import RelationSettings, Term
from tidings.relations.merit import ForwardedMerit, TermReader
from tidings.routing.protocol import messages as m
from tidings.routing.root import Relating, Relation


class PublicationMerits:
    """Computes merits of publications, and learns from the notifications that pass through
    `listen`."""

    def __init__(self, settings: RelationSettings, most: int, now: Callable[[], float]) -> None:
        """`most` is the limit of attributes in bytes; publications with longer attributes have no
        merit."""
        self._forwarded = ForwardedMerit(settings.semantic, settings.weights, settings.store)
        self._reader = TermReader(settings.semantic, settings.reading)
        self._most = most
        self._now = now
        self._contents: Contents | None = None

    def use_kind(self, kind: Kind) -> None:
        """Read attributes as this kind of interest does."""
        self._contents = Contents(kind, self._most, ExtraFields())

    def merit(self, message: m.Publish) -> float:
        return self._forwarded.of(self._terms(message.content))

    def work(self, most: int) -> int:
        return self._forwarded.work(most)

    def listen(self, relating: Relating) -> Relating:
        """The same relations, which also learn from each notification that they relate."""
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
        self._merits.note(content, lowest)
        return self._inner.relate(content, lowest, matched, upto)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
