"""Spark SQL as an oracle: the value of a filter on each of some notifications."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.filters import strategies
from tests.filters.strategies import Schema, Writer

from tidings import Attributes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_TYPES = {
    "boolean": "boolean", "integer": "bigint", "small": "bigint", "double": "double",
    "string": "string", "date": "date", "timestamp": "timestamp", "strings": "array<string>",
    "integers": "array<bigint>", "doubles": "array<double>",
}  # fmt: skip

# Without generated Java code Spark starts on a new set of expressions in a third of the time. So it
# is in the session of the tests.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
GENERATED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """The session with other settings for a while."""
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def spark_schema(schema: Schema) -> StructType:
    """The columns as Spark's types, nested ones as structs."""
    from pyspark.sql.types import DataType, StructField, StructType, _parse_datatype_string

    tree: dict[str, Any] = {}
    for path, kind in schema.columns:
        level = tree
        for step in path[:-1]:
            level = level.setdefault(step, {})
        level[path[-1]] = _TYPES[kind]

    def made(of: Mapping[str, Any]) -> StructType:
        fields = []
        for name, below in of.items():
            kind: DataType = (
                made(below) if isinstance(below, dict) else _parse_datatype_string(below)
            )
            fields.append(StructField(name, kind))
        return StructType(fields)

    return made(tree)


def row(event: Mapping[str, Any] | None, of: StructType) -> tuple[Any, ...] | None:
    """A notification as a row: null for what is not there."""
    from pyspark.sql.types import StructType

    if event is None:
        return None
    return tuple(
        row(event.get(field.name), field.dataType)
        if isinstance(field.dataType, StructType)
        else event.get(field.name)
        for field in of.fields
    )


def table(spark: SparkSession, of: StructType, events: Sequence[Mapping[str, Any]]) -> DataFrame:
    return spark.createDataFrame([row(event, of) for event in events], of).coalesce(1)


def values(frame: DataFrame, texts: Sequence[str]) -> list[list[bool | None]]:
    """For each text its value on each row, in one job; AssertionError names a text it refuses."""
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import expr

    def worth(some: Sequence[str]) -> list[list[bool | None]]:
        columns = [expr(text).alias(f"f{number}") for number, text in enumerate(some)]
        rows = frame.select(*columns).collect()
        return [[one[number] for one in rows] for number in range(len(some))]

    try:
        return worth(texts)
    except PySparkException:
        for text in texts:
            try:
                worth([text])
            except PySparkException as error:
                raise AssertionError(f"Spark refuses {text!r}: {str(error)[:300]}") from error
        raise


class Judged(NamedTuple):
    """Random filters and notifications of one schema, and what Spark says of each pair."""

    schema: Schema
    attributes: Attributes | None
    events: list[dict[str, Any]]
    texts: list[str]
    says: list[list[bool | None]]  # by text, then by event


def judged(
    spark: SparkSession,
    rng: random.Random,
    *,
    rows: int,
    filters: int,
    declared: bool,
    zeros: bool = False,
    text: Callable[[Writer], str] = Writer.filter,
    event: Callable[[random.Random, Schema], dict[str, Any]] = strategies.event,
) -> Judged:
    """Draw a schema, filters and notifications, and ask Spark about them, 100 filters a job."""
    schema = strategies.schema(rng, dotted=not declared)
    writer = Writer(rng, schema, declared=declared, zeros=zeros)
    events = [event(rng, schema) for _ in range(rows)]
    texts = [text(writer) for _ in range(filters)]
    frame = table(spark, spark_schema(schema), events)
    says = [one for at in range(0, filters, 100) for one in values(frame, texts[at : at + 100])]
    return Judged(schema, schema.attributes() if declared else None, events, texts, says)
