"""Values and their order, types, subscription ids, and the errors of every room.

    values.py    what a value is, and `compare`, the order that every other module must agree with
    types.py     the types that an attribute can be declared with, and how to parse text as each
    ids.py       subscription ids
    errors.py    the error classes; each message is one sentence

Adding an attribute type starts in types.py and touches many rooms; CONTRIBUTING.md lists them.
This room imports no other room, and every room may import it. Users get the errors from `tidings`.
Start at values.py: its docstring defines the order of all values.
"""

from tidings.model.errors import (
    AttributesError,
    EnvironmentProblem,
    FilterError,
    GraphError,
    LimitError,
    NotificationError,
    TidingsError,
)
from tidings.model.ids import Id, id_pairs, need_id
from tidings.model.types import TYPES, Type, read_value, type_of
from tidings.model.values import (
    ABSENT,
    INT_MAX,
    INT_MIN,
    NULL_MARK,
    Event,
    Scalar,
    Value,
    compare,
    drop_null_cells,
    from_micros,
    is_number,
    micros,
    normalise,
)

__all__ = [
    "ABSENT",
    "INT_MAX",
    "INT_MIN",
    "NULL_MARK",
    "TYPES",
    "AttributesError",
    "EnvironmentProblem",
    "Event",
    "FilterError",
    "GraphError",
    "Id",
    "LimitError",
    "NotificationError",
    "Scalar",
    "TidingsError",
    "Type",
    "Value",
    "compare",
    "drop_null_cells",
    "from_micros",
    "id_pairs",
    "is_number",
    "micros",
    "need_id",
    "normalise",
    "read_value",
    "type_of",
]
