"""The related nodes of notifications, and the bytes that frames carry about them.

attributes ──terms──> context
             `──index of named values──> filters that are related ──chains──> nodes, reasons
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from tidings.channel.related.related_chains import RelatedChains
from tidings.filters import Filter
from tidings.filters.language import text_of
from tidings.model import Event, FilterError, TidingsError
from tidings.preprocessing import Contents, ExtraFields, Kind, calls_in
from tidings.relations import (
    Place,
    Recurring,
    RelatedMatch,
    RelationSettings,
    Term,
    TimeSpan,
    encode_terms,
)
from tidings.relations.merit import ROUNDING, RelatedInterests, TermReader
from tidings.relations.semantic import Growth
from tidings.routing.protocol import Reason, Related, encode_found, make_front
from tidings.routing.root import Relation

MOST_KNOWN = 10_000  # the most contexts that are remembered
SLICE = 0.002  # seconds after which a slice of relating many notifications ends
_log = logging.getLogger(__name__)


class ChannelRelations:
    """The related nodes of a channel, and the contexts of its notifications."""

    def __init__(self, settings: RelationSettings, kind: Kind, most: int) -> None:
        """`most` is the limit of attributes in bytes; longer ones are not read."""
        self.settings = settings
        self.chains = RelatedChains()
        self._reader = TermReader(settings.semantic, settings.reading, settings.asking)
        self._contents = Contents(kind, most, ExtraFields())
        self._index = RelatedInterests(settings.semantic, settings.weights, self._reader)
        self._aside: set[int] = set()
        self.problems = 0
        """How many notifications could not be related because of an unexpected exception."""
        self._known: dict[tuple[Term, ...], bytes] = {}
        if settings.asking is not None:
            settings.asking.tell(self)

    def take_growth(self, grown: Sequence[Growth]) -> None:
        """Read all names again, because a dictionary now explains more of them."""
        self._reader.forget()
        self._index.take_growth(grown)

    @property
    def bases(self) -> Mapping[int, int]:
        return self.chains.bases

    def dependents(self, node: int) -> list[int]:
        return [one.node for one in self.chains.chain(node)]

    def least(self, node: int) -> float:
        return self.chains.least(node)

    # -- nodes ---------------------------------------------------------------------------------

    def check(self, filter_: Filter, least: float) -> None:
        """Raise TidingsError if a related interest can't have this filter and this lowest weight.
        Filters with predicates are refused: a predicate is called only for notifications that pass
        the plain tests, but a related notification need not pass them."""
        for term in filter_.form.terms.values():
            for call in calls_in(term):
                raise FilterError(
                    f"related={least} needs a filter that calls no predicate, but this filter "
                    f"calls {text_of(call)}"
                )
        self._index.check(filter_, least)

    def add(self, node: int, exact: int, filter_: Filter, least: float) -> None:
        """Add a related node above the node of its filter; raises TidingsError as `check` does."""
        self.check(filter_, least)
        lower = min((one.least for one in self.chains.chain(exact)), default=least)
        self._index.cancel(exact)
        self._index.add(exact, filter_, None, min(lower, least))
        self.chains.add(node, exact, least)

    def remove(self, node: int) -> None:
        exact = self.chains.remove(node)
        self._aside.discard(node)
        left = self.chains.chain(exact)
        if left:
            self._index.set_least(exact, left[0].least)
        else:
            self._index.cancel(exact)

    def set_aside(self, node: int) -> None:
        self._aside.add(node)

    def bring_back(self, node: int) -> None:
        self._aside.discard(node)

    # -- notifications -------------------------------------------------------------------------

    def relate(
        self, content: bytes, lowest: tuple[int, ...], matched: Collection[int], upto: int | None
    ) -> Relation:
        if not content:  # the notification was tagged elsewhere, and came without attributes
            return Relation(lowest, b"")
        try:
            event = self._contents.read(content)
            terms = self._reader.terms(event)
            found = self._find(event, terms, matched, upto) if len(self.chains) else {}
            front = make_front(self._encode(terms), encode_found(found))
        except TidingsError:  # tagged elsewhere, since this root would have refused it
            return Relation(lowest, b"")
        except Exception:
            self._report()
            return Relation(lowest, b"")
        return Relation(tuple(sorted((*lowest, *found))) if found else lowest, front)

    def begin_slice(self) -> Callable[[], bool]:
        until = time.monotonic() + SLICE
        return lambda: time.monotonic() >= until

    def context(self, content: bytes) -> bytes:
        """The context of a notification with these attributes; empty if it has none."""
        if not content:
            return b""
        try:
            return self._encode(self._reader.terms(self._contents.read(content)))
        except TidingsError:
            return b""
        except Exception:
            self._report()
            return b""

    def _report(self) -> None:
        """Log the first unexpected exception only, because each notification may cause one."""
        if not self.problems:
            _log.exception(
                "could not relate a notification; only subscribers whose filters match it get it"
            )
        self.problems += 1

    def _find(
        self, event: Event, terms: tuple[Term, ...], matched: Collection[int], upto: int | None
    ) -> dict[int, Related]:
        """The lowest related nodes of a notification, without those of filters that match it."""
        found: dict[int, Related] = {}
        exact = set[int]()
        for match in self._index.find(event, terms):
            exact = exact or {*matched, 0}
            base = match.id
            assert isinstance(base, int)
            if base in exact or (upto is not None and base > upto):
                continue
            for least, node in reversed(self.chains.chain(base)):
                if least <= match.weight + ROUNDING and node not in self._aside:
                    found[node] = self._explain(match)
                    break
        return found

    def _explain(self, match: RelatedMatch) -> Related:
        """Why a notification is related. All its subscribers get this explanation, so it contains
        values of the notification, and never those that a filter names."""
        return Related(
            match.weight,
            tuple(
                Reason(context, self._name(value), edge.reason, edge.weight)
                for (context, edge), value in zip(match.reasons, match.own, strict=True)
            ),
        )

    def _name(self, value: object) -> str:
        if isinstance(value, TimeSpan):
            return self.settings.semantic.calendar.title(value)
        if isinstance(value, Place):
            return value.name or f"{value.lat}, {value.lon}"
        return value.name if isinstance(value, Recurring) else str(value or "")

    def _encode(self, terms: tuple[Term, ...]) -> bytes:
        found = self._known.get(terms)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[terms] = encode_terms(terms)
        return found
