"""The settings with which a node decides which neighbours get a body early."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.relations import RelationSettings
    from tidings.routing.learning import Serving


def serving_of(settings: RelationSettings) -> Serving:
    """The settings of a file with a table `relations`."""
    from tidings.routing.learning import Serving

    return Serving(
        settings.semantic, settings.weights, settings.limit, settings.store, settings.asking
    )


def load_examples() -> Serving:
    """The settings of a router whose file has no table `relations`. The rendezvous point has
    already looked up the names and words, and each context has the values that it found. So the
    router needs only trees, and uses those of the example files."""
    from tidings.relations import load_relations
    from tidings.routing.learning import Serving

    return Serving(load_relations(language=None))
