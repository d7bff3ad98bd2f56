"""Values and their order, types, subscription ids, and the errors of every room.

    values.py    what a value is, and `compare`, the order that every other module must agree with
    types.py     the names of the types, and how to parse text as each
    data_types.py, type_text.py    whole types such as list<string>, and how to parse them
    decimals.py                    where decimals lie among doubles
    type_inference.py              the types of a sample, or of an Arrow or Spark schema
    declaration.py                 a declaration of attributes as a tree of types
    toml_strings.py                keys and strings of TOML files
    ids.py       subscription ids
    errors.py    the error classes; each message is one sentence
    gc_pause.py  a pause of the garbage collector, for bulk work
    pandas_block.py    keeps pandas out of the processes of nodes

Adding an attribute type starts in types.py. If its values belong to an existing family (a UUID can
be a string), sets and rank spaces stay as they are; CONTRIBUTING.md lists the rooms to touch.
This room imports no other room, and every room may import it. Users get the errors from `tidings`.
Start at values.py: its docstring defines the order of all values.
"""

from tidings.model.data_types import DataType, Field, Path, write_path
from tidings.model.decimals import (
    LongDecimal,
    count_digits,
    exact_value,
    fits_decimal,
    place_of,
)
from tidings.model.declaration import Extra, article, need_extra, read_declaration
from tidings.model.errors import (
    MOST_LISTED,
    AttributesError,
    EnvironmentProblem,
    FilterError,
    GraphError,
    LimitError,
    NotificationError,
    Problem,
    RefusedFilters,
    TidingsError,
    Undecided,
)
from tidings.model.gc_pause import pause_gc
from tidings.model.ids import Id, id_pairs, list_some, need_id
from tidings.model.pandas_block import allow_pandas, block_pandas
from tidings.model.toml_strings import toml_key, toml_text
from tidings.model.type_inference import (
    Guess,
    look_at_rows,
    type_of_arrow,
    type_of_spark,
    types_of_fields,
    write_declaration,
)
from tidings.model.type_text import parse_inline, parse_name, parse_type
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
    from_micros,
    is_number,
    micros,
    normalise,
)

__all__ = [
    "ABSENT",
    "INT_MAX",
    "INT_MIN",
    "MOST_LISTED",
    "NULL_MARK",
    "TYPES",
    "AttributesError",
    "DataType",
    "EnvironmentProblem",
    "Event",
    "Extra",
    "Field",
    "FilterError",
    "GraphError",
    "Guess",
    "Id",
    "LimitError",
    "LongDecimal",
    "NotificationError",
    "Path",
    "Problem",
    "RefusedFilters",
    "Scalar",
    "TidingsError",
    "Type",
    "Undecided",
    "Value",
    "allow_pandas",
    "article",
    "block_pandas",
    "compare",
    "count_digits",
    "exact_value",
    "fits_decimal",
    "from_micros",
    "id_pairs",
    "is_number",
    "list_some",
    "look_at_rows",
    "micros",
    "need_extra",
    "need_id",
    "normalise",
    "parse_inline",
    "parse_name",
    "parse_type",
    "pause_gc",
    "place_of",
    "read_declaration",
    "read_value",
    "toml_key",
    "toml_text",
    "type_of",
    "type_of_arrow",
    "type_of_spark",
    "types_of_fields",
    "write_declaration",
    "write_path",
]
