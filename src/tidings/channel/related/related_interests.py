"""The interests of a channel with relations: filters, some of them with related nodes above.

    city = 'Chicago'                node 4, as in any channel
    the same, related 0.7           node 5, above node 4: the rendezvous point makes both

Tags have only exact nodes; ChannelRelations adds the related ones. The compiled folder, and all
processes that tag elsewhere, know only the exact nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tidings.channel.interests import ArrayInterests, SetAsideFilter
from tidings.channel.related.channel_relations import ChannelRelations
from tidings.filters import parse
from tidings.filters.language import attributes_of
from tidings.model import TidingsError
from tidings.preprocessing import ExtraFields, Kind
from tidings.relations import RelationSettings
from tidings.routing.protocol import Limits, split_related, unpack_interest
from tidings.routing.root import Placed, Places

KEY = 16  # the number of bytes of an identity


class RelatedArrayInterests(ArrayInterests):
    """The filters and the related nodes of a channel."""

    def __init__(
        self,
        settings: RelationSettings,
        interests: Iterable[tuple[int, bytes]],
        last: int,
        limits: Limits,
        extra: ExtraFields | None,
        folder: Path | None,
        kind: Kind,
        named: Sequence[tuple[bytes, int]] = (),
    ) -> None:
        stored = list(interests)
        exact = [one for one in stored if split_related(one[1]) is None]
        super().__init__(None, exact, last, limits, extra, folder, kind, named)
        self.relations = ChannelRelations(settings, kind, limits.content_bytes)
        self.relating = self.relations
        self._stored: dict[int, bytes] = {}
        for number, interest in stored:
            if split_related(interest) is not None:
                try:
                    self._add(number, interest)
                except TidingsError as problem:
                    text = unpack_interest(interest)[0].decode(errors="replace")
                    self.refused[number] = SetAsideFilter(text, str(problem))
        if self._own_texts is not None:
            self._own_texts.share(named)  # again: now it has the texts of the related nodes too

    # -- filters -------------------------------------------------------------------------------

    def place(self, interest: bytes) -> Placed:
        """The node of an interest. The exact node of a related interest must exist."""
        if split_related(interest) is None:
            return super().place(interest)
        known = self.look_up(interest)[1]
        if known is None:
            known = self.take_number()
            self._add(known, interest)
        return self.make_placed(known)

    def _add(self, number: int, interest: bytes) -> None:
        given = split_related(interest)
        assert given is not None
        filter_ = self._filters.read(given.exact)
        exact = self._number_of(given.exact, filter_)
        if exact is None:  # earlier releases placed it on a node of another text
            exact = min(self._nodes.numbers_of(filter_.key), default=None)
        if exact is None:
            raise TidingsError("found no exact node of the filter, expected one below this node")
        self.relations.add(number, exact, filter_, given.least)
        self._stored[number] = interest
        if self._own_texts is not None:
            self._own_texts.add(number, interest)

    def look_up(self, interest: bytes) -> tuple[bytes, int | None]:
        given = split_related(interest)
        if given is None:
            return super().look_up(interest)
        filter_ = self._filters.read(given.exact)
        self.relations.check(filter_, given.least)
        # the text is that of the related node itself; its exact node may have another one
        chains = map(self.relations.chains.chain, self._nodes.numbers_of(filter_.key))
        found = [one.node for chain in chains for one in chain if one.least == given.least]
        if found and self._own_texts is not None:
            found = self._own_texts.select(found, interest)
        return _key(filter_.key, given.least), min(found, default=None)

    def _text_at(self, number: int) -> str:
        given = split_related(self._stored.get(number, b""))
        return super()._text_at(number) if given is None else self._filters.text(given.exact)

    def place_at(
        self, interest: bytes, key: bytes, above: Sequence[int], below: Sequence[int],
        newer: Sequence[int],
    ) -> Placed:  # fmt: skip
        bases = self.relations.bases
        exact = [node for node in newer if node not in bases]
        return super().place_at(interest, key, above, below, exact)

    def prepare(self, interests: Sequence[bytes]) -> list[float]:
        given = map(split_related, interests)
        return super().prepare(
            [whole if one is None else one.exact for whole, one in zip(interests, given)]  # noqa: B905
        )

    def make_placed(self, number: int) -> Placed:
        if number in self.relations.bases:
            return Placed(number, *self.relations.chains.place(number))
        placed = super().make_placed(number)
        chain = self.relations.chains.chain(number)
        if not chain:
            return placed
        parents = (*placed.parents, chain[-1].node)
        return Placed(number, parents, placed.children, placed.note, placed.never)

    def all_placed(self) -> Places:
        """Every node with its parents. Related nodes come first, since no other nodes cover
        them."""
        places, chains = super().all_placed(), self.relations.chains
        tops = chains.tops()
        if not tops:
            return places
        above = [
            Placed(link.node, chains.place(link.node)[0], ())
            for exact in tops
            for link in chains.chain(exact)
        ]
        related = Places.of(above)
        rows = np.flatnonzero(np.isin(places.numbers, [*tops]))
        added = np.zeros(len(places) + 1, np.int64)
        added[rows + 1] = 1
        found = [tops[number] for number in places.numbers[rows].tolist()]
        parents = np.insert(places.parents, places.starts[rows + 1], found)
        starts = places.starts + np.cumsum(added) + len(related.parents)
        return Places(
            np.concatenate([related.numbers, places.numbers]),
            np.concatenate([related.starts[:-1], starts]),
            np.concatenate([related.parents, parents]),
        )

    def equal_to(self, number: int) -> list[int]:
        return [number] if number in self.relations.bases else super().equal_to(number)

    def alike(self, number: int) -> list[int]:
        return [number] if number in self.relations.bases else super().alike(number)

    def identity(self, number: int) -> bytes:
        exact = self.relations.bases.get(number)
        if exact is None:
            return super().identity(number)
        return _key(super().identity(exact), self.relations.least(number))

    def type_at(self, number: int) -> str:
        return "" if number in self.relations.bases else super().type_at(number)

    def text(self, number: int) -> str:
        """The filter of a node in SQL; for a related node, without the weight."""
        return super().text(self.relations.bases.get(number, number))

    def refuse_outside(self, interest: bytes, within: Sequence[str]) -> str:
        given = split_related(interest)
        if given is None:
            return super().refuse_outside(interest, within)
        return super().refuse_outside(given.exact, within) or self._refuse_contexts(within)

    def lies_within(self, number: int, within: Sequence[str]) -> bool:
        exact = self.relations.bases.get(number)
        if exact is None:
            return super().lies_within(number, within)
        return super().lies_within(exact, within) and not self._refuse_contexts(within)

    def _refuse_contexts(self, within: Sequence[str]) -> str:
        """The reason why a limited right allows no related interests; empty if it allows them. In
        each context, a related notification may have values that the filter doesn't name, so a
        filter that limits the right must not test attributes of contexts."""
        read = self.relations.settings.reading.attributes()
        for text in within:
            try:
                terms = parse(text, attributes=self.attributes).form.terms.values()
            except TidingsError as problem:
                return str(problem)
            tested = read & {path[0] for term in terms for path in attributes_of(term)}
            if tested:
                return (
                    "the filter that limits the right to subscribe tests attributes of a context "
                    f"({', '.join(sorted(tested))}); subscribe without `related`"
                )
        return ""

    def remove(self, number: int) -> int:
        if number not in self.relations.bases:
            return super().remove(number)
        self.relations.remove(number)
        del self._stored[number]
        if self._own_texts is not None:
            self._own_texts.remove(number)
        return self.take_number()

    def set_aside(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self.relations.bases:
                self.relations.set_aside(number)
            else:
                super().set_aside((number,))

    def bring_back(self, number: int) -> None:
        if number in self.relations.bases:
            self.relations.bring_back(number)
        else:
            super().bring_back(number)

    # -- notifications -------------------------------------------------------------------------

    def among(self, content: bytes, nodes: Sequence[int]) -> list[int]:
        bases = self.relations.bases
        return super().among(content, [node for node in nodes if node not in bases])


def _key(exact: bytes, least: float) -> bytes:
    """The identity of a related interest."""
    return hashlib.blake2b(exact + repr(least).encode(), digest_size=KEY).digest()
