"""Read filters from texts."""

from __future__ import annotations

from threading import Lock

from tidings.channel.interests.compiled import Setting
from tidings.filters import Filter
from tidings.model import NotificationError, TidingsError
from tidings.routing.protocol import LONG, split_dialect, unpack_interest

MOST_KEPT = 1 << 20  # the most bytes of filters that are kept after a thread read them early


class Filters:
    """Reads filters. The last result is kept, because a filter is looked up just before it is
    placed; `keep` adds filters that a thread has read."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._last: tuple[bytes, Filter] | None = None
        self._kept: dict[bytes, Filter | TidingsError] = {}
        self._kept_bytes = 0
        self._keeping = Lock()  # a thread keeps filters while another reads them

    def keep(self, interest: bytes, found: Filter | TidingsError) -> None:
        """Keep a parsed filter until it is read. If the filter is invalid, keep the problem:
        finding the problem again could take as long as reading the filter."""
        with self._keeping:
            if self._kept_bytes > MOST_KEPT:  # many kept filters were never read: forget them all
                self._kept, self._kept_bytes = {}, 0
            if interest not in self._kept:
                self._kept_bytes += len(interest)
            self._kept[interest] = found

    def read(self, interest: bytes) -> Filter:
        if self._last is not None and self._last[0] == interest:
            return self._last[1]
        with self._keeping:
            kept = self._kept.pop(interest, None)
            if kept is not None:
                self._kept_bytes -= len(interest)
        if kept is not None:
            if isinstance(kept, TidingsError):
                raise kept.with_traceback(None)
            self._last = interest, kept
            return kept
        found = self.parse(interest)
        self._last = interest, found
        return found

    def parse(self, interest: bytes) -> Filter:
        """Read a filter without keeping it."""
        given, dialect = unpack_interest(interest)
        text, setting = _decode_text(given), self._setting
        least = split_dialect(dialect)[1]
        if least:
            raise TidingsError(
                f"related={least} needs a channel with relations, but this channel has none"
            )
        found = setting.kind.parse(text, dialect, setting.most_parts)
        if len(interest) > LONG:
            found.slim()
        return found

    def text(self, interest: bytes) -> str:
        """The filter in SQL. A filter given in SQL is returned unchanged."""
        given, dialect = unpack_interest(interest)
        return _decode_text(given) if dialect == "sql" else self.read(interest).sql()


def _decode_text(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise NotificationError("the filter is not valid UTF-8") from None
