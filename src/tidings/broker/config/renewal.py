"""A file that is read again while its node runs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from tidings.broker.config.node_settings import (
    Config,
    ConfigError,
)
from tidings.broker.server import Server
from tidings.filters.values import Revision

MOST_TOLD = 10  # a message lists at most this many removed topics


def renew(node: Server, config: Config) -> int:
    """Make a running node use the tokens and the keys of grants that are now in its file; return
    the number of closed links. Everything else in the file takes effect at the next start."""
    if (config.tokens is None) != (node.door.tokens is None):
        there = "no [tokens], but there were some"
        if config.tokens is not None:
            there = "[tokens], but there were none"
        raise ConfigError(
            f"found {there} when the node was started; to add or remove [tokens], restart the node"
        )
    node.renew_keys(config.grants)
    return node.renew(config.tokens, config.token)


async def revise(node: Server, config: Config) -> str:
    """Make a running rendezvous point use the kind of interest that is now in its file; return a
    sentence about what changed. Raises TidingsError if the definition can't be used; then nothing
    changes."""
    from tidings.broker.root_node import RootNode

    if not isinstance(node, RootNode) or node.kind == config.kind:
        return ""
    found = await node.revise(config.kind)
    return "" if found is None else f"the preprocessor was revised{_tell(found)}"


def _tell(found: Revision) -> str:
    parts = [f"{len(found.added):,} names were added"] if found.added else []
    few = islice(found.moved.items(), MOST_TOLD)
    parts += [f"'{name}' was removed, and now means {_join_some(stand)}" for name, stand in few]
    if len(found.moved) > MOST_TOLD:
        parts.append(f"{len(found.moved) - MOST_TOLD:,} more were removed")
    if found.dropped:
        parts.append(f"removed without replacement: {_join_some(found.dropped)}")
    return ": " + "; ".join(parts) if parts else ""


def _join_some(names: Iterable[str]) -> str:
    shown = [f"'{name}'" for name in islice(names, MOST_TOLD + 1)]
    return ", ".join(shown[:MOST_TOLD]) + (" and others" if len(shown) > MOST_TOLD else "")
