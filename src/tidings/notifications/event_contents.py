"""The attributes of one notification, from JSON to the mapping that filters test."""

from __future__ import annotations

import msgspec

from tidings.filters import Attributes
from tidings.model import Event, NotificationError

_decode = msgspec.json.Decoder(dict[str, object]).decode


def read_content(content: bytes, attributes: Attributes | None) -> Event:
    """Read a notification as declared attributes say; NotificationError if it is refused."""
    try:
        decode = _decode if attributes is None else attributes.decode
        event = decode(content)
        if not isinstance(event, dict):
            raise ValueError("Expected `object`")
    except (ValueError, RecursionError) as problem:  # from msgspec, or for invalid UTF-8
        raise NotificationError(f"the notification is not a JSON object: {problem}") from None
    return event if attributes is None else attributes.read(event)
