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
    """The settings of a router whose file has no table `relations`. Contexts have the values that
    the rendezvous point found, so a router needs no names or words. The router uses the trees of
    the example files."""
    from tidings.relations import load_relations
    from tidings.routing.learning import Serving

    return Serving(load_relations(language=None))
