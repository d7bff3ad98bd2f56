"""Decode lines of JSON or columns of text into typed batches, and encode these batches again.

    lines of JSON ──json_batch──┐             ┌──> good: Arrow columns of the declared types
                                ├──> Decoded ─┤
    columns of text ─text_batch─┘             └──> bad rows, with a one-sentence reason for each

Each row is either good or bad: decoding a row never raises an error, and never depends on other
rows.

    schema.py          the declaration: an Arrow schema of the types that filters know
    record_classes.py  a schema compiled into classes that msgspec fills
    extra_fields.py    the fields of a line that are not declared
    null_marks.py      marks that tell an explicit null from an absent field
    json_rows.py       the careful reader, for a line that msgspec refused
    texts.py           a column of strings parsed as a type
    json_texts.py      the way back: rows as payloads
    content_formats/  the attributes of one notification: JSON, MessagePack or XML

Strings are parsed by the rules of declared attributes, so this room imports from `filters`. This
room is for other rooms (spark, routing, channel), not for users. Start at decoded.py, then
json_batch.py.
"""

from tidings.notifications.decoded import Decoded
from tidings.notifications.json_batch import decode_json
from tidings.notifications.json_texts import encode_rows, join_fields, strip_nulls
from tidings.notifications.null_marks import cell_cleaner, without_marks
from tidings.notifications.record_classes import Slot as FieldReader
from tidings.notifications.schema import arrow_schema
from tidings.notifications.text_batch import decode_text_columns
from tidings.notifications.texts import read_texts

__all__ = [
    "Decoded",
    "FieldReader",
    "arrow_schema",
    "cell_cleaner",
    "decode_json",
    "decode_text_columns",
    "encode_rows",
    "join_fields",
    "read_texts",
    "strip_nulls",
    "without_marks",
]
