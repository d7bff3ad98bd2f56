"""Raw rows to typed batches: lines of JSON and columns of text, with a reason for each bad row.

    lines of JSON ──json_batch──┐             ┌──> good: Arrow columns of the declared types
                                ├──> Decoded ─┤
    columns of text ─text_batch─┘             └──> bad rows, a sentence for each

Each row is in exactly one of the two, no row raises, and no row depends on its neighbours.

    schema.py      the declaration: an Arrow schema of the types that filters know
    records.py     a schema compiled into classes that msgspec fills
    json_rows.py   one line read with care, where msgspec refused it
    texts.py       a column of texts read as a type

It reads text as declared attributes do, so it lies above `filters`. For other rooms (spark), not
for users. Start at decoded.py, then json_batch.py.
"""

from tidings.notifications.decoded import Decoded
from tidings.notifications.json_batch import decode_json
from tidings.notifications.schema import arrow_schema
from tidings.notifications.text_batch import decode_text_columns
from tidings.notifications.texts import read_texts

__all__ = [
    "Decoded",
    "arrow_schema",
    "decode_json",
    "decode_text_columns",
    "read_texts",
]
