"""Raw rows to typed batches: what producers send, checked and in columns, nothing lost."""

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
