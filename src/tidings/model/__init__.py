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
    MOST_LISTED,
    AttributesError,
    EnvironmentProblem,
    FilterError,
    GraphError,
    LimitError,
    NotificationError,
    RefusedFilters,
    TidingsError,
)
from tidings.model.ids import Id, id_pairs, list_some, need_id
from tidings.model.types import TYPES, Type, read_value, type_of
from tidings.model.values import (
    INT_MAX,
    INT_MIN,
    Event,
    Scalar,
    Value,
    compare,
    from_micros,
    is_number,
    micros,
    normalise,
)

__all__ = [
    "INT_MAX",
    "INT_MIN",
    "MOST_LISTED",
    "TYPES",
    "AttributesError",
    "EnvironmentProblem",
    "Event",
    "FilterError",
    "GraphError",
    "Id",
    "LimitError",
    "NotificationError",
    "RefusedFilters",
    "Scalar",
    "TidingsError",
    "Type",
    "Value",
    "compare",
    "from_micros",
    "id_pairs",
    "is_number",
    "list_some",
    "micros",
    "need_id",
    "normalise",
    "read_value",
    "type_of",
]
