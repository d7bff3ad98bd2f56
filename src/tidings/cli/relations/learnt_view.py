"""Shows what a repository has learnt from files, or what a running node has learnt from
notifications."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec


class Learnt(Protocol):
    """The parts of a repository that the view shows."""

    store: Any
    postings: Any
    semantic: Any


class Topic(msgspec.Struct, frozen=True):
    """An element of the store, with the merit of a message that has only this value."""

    context: str
    value: str
    hop: str
    merit: float
    uses: int


class LearntCopy:
    """What a running node has learnt, copied into stores of this process."""

    def __init__(self, answer: Any, semantic: Any) -> None:
        """`semantic` has the names that this process has loaded. Weights and radii are those of the
        node."""
        from tidings.relations import ClusterStore, StoreSettings, Weights, decode_terms
        from tidings.relations.merit import Postings

        self.semantic = semantic
        weights, settings = Weights(), StoreSettings(most=len(answer.nodes) + 1)
        if answer.by is not None:
            given = msgspec.structs.asdict(answer.by)
            weights = Weights(**{name: given[name] for name in Weights.__struct_fields__})
            settings = msgspec.structs.replace(
                settings, radius_km=answer.by.radius_km, radius_days=answer.by.radius_days
            )
        self.has_same_names = answer.by is None or answer.by.names in (b"", semantic.digest)
        self.store = ClusterStore(semantic, weights, settings)
        for at, one in enumerate(answer.nodes):
            terms = decode_terms(one.context)
            node = self.store.learn(terms, one.hop, [(at, id_) for id_ in range(one.ids)], 0.0)
            if node is not None:
                node.uses = one.uses
        self.store.elements.tidy()
        self.postings = Postings(self.store, lambda _: None)
        self.topics = rank_topics(self)
        if answer.topics:
            self.topics = [self._topic(one) for one in answer.topics]

    def _topic(self, told: Any) -> Topic:
        """A topic with the merit that it has at the node."""
        from tidings.relations import decode_terms

        (term,) = decode_terms(told.context)
        title = _title(self, term.value)
        return Topic(term.context, title, told.hop, told.merit, told.uses)


def rank_topics(learnt: Learnt) -> list[Topic]:
    """The values of the store, those with the highest merit first."""
    found = []
    for term in learnt.store.elements:
        scores = learnt.postings.score([term])
        hop = max(scores, key=scores.__getitem__)
        uses = sum(node.uses for node in learnt.store.nodes_at(term).values())
        found.append(Topic(term.context, _title(learnt, term.value), str(hop), scores[hop], uses))
    return sorted(found, key=lambda one: (-one.merit, -one.uses, one.context, one.value))


def count_clusters(learnt: Learnt) -> dict[str, int]:
    from tidings.relations.semantic import CONTEXTS

    return {one: sum(1 for _ in learnt.store.elements.clusters(one)) for one in CONTEXTS}


def draw_clusters(learnt: Learnt) -> str:
    """Clusters of places on a map, and of times on a line, in the colour of their hop."""
    from tidings.cli.relations.relation_picture import DayBar, Dot, Ring, draw_picture
    from tidings.relations import Place, TimeSpan
    from tidings.relations.semantic import day_of

    store = learnt.store
    dots: list[Dot] = []
    rings: list[Ring] = []
    bars: list[DayBar] = []
    for centre, members in store.elements.clusters("place"):
        hop = str(store.majority_hop("place", members) or "no majority")
        dots += [
            Dot(one.lat, one.lon, hop, 4.0, one.name)
            for one in members
            if isinstance(one, Place) and one.lat is not None and one.lon is not None
        ]
        if isinstance(centre, Place) and centre.lat is not None and centre.lon is not None:
            rings.append(Ring(centre.lat, centre.lon, store.settings.radius_km, hop))
    for _, members in store.elements.clusters("time"):
        hop = str(store.majority_hop("time", members) or "no majority")
        bars += [
            DayBar(day_of(int(one.middle)), hop, 1) for one in members if isinstance(one, TimeSpan)
        ]
    kinds = sorted({*(str(dot.kind) for dot in dots), *(bar.kind for bar in bars)})
    return draw_picture("Clusters, by the hop of the majority", dots, rings, bars, kinds)


def _title(learnt: Learnt, value: Any) -> str:
    from tidings.relations import Place, Recurring, TimeSpan

    if isinstance(value, (TimeSpan, Recurring)):
        return str(learnt.semantic.calendar.title(value))
    if isinstance(value, Place):
        return value.name or f"{value.lat}, {value.lon}"
    return str(value)
