"""Read filters from texts, and the attributes of notifications from JSON objects."""

from __future__ import annotations

import msgspec

from tidings.channel.interests.compiled import Setting
from tidings.filters import Attributes, Filter, parse
from tidings.model import Event, NotificationError
from tidings.routing.protocol import LONG, unpack_interest

MOST_KEPT = 1 << 20  # bytes of filters that were read before their turn
_decode = msgspec.json.Decoder(dict[str, object]).decode


class Filters:
    """Reads filters. The last result is kept, because a filter is looked up just before it is
    placed; `keep` adds those that a thread has read."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._last: tuple[bytes, Filter] | None = None
        self._kept: dict[bytes, Filter] = {}
        self._kept_bytes = 0

    def keep(self, interest: bytes, filter_: Filter) -> None:
        """Keep a filter until it is read."""
        if self._kept_bytes > MOST_KEPT:  # nobody placed them
            self._kept, self._kept_bytes = {}, 0
        self._kept[interest] = filter_
        self._kept_bytes += len(interest)

    def read(self, interest: bytes) -> Filter:
        if self._last is not None and self._last[0] == interest:
            return self._last[1]
        kept = self._kept.pop(interest, None)
        if kept is not None:
            self._kept_bytes -= len(interest)
            self._last = interest, kept
            return kept
        found = self.parse(interest)
        self._last = interest, found
        return found

    def parse(self, interest: bytes) -> Filter:
        """Read a filter without keeping it."""
        given, dialect = unpack_interest(interest)
        text, setting = _decoded(given), self._setting
        found = parse(text, dialect, attributes=setting.attributes, most_parts=setting.most_parts)
        if len(interest) > LONG:
            found.slim()
        return found

    def text(self, interest: bytes) -> str:
        """The filter in SQL; as it was given, if it was given in SQL."""
        given, dialect = unpack_interest(interest)
        return _decoded(given) if dialect == "sql" else self.read(interest).sql()


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise NotificationError("the filter is not valid UTF-8") from None


class ExtraFields(msgspec.Struct):
    """How many fields of notifications are not declared, and how many notifications have some."""

    notifications: int = 0
    fields: int = 0


class Contents:
    """Reads the attributes of notifications."""

    def __init__(self, attributes: Attributes | None, most: int, extra: ExtraFields) -> None:
        """`most` is the limit in bytes; `extra` counts what the attributes do not declare."""
        self._attributes = attributes
        self._most = most
        self.extra = extra

    def read(self, content: bytes) -> Event:
        if len(content) > self._most:
            raise NotificationError(
                f"found {len(content):,} bytes of attributes, expected at most "
                f"{self._most:,}; move attributes that no filter reads to the payload"
            )
        try:
            decode = _decode if self._attributes is None else self._attributes.decode
            event: Event = decode(content)
            if not isinstance(event, dict):
                raise ValueError("Expected `object`")
        except (ValueError, RecursionError) as problem:  # from msgspec, or for invalid UTF-8
            raise NotificationError(f"the notification is not a JSON object: {problem}") from None
        return event if self._attributes is None else self._attributes.read(event)

    def count_extra(self, event: Event) -> None:
        """Count the undeclared fields of a notification that was tagged."""
        count = 0 if self._attributes is None else len(self._attributes.extra_fields(event))
        if count:
            self.extra.notifications += 1
            self.extra.fields += count
