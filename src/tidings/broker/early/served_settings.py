"""The settings with which a node decides which neighbours get a body early."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.relations import RelationSettings
    from tidings.routing.learning import EarlySettings


def serving_of(settings: RelationSettings) -> EarlySettings:
    """The settings of a file with a table `relations`."""
    from tidings.routing.learning import EarlySettings

    return EarlySettings(
        settings.semantic, settings.weights, settings.limit, settings.store, settings.asking
    )


def load_examples() -> EarlySettings:
    """The settings of a router whose file has no table `relations`. The rendezvous point has
    already looked up the names and words, and each context has the values that it found. So the
    router needs only trees, and uses those of the example files."""
    from tidings.relations import load_relations
    from tidings.routing.learning import EarlySettings

    return EarlySettings(load_relations(language=None))
