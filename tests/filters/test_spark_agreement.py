"""Spark SQL is the judge of what a filter means: on random filters and rows nothing differs.

`df.filter(text)`, the reference semantics and the canonical form have to agree in all three truths,
and the text of the canonical form has to say the same again.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.filters import oracle
from tests.repeats import rounds

from tidings import Attributes, Filter, FilterError, parse
from tidings.filters.language.evaluation import truth
from tidings.filters.language.expression import IsNull, Not
from tidings.model import Type, micros, read_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES = Path(__file__).parent / "cases"
ROWS = 60
FILTERS = 100


def differences(
    text: str, spark_says: list[bool | None], events: list[dict[str, Any]], of: Attributes | None
) -> list[str]:
    """Everything that tidings says of the filter and Spark does not."""
    one = parse(text, attributes=of)
    written = parse(one.sql(), attributes=of)
    canonical = parse(one.canonical().sql(), attributes=of)
    negated = Filter(Not(one.expression), of)
    unknown = Filter(IsNull(one.expression), of)
    found = []
    if not one == written == canonical:
        found.append("its own text or its canonical text is another filter")
    for event, wanted in zip(events, spark_says, strict=True):
        said = {
            "reference": truth(one.expression, event) is wanted,
            "text": truth(written.expression, event) is wanted,
            "matches": one.matches(event) is (wanted is True),
            "canonical form": one.form.holds(event) is (wanted is True),
            "canonical text": canonical.matches(event) is (wanted is True),
            "form of NOT": negated.form.holds(event) is (wanted is False),
            "form of IS NULL": unknown.form.holds(event) is (wanted is None),
        }
        wrong = [who for who, right in said.items() if not right]
        if wrong:
            found.append(f"{', '.join(wrong)}: Spark says {wanted} on {event}")
    return [f"{text!r}: {problem}" for problem in found]


def check_chunk(
    spark: SparkSession, rng: random.Random, *, declared: bool, zeros: bool = False
) -> int:
    """One schema, one table, many filters in one job. The number of pairs of filter and row."""
    found = oracle.judged(spark, rng, rows=ROWS, filters=FILTERS, declared=declared, zeros=zeros)
    problems = []
    for text, says in zip(found.texts, found.says, strict=True):
        problems += differences(text, says, found.events, found.attributes)
    assert not problems, "\n".join(problems[:5])
    return len(found.texts) * len(found.events)


@pytest.mark.parametrize("declared", [False, True], ids=["undeclared", "declared"])
def test_random_filters_mean_what_they_mean_to_spark(
    spark: SparkSession, seed: int, declared: bool
) -> None:
    rng = random.Random(f"{seed} {declared}")
    with oracle.settings(spark, oracle.INTERPRETED):
        pairs = sum(check_chunk(spark, rng, declared=declared) for _ in rounds(1, 2))
    assert pairs >= 5_000


def test_generated_code_means_the_same(spark: SparkSession, seed: int) -> None:
    with oracle.settings(spark, oracle.GENERATED):
        assert check_chunk(spark, random.Random(f"{seed} code"), declared=False) >= 6_000


def test_without_ansi_our_nulls_are_sparks(spark: SparkSession, seed: int) -> None:
    """What is an error in ANSI mode is null here, as it is in Spark without ANSI mode."""
    without = {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.sizeOfNull": "false"}
    rng = random.Random(f"{seed} zeros")
    with oracle.settings(spark, oracle.INTERPRETED | without):
        assert check_chunk(spark, rng, declared=False, zeros=True) >= 6_000


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_random_filters_mean_what_they_mean_to_spark(spark: SparkSession, seed: int) -> None:
    rng = random.Random(f"{seed} soak")
    with oracle.settings(spark, oracle.INTERPRETED):
        pairs = sum(check_chunk(spark, rng, declared=number % 2 == 1) for number in range(120))
    assert pairs >= 700_000


# -- differences that are meant ----------------------------------------------------------------

DIFFERENCES: list[dict[str, Any]] = json.loads((CASES / "spark_differences.json").read_text())


def ours(case: dict[str, Any]) -> bool | str | None:
    try:
        return truth(parse(case["text"]).expression, case["event"])
    except FilterError:
        return "refused"


def sparks(spark: SparkSession, case: dict[str, Any]) -> bool | str | None:
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import expr
    from pyspark.sql.types import StructType

    of = StructType.fromDDL(case["columns"])
    assert isinstance(of, StructType)
    try:
        rows = oracle.table(spark, of, [case["event"]]).select(expr(case["text"])).collect()
    except PySparkException as error:
        return str(error.getCondition() or "")
    value: bool | None = rows[0][0]
    return value


def java_version(spark: SparkSession) -> int:
    found = spark.sparkContext._jvm.java.lang.System.getProperty("java.specification.version")  # type: ignore[union-attr]
    return int(found)


def in_release(spark: SparkSession, case: dict[str, Any]) -> Any:
    """What Spark says in this release. `before` has the answers of older releases."""
    running = tuple(map(int, spark.version.split(".")[:2]))
    for release, answer in case.get("before", {}).items():
        if running < tuple(map(int, release.split("."))):
            return answer
    return case["spark"]


@pytest.mark.parametrize("case", DIFFERENCES, ids=[case["text"] for case in DIFFERENCES])
def test_listed_difference_is_still_one(spark: SparkSession, case: dict[str, Any]) -> None:
    assert ours(case) == case["ours"]
    if "until_java" in case and java_version(spark) >= case["until_java"]:
        pytest.skip("Java says the same since then")
    with oracle.settings(spark, oracle.INTERPRETED):
        assert sparks(spark, case) == in_release(spark, case)
    assert case["ours"] != case["spark"]
    if "instead" in case:  # how to write what both understand
        both = {**case, "text": case["instead"]}
        with oracle.settings(spark, oracle.INTERPRETED):
            assert ours(both) == sparks(spark, both)
    if "without_ansi" in case:
        without = {"spark.sql.ansi.enabled": "false"}
        with oracle.settings(spark, oracle.INTERPRETED | without):
            assert sparks(spark, case) == case["without_ansi"]


# -- reading text as a type --------------------------------------------------------------------

CASTS: dict[Type, dict[str, list[str]]] = json.loads((CASES / "casts.json").read_text())


def read_or_none(text: str, kind: Type) -> Any:
    try:
        return read_value(text, kind)
    except ValueError:
        return None


@pytest.mark.parametrize("kind", CASTS)
def test_text_is_read_as_spark_reads_it(spark: SparkSession, kind: Type) -> None:
    from pyspark.sql.functions import col, expr

    def cast(words: list[str]) -> dict[str, Any]:
        """What Spark makes of each word; times in microseconds, as Python has not all of them."""
        frame = spark.createDataFrame([(word,) for word in words], "word string").coalesce(1)
        value = expr(f"try_cast(word AS {'BIGINT' if kind == 'integer' else kind})")
        if kind in ("date", "timestamp"):
            value = expr(f"unix_micros(CAST(try_cast(word AS {kind}) AS TIMESTAMP))")
        return {row[0]: row[1] for row in frame.select(col("word"), value).collect()}

    cases = CASTS[kind]
    for word, theirs in cast(cases["alike"]).items():
        ours_read = read_or_none(word, kind)
        if kind in ("date", "timestamp") and ours_read is not None:
            ours_read = micros(ours_read)
        assert repr(ours_read) == repr(theirs), word
    for word in cases["only_ours"]:
        assert cast([word]) == {word: None}
        assert read_or_none(word, kind) is not None
    for word in cases["only_spark"]:
        assert cast([word])[word] is not None
        assert read_or_none(word, kind) is None
