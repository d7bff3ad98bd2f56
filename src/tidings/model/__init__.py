"""Values and their order, types, ids of subscriptions, and the errors of every room.

    values.py    what a value is, and `compare`, with which everything else has to agree
    types.py     the types that an attribute can be declared with, and reading text as one of them
    ids.py       the ids of subscriptions
    errors.py    the tree of errors; the message of each is one sentence

A new type of attributes begins in types.py and goes through many rooms: CONTRIBUTING.md lists them.
This room imports no other. Every room may use it; users get the errors from `tidings`. Start at
values.py: its docstring has the order of all values.
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
    "from_micros",
    "id_pairs",
    "is_number",
    "micros",
    "need_id",
    "normalise",
    "read_value",
    "type_of",
]
