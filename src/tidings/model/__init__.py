"""Values, their order, their types, and the errors of every room."""

from tidings.model.errors import (
    AttributesError,
    EnvironmentProblem,
    FilterError,
    GraphError,
    NotificationError,
    TidingsError,
)
from tidings.model.types import TYPES, Type, read_value, type_of
from tidings.model.values import Event, Scalar, Value, compare, micros, moment, plain

__all__ = [
    "TYPES",
    "AttributesError",
    "EnvironmentProblem",
    "Event",
    "FilterError",
    "GraphError",
    "NotificationError",
    "Scalar",
    "TidingsError",
    "Type",
    "Value",
    "compare",
    "micros",
    "moment",
    "plain",
    "read_value",
    "type_of",
]
