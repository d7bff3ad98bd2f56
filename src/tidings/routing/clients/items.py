"""What a subscription yields: notifications, and reports of losses, breaks and interruptions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from tidings.filters import Filter, parse
from tidings.filters.language import may_have_names, naming_dialect
from tidings.model import FilterError
from tidings.routing.protocol.contents.relation_reasons import Related
from tidings.routing.protocol.lineage import Break


class Delivery(msgspec.Struct, frozen=True):
    """A notification that arrived: its payload, its running number at the rendezvous point
    (`serial`, counted over all filters, in the life `epoch`), and the filters of this agent that
    it matches (`matched`). The `attributes`, the `subject` and the `time` of publication, in
    seconds since 1970, are set if the publisher sent them. If the notification is only related to
    the filter and does not match it, `related` has the weight and the reasons; only subscribers who
    ask for such notifications get them."""

    epoch: int
    serial: int
    payload: bytes
    matched: tuple[str, ...] = ()
    subject: str = ""
    time: float | None = None
    content: bytes | None = None
    """The attributes as they were published: JSON, MessagePack or XML."""
    types: dict[str, Any] | None = None
    """For a row of a pipeline, whose payload is also its content: the fields that are times or
    decimals."""
    related: Related | None = None

    @property
    def attributes(self) -> dict[str, Any] | None:
        """The decoded attributes; None if the publisher did not send them to subscribers."""
        if self.content is None:
            return None
        if self.types:
            from tidings.notifications.content_formats import decode_row  # loads Arrow

            return decode_row(self.content, self.types)
        if self.content.startswith(b"{"):
            return msgspec.json.decode(self.content, type=dict[str, Any])
        from tidings.notifications.content_formats import decode_content  # loads Arrow

        return decode_content(self.content)

    @property
    def parts(self) -> dict[str, list[str]]:
        """For each filter in `matched` that has named parts, the names of the parts that are true
        for the attributes. Empty if the publisher did not send the attributes."""
        named = [text for text in self.matched if may_have_names(text)]
        attributes = self.attributes if named else None
        if attributes is None:
            return {}
        read = ((text, _read_names(text)) for text in named)
        return {text: one.matched_parts(attributes) for text, one in read if one is not None}


@lru_cache(1024)
def _read_names(text: str) -> Filter | None:
    """Parse a filter of this agent; return None if only the rendezvous point can parse it, because
    it calls predicates of the channel."""
    dialect = naming_dialect(text)
    try:
        return None if dialect is None else parse(text, dialect)
    except FilterError:
        return None


class Lost(msgspec.Struct, frozen=True):
    """`count` notifications are lost: no router and no disk has them any more, or they are payloads
    in pieces that stayed unfinished."""

    count: int

    @property
    def numbers(self) -> int:
        """The former name of `count`."""
        return self.count


class Interrupted(msgspec.Struct, frozen=True):
    """No notifications arrive for now: the link to the router is lost, or the rendezvous point is
    silent. An interruption by itself causes no loss; `Resumed` follows when it is over."""

    reason: str


class Resumed(msgspec.Struct, frozen=True):
    """An interruption is over; it lasted `seconds`. The notifications that were missed during the
    interruption follow, unless `Lost` or `Break` says otherwise."""

    seconds: float


Item = Delivery | Lost | Break | Interrupted | Resumed
