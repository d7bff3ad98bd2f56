"""An interest as a rendezvous point stores it: the text, or its dialect and the text.

    price > 90                          SQL, and all interests stored before there were dialects
    0  eventbridge  0  {"price": ...}   another dialect: its name between two zero bytes

No SQL text begins with a zero byte, so the two forms can be told apart.
"""

from __future__ import annotations

DEFAULT = "sql"


def pack_interest(text: bytes, dialect: str) -> bytes:
    return text if dialect == DEFAULT else b"\0%b\0%b" % (dialect.encode(), text)


def unpack_interest(stored: bytes) -> tuple[bytes, str]:
    """The text and its dialect. Bytes that begin with a zero byte and are not of this form count as
    SQL, whose parser refuses them."""
    if stored[:1] == b"\0":
        dialect, found, text = stored[1:].partition(b"\0")
        if found and dialect.isascii():
            return text, dialect.decode()
    return stored, DEFAULT
