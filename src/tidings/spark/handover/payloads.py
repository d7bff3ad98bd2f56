"""Encodes rows as bytes for the rendezvous point.

If the only column is binary, its value is sent as it is. Otherwise a row is sent as a MessagePack
map of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from tidings.model import EnvironmentProblem
from tidings.spark.handover.handover_messages import LARGEST

_ROWS = 1_000  # the most rows in one message
_BYTES = 1 << 20  # a message that reaches this size takes no more rows


def chunks(columns: tuple[str, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[list[bytes]]:
    """The rows of Arrow batches as payloads, one list per message. Without `columns`, all columns
    are sent."""
    chunk: list[bytes] = []
    size = 0
    for batch in batches:
        for payload in _payloads(batch.select(list(columns)) if columns else batch):
            if len(payload) > LARGEST // 2:
                raise EnvironmentProblem(
                    f"A row has {len(payload)} bytes, expected at most {LARGEST // 2}."
                )
            chunk.append(payload)
            size += len(payload)
            if len(chunk) >= _ROWS or size >= _BYTES:
                yield chunk
                chunk, size = [], 0
    if chunk:
        yield chunk


def _payloads(batch: pa.RecordBatch) -> Iterator[bytes]:
    kinds = batch.schema.types
    if len(kinds) == 1 and (pa.types.is_binary(kinds[0]) or pa.types.is_large_binary(kinds[0])):
        if batch.column(0).null_count:
            raise EnvironmentProblem(
                f"The column {batch.schema.names[0]} has nulls, which cannot be sent as bytes; "
                "remove these rows first."
            )
        return iter(batch.column(0).to_pylist())
    return map(msgspec.msgpack.encode, batch.to_pylist())
