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

    def __init__(self, nodes: Any) -> None:
        from tidings.relations import ClusterStore, StoreSettings, decode_terms, load_relations
        from tidings.relations.merit import Postings

        self.semantic = load_relations(language=None)
        self.store = ClusterStore(self.semantic, settings=StoreSettings(most=len(nodes) + 1))
        for at, one in enumerate(nodes):
            terms = decode_terms(one.context)
            node = self.store.learn(terms, one.hop, [(at, id_) for id_ in range(one.ids)], 0.0)
            if node is not None:
                node.uses = one.uses
        self.store.elements.tidy()
        self.postings = Postings(self.store, lambda _: None)


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
    from tidings.cli.relations.relation_picture import Bar, Dot, Ring, draw_picture
    from tidings.relations import Place, Span
    from tidings.relations.semantic import day_of

    store = learnt.store
    dots: list[Dot] = []
    rings: list[Ring] = []
    bars: list[Bar] = []
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
        bars += [Bar(day_of(int(one.middle)), hop, 1) for one in members if isinstance(one, Span)]
    kinds = sorted({*(str(dot.kind) for dot in dots), *(bar.kind for bar in bars)})
    return draw_picture("Clusters, by the hop of the majority", dots, rings, bars, kinds)


def _title(learnt: Learnt, value: Any) -> str:
    from tidings.relations import Place, Recurring, Span

    if isinstance(value, (Span, Recurring)):
        return str(learnt.semantic.calendar.title(value))
    if isinstance(value, Place):
        return value.name or f"{value.lat}, {value.lon}"
    return str(value)
