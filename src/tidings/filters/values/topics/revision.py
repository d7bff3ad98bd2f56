"""A revision of an ontology: the new topics, and what becomes of removed topics.

    before  sports ── baseball ── mlb        after  sports ── baseball ── (mlb)
                  `── football                            `── football

A removed topic is *retired*: its name stays known, so that interests in it and notifications about
it are still accepted. An interest in a retired topic becomes an interest in the nearest remaining
topics above it, and a notification about it lies under these topics, so no notification is lost. If
no topic above it remains, the interest is in the nearest remaining topics below it instead. If none
of those remains either, the topic is unknown from then on.

To rename a topic, make its old name a synonym of the new one. A removed synonym is treated like a
removed topic directly under the synonym's target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from tidings.filters.values.topics.ontology import Ontology


class Revision(msgspec.Struct, frozen=True):
    """The revised ontology, and how it differs from the previous one."""

    ontology: Ontology
    added: tuple[str, ...] = ()
    moved: Mapping[str, tuple[str, ...]] = {}
    """Topics that the revision removed, with the topics that stand for them."""
    dropped: tuple[str, ...] = ()
    """Removed topics that no other topic stands for; they are unknown from now on."""

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.moved or self.dropped)


def revise(before: Ontology, after: Ontology) -> Revision:
    """The revision of `before` to `after`: topics that only `before` has become retired topics of
    the new ontology, if other topics can stand for them."""
    new = after.list_parents()
    old = before.list_parents() | {name: [topic] for name, topic in before.synonyms.items()}
    below: dict[str, list[str]] = {name: [] for name in old}
    for child, parents in old.items():
        for parent in parents:
            below[parent].append(child)
    for name, others in before.retired.items():
        below[name] += others
    retired: dict[str, tuple[str, ...]] = {}
    placed: dict[str, tuple[str, ...]] = {}
    for name in old:
        if name in after:
            continue
        above = _nearest(name, lambda one: old[one], after)
        stand = above or _nearest(name, lambda one: below[one], after)
        if stand:
            retired[name], placed[name] = stand, above
    known = old.keys() - before.retired.keys()
    return Revision(
        Ontology({**new, **placed}, after.synonyms, retired),
        tuple(sorted(name for name in new if name not in known)),
        {name: retired[name] for name in sorted(known & retired.keys())},
        tuple(sorted(name for name in old if name not in after and name not in retired)),
    )


def _nearest(start: str, step: Callable[[str], Iterable[str]], after: Ontology) -> tuple[str, ...]:
    """The nearest topics of the new ontology: the first on each path that starts at a removed
    one."""
    found: set[str] = set()
    seen = {start}
    stack = [start]
    while stack:
        for one in step(stack.pop()):
            if one in after:
                found.add(after.topic_of(one))
            elif one not in seen:
                seen.add(one)
                stack.append(one)
    return tuple(sorted(found))
