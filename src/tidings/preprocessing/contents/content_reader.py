"""Read the attributes of notifications: JSON objects, maps in MessagePack, or XML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters import Attributes
from tidings.model import Event, NotificationError, TidingsError
from tidings.notifications.content_formats import decode_content, is_json
from tidings.preprocessing.kinds import Kind


class ExtraFields(msgspec.Struct):
    """The number of undeclared fields, and the number of notifications that have any."""

    notifications: int = 0
    fields: int = 0


class Contents:
    """Reads the attributes of notifications."""

    def __init__(self, kind: Kind, most: int, extra: ExtraFields) -> None:
        """`most` is the limit in bytes; `extra` counts undeclared fields."""
        self._kind = kind
        self._attributes = kind.attributes
        self._most = most
        self.extra = extra

    @property
    def attributes(self) -> Attributes | None:
        return self._attributes

    @property
    def are_unchanged(self) -> bool:
        """Whether the kind of the channel neither changes nor refuses notifications."""
        return self._kind.definition.kind == "content"

    def are_short(self, contents: Sequence[bytes]) -> bool:
        """Whether none of the contents exceeds the size limit."""
        return max(map(len, contents), default=0) <= self._most

    def read(self, content: bytes) -> Event:
        if len(content) > self._most:
            raise NotificationError(
                f"found {len(content):,} bytes of attributes, expected at most "
                f"{self._most:,}; move attributes that no filter reads to the payload"
            )
        if self._attributes is None:
            return decode_content(content)
        if not is_json(content):
            return self._attributes.read(self._kind.read(decode_content(content)))
        try:
            event: Event = self._attributes.decode(content)
            if not isinstance(event, dict):
                raise ValueError("Expected `object`")
        except (ValueError, RecursionError) as problem:  # raised by msgspec, or for invalid UTF-8
            decode_content(content)  # raises an error with the reason if the content is invalid XML
            raise NotificationError(f"the notification is not a JSON object: {problem}") from None
        return self._attributes.read(self._kind.read(event))

    def count_extra_fields(self, counts: npt.NDArray[np.int64]) -> None:
        """Count the undeclared fields of notifications that were tagged; each has so many."""
        self.extra.notifications += int(np.count_nonzero(counts))
        self.extra.fields += int(counts.sum())

    def count_extra(self, event: Event) -> None:
        """Count the undeclared fields of a notification that was tagged."""
        count = 0 if self._attributes is None else len(self._attributes.extra_fields(event))
        if count:
            self.extra.notifications += 1
            self.extra.fields += count


class BatchEvents:
    """The notifications of a batch as mappings, each read only when it is needed. Those that are
    left out of the batch are empty; so is one that can't be read, which is then left out too."""

    def __init__(self, reader: Contents, contents: Sequence[bytes], odd: Iterable[int]) -> None:
        self._reader = reader
        self._contents = contents
        self._known: dict[int, Event] = {row: {} for row in odd}
        self.odd = [*odd]
        """The rows of the notifications that are left out."""

    def __call__(self, row: int) -> Event:
        found = self._known.get(row)
        if found is None:
            try:
                found = self._reader.read(self._contents[row])
            except TidingsError:
                self.odd.append(row)
                found = {}
            self._known[row] = found
        return found
