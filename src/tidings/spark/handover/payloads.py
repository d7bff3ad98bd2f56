"""Rows as bytes, for the rendezvous point.

A row is the bytes of its column when there is one column and it is binary, and a MessagePack map of
its columns otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from tidings.model import EnvironmentProblem
from tidings.spark.handover.handover_messages import LARGEST

_ROWS = 1_000  # in one message, at most
_BYTES = 1 << 20  # in one message, beyond which it takes no more rows


def chunks(columns: tuple[str, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[list[bytes]]:
    """The rows of Arrow batches as payloads, in messages of a handy size; no columns is all."""
    chunk: list[bytes] = []
    size = 0
    for batch in batches:
        for payload in _payloads(batch.select(list(columns)) if columns else batch):
            if len(payload) > LARGEST // 2:
                raise EnvironmentProblem(
                    f"A row of {len(payload)} bytes is too large to be handed over."
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
                f"The column {batch.schema.names[0]} has nulls, which cannot be sent as bytes."
            )
        return iter(batch.column(0).to_pylist())
    return map(msgspec.msgpack.encode, batch.to_pylist())
