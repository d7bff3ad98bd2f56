"""What a node of a network knows about the relations of a channel."""

from __future__ import annotations

from typing import NamedTuple

from tidings.relations.clusters import StoreSettings
from tidings.relations.merit import Limit, Reading
from tidings.relations.semantic import NameLookup, SemanticStore, Weights


class RelationSettings(NamedTuple):
    """The settings in the table `[relations]` of a file; the files that it names are already
    loaded."""

    semantic: SemanticStore
    reading: Reading
    weights: Weights = Weights()
    limit: Limit = Limit()
    store: StoreSettings = StoreSettings()
    order: str = "arrival"
    """`merit`: under overload, the publications with the highest merit go first."""
    ageing: float = 600.0
    """Seconds of waiting that raise the merit of a publication by 1."""
    asking: NameLookup | None = None
    """Asks the channel's dictionary about unknown names; None if the channel has no dictionary."""
