"""Turn flat JSON objects into the columns of a record batch, without Python code for single values.

    objects, one after the other ──read_objects──> numbers, places of strings ──> record batch
                                        └─ odd: anything that needs a closer look

    json_line_kernels.py   reads the bytes, compiled
    json_reader.py         JsonReader: allocates arrays for kernels, and makes Arrow columns of them

The caller gives the columns and their types. An object is odd if it contains an attribute that has
no column, an attribute twice, a value of another type than its column, an escape, a nested value, a
number that the kernels do not convert (such as one with more than 18 digits), or any mistake. The
caller reads odd objects with a decoder. So the kernels read only JSON that all decoders agree on.

This folder is for broker and preprocessing, not for users. Start at json_reader.py.
"""

from tidings.matching.json_columns.json_reader import KINDS, JsonReader, JsonRows

__all__ = ["KINDS", "JsonReader", "JsonRows"]
