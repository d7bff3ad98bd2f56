"""What a node has learnt in a channel, as an answer to a command."""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING

import msgspec

from tidings.routing.protocol import messages as m

if TYPE_CHECKING:
    from tidings.routing.learning import Learning


def report_learnt(learning: Learning) -> m.Inspected:
    """The combinations of terms that were used most often, the settings with which they were learnt
    and, if there are few terms, the merit of each term. Cost: a search for each of these terms."""
    from tidings.relations import encode_terms

    learning.catch_up()
    store, serving = learning.store, learning.serving
    most = nlargest(m.MOST_LEARNT, store, key=lambda node: (node.uses, node.number))
    nodes = tuple(
        m.LearntNode(
            encode_terms(node.terms), _shorten(learning.hop_name(node.hop)), len(node.ids),
            node.uses,
        )
        for node in most
    )  # fmt: skip
    topics: tuple[m.LearntTopic, ...] = ()
    if len(store.elements) <= m.MOST_TOPICS:
        topics = tuple(
            m.LearntTopic(encode_terms([term]), _shorten(hop), merit, uses)
            for term, hop, merit, uses in learning.rank_terms()
        )
    by = m.LearntBy(
        **msgspec.structs.asdict(store.weights), radius_km=store.settings.radius_km,
        radius_days=store.settings.radius_days, names=serving.semantic.digest,
    )  # fmt: skip
    return m.Inspected(
        0, total=len(store), pending=learning.pending, left_out=learning.left_out, nodes=nodes,
        by=by, topics=topics,
    )  # fmt: skip


def _shorten(name: object) -> str:
    return str(name)[: m.MOST_NAME]
