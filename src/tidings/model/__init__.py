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
    is_number,
    micros,
    moment,
    plain,
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
    "id_pairs",
    "is_number",
    "micros",
    "moment",
    "need_id",
    "plain",
    "read_value",
    "type_of",
]
