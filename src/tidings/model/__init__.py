"""Values, their order, their types, ids, and the errors of every room."""

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
