"""Parses events from JSON lines into record batches."""

from __future__ import annotations

import io

import pyarrow as pa
from pyarrow import json as arrow_json


def schema_of_lines(text: bytes) -> pa.Schema:
    """The columns of JSON lines, inferred from all lines. Times stay strings, as in JSON."""
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    found = arrow_json.read_json(io.BytesIO(text), reading).schema
    return pa.schema(
        field.with_type(pa.string()) if pa.types.is_temporal(field.type) else field
        for field in found
    )


def parse_lines(text: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Parse JSON lines into one record batch."""
    options = arrow_json.ParseOptions(explicit_schema=schema)
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    table = arrow_json.read_json(io.BytesIO(text), reading, options)
    return table.combine_chunks().to_batches()[0]
