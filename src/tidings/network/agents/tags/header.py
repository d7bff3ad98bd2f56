"""A header that a publisher obtained in advance."""

from __future__ import annotations

import msgspec

from tidings.routing.protocol import unpack_tag


class Header(msgspec.Struct, frozen=True):
    """The tag of a notification, obtained before the notification is published. A client with the
    right to preprocess can publish a notification with this header, either with the attributes from
    which the header was made or without attributes. `data` is opaque; it can be stored, and used
    later as `Header(data)`."""

    data: bytes

    @property
    def version(self) -> int:
        """The version of the channel for which the header was made."""
        tag = unpack_tag(self.data)
        return 0 if tag is None else tag.version
