"""Finds the lowest nodes of a notification, and sets aside filters that exceed an owner's share.

A publication that was tagged elsewhere is not matched again, but its tag is corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from tidings.model import TidingsError
from tidings.routing.forwarding.label_graph import Label
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.contents.bodies import body_of
from tidings.routing.protocol.limits import Limits
from tidings.routing.root.interests import Interests, TaggedMany, TooMuchWork
from tidings.routing.root.nodes import SetAside
from tidings.routing.root.ownership import Claims
from tidings.routing.root.relating import Numbers, RelatedRows, Relating, Relation

LARGEST = frames.LARGEST - (1 << 16)  # bytes of a payload; the rest of a frame is for headers
ROUNDS = 4  # filters are set aside at most this many times for one notification; the next continues


class Outdated(TidingsError):
    """A tag can't be used: the notification must be tagged again, at this version or a later
    one."""

    def __init__(self, reason: str, version: int) -> None:
        super().__init__(reason)
        self.version = version


class Corrects(Protocol):
    """Corrects the tags of publications that were tagged elsewhere."""

    def correct(self, data: bytes, content: bytes) -> Label:
        """The lowest nodes of a publication with this tag and these attributes; raises Outdated if
        the tag can't be corrected."""


class Tagger:
    """Tags the notifications of a channel."""

    def __init__(
        self, limits: Limits, interests: Interests, claims: Claims, set_aside: SetAside
    ) -> None:
        self._limits = limits
        self._interests = interests
        self._claims = claims
        self._set_aside = set_aside
        self.add_ancestors = set_aside.ancestors.add_ancestors
        """All nodes that match a notification, given its lowest nodes."""
        self.correcting: Corrects | None = None
        """Corrects the tags of publications; if None, tags are ignored."""
        self.keeps_order = True
        """Are the publications of each publisher numbered in the order of their stamps?"""
        self.relating: Relating | None = None
        """The relations of the channel, if it has any."""

    def tag(self, message: m.Publish) -> Label:
        """The lowest nodes of a publication; raises TidingsError if it is refused. A publication is
        not refused for matching too many filters: the filters that exceed a share are set aside."""
        self._need_short(message)
        return self.fit(lambda: self._find(message))

    def _need_short(self, message: m.Publish) -> None:
        if len(message.payload) > LARGEST:
            raise TidingsError(
                f"found a payload of {len(message.payload):,} bytes, expected at most {LARGEST:,}"
            )

    def tag_body(self, message: m.Publish) -> tuple[Label, bytes]:
        """The lowest nodes of a publication, including related nodes, and its body as subscribers
        get it; raises TidingsError as `tag` does."""
        if self.relating is None:
            return self.tag(message), body_of(message, scattered=not self.keeps_order)
        front = b""

        def find() -> Label:
            nonlocal front
            lowest, front = self.relate(message.content, self._find(message))
            return lowest

        self._need_short(message)
        return self.fit(find), front + body_of(message, scattered=not self.keeps_order)

    def relate(self, content: bytes, lowest: Label, upto: int | None = None) -> Relation:
        """The lowest nodes of a notification, including related nodes, and the front of its
        body."""
        assert self.relating is not None
        return self.relating.relate(content, lowest, self.add_ancestors(lowest), upto)

    def relate_many(
        self, contents: Sequence[bytes], starts: Numbers, nodes: Numbers, upto: int | None = None,
        *, all_rows: bool = True,
    ) -> RelatedRows:  # fmt: skip
        """Like `relate`, for many notifications. Without `all_rows`, the work stops when it takes
        too long, and only the first rows are returned."""
        if self.relating is None:
            return RelatedRows(starts, nodes, [])
        bounds, lowest = starts.tolist(), nodes.tolist()
        rows: list[Relation] = []
        is_late = self.relating.begin_slice()
        for at, content in enumerate(contents):
            if rows and not all_rows and is_late():
                break
            rows.append(self.relate(content, tuple(lowest[bounds[at] : bounds[at + 1]]), upto))
        found = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(one.lowest) for one in rows], out=found[1:])
        flat = np.fromiter((n for one in rows for n in one.lowest), np.int64, int(found[-1]))
        return RelatedRows(found, flat, [one.front for one in rows])

    def _find(self, message: m.Publish) -> Label:
        tag, content = message.tag, message.content
        if tag and self.correcting is not None and len(content) <= self._limits.content_bytes:
            try:
                return self.correcting.correct(tag, content)
            except (Outdated, TooMuchWork):
                if not content:
                    raise
        return self._ask_filters(content)

    def tag_many(self, contents: Sequence[bytes]) -> TaggedMany:
        """The lowest nodes of many publications. No share is checked, and no filter is set
        aside."""
        return self._interests.tag_many(contents)

    def fit(self, find: Callable[[], Label]) -> Label:
        """The lowest nodes that `find` returns. If a share is exceeded, filters are set aside and
        `find` is called again, until no share is exceeded; `find` must not return nodes that are
        set aside."""
        limits, matched = self._limits, self.add_ancestors
        lowest = find()
        rounds = 0
        while len(lowest) > limits.marks or len(matched(lowest)) > limits.matches:
            if self._set_aside.drop_kept(lowest):
                lowest = find()
                continue
            rounds += 1
            late = rounds > ROUNDS and len(lowest) <= self._set_aside.most_marks
            if late or not self._set_aside.judge(lowest):
                break
            lowest = find()
        return lowest

    def _ask_filters(self, content: bytes) -> Label:
        """The lowest nodes that match these attributes. Filters that need more computing time than
        their owner's share are set aside."""
        try:
            return tuple(sorted(self._interests.tag(content)))
        except TooMuchWork:
            found = self._interests.tag_fairly(content, self._claims.owners)
        self._set_aside.lighten(found.over)
        return tuple(sorted(found.nodes))
