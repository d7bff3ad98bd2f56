"""An interest as a rendezvous point stores it: the text, or its dialect and the text.

price > 90                          SQL, as all interests were before there were dialects
0  eventbridge  0  {"price": ...}   another dialect, between two bytes 0
"""

from __future__ import annotations

DEFAULT = "sql"


def pack_interest(text: bytes, dialect: str) -> bytes:
    return text if dialect == DEFAULT else b"\0%b\0%b" % (dialect.encode(), text)


def unpack_interest(stored: bytes) -> tuple[bytes, str]:
    """The text and its dialect. What begins with a byte 0 and is not of this form is taken for
    SQL, which refuses it."""
    if stored[:1] == b"\0":
        dialect, found, text = stored[1:].partition(b"\0")
        if found and dialect.isascii():
            return text, dialect.decode()
    return stored, DEFAULT
