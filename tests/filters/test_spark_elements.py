"""Spark SQL is the judge of `exists`, CASE, CAST and maps: in all three truths, one event at a
time, in batches from Arrow, from JSON text, in canonical form and in tags."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.filters import oracle
from tests.filters.test_spark_agreement import differences
from tests.repeats import amount

from tidings import Attributes, Matcher, parse
from tidings.snapshots import Snapshot
from tidings.spark import tag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::tidings.spark.tagging.column_checks.NeverTrueWarning"),
]

COLUMNS = (
    "qty bigint, price double, name string, day date, at timestamp, ok boolean, "
    "tags array<string>, nums array<bigint>, attrs map<string, bigint>, words map<string, string>, "
    "lines array<struct<sku: string, price: double, n: bigint, tags: array<string>, "
    "m: map<string, string>>>"
)
TYPES = {
    "qty": "integer", "price": "double", "name": "string", "day": "date", "at": "timestamp",
    "ok": "boolean", "tags": "list<string>", "nums": "list<integer>",
    "attrs": "map<string, integer>", "words": "map<string, string>",
    "lines": "list<struct<sku: string, price: double, n: integer, tags: list<string>, "
    "m: map<string, string>>>",
}  # fmt: skip
TEXTS = [
    "7", " 7 ", "7.5", "abc", "true", " No ", "2024-01-02", "2024-01-02 10:00:00", "2024-1-2Tx",
    "1e3", "NaN", "-inf", "Infinity", "", "-0", "300", "99999999999", "1d", "\t8\n", "\u00a07",
    "+5", "t", "0", "2024-02-30", "2024-01-02T10:00:00.123456+02:00", "2024", "1.", ".5", "--5",
    "9223372036854775808", "128", "-129", "00040000", "3e400", "2024-01-02 25:00:00", "ABC",
]  # fmt: skip
DOUBLES = [0.0, -0.0, 7.0, 7.9, -7.9, 1e10, 1e19, float("nan"), float("inf"), 250.5, 127.5, 1.5e9]
WHOLES = [0, 1, 7, -7, 300, 127, 128, 2**31, -(2**63), 2**63 - 1, 1_704_190_000]
DAYS = [dt.date(2024, 1, 2), dt.date(1969, 12, 31), dt.date(1, 1, 1)]
TIMES = [
    dt.datetime(2024, 1, 2, 10, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=dt.UTC),
]  # fmt: skip
SKUS = ["a", "b", "A7", ""]
FILTERS = amount(50, 200)


def maybe(rng: random.Random, value: Any) -> Any:
    return None if rng.random() < 0.15 else value


def event(rng: random.Random) -> dict[str, Any]:
    def few(values: list[Any]) -> Any:
        return maybe(rng, [maybe(rng, rng.choice(values)) for _ in range(rng.randint(0, 3))])

    def line() -> dict[str, Any]:
        return {
            "sku": maybe(rng, rng.choice(SKUS)), "price": maybe(rng, rng.choice(DOUBLES)),
            "n": maybe(rng, rng.choice(WHOLES)), "tags": few(SKUS),
            "m": maybe(rng, {"k1": rng.choice(TEXTS)}),
        }  # fmt: skip

    return {
        "qty": maybe(rng, rng.choice(WHOLES)), "price": maybe(rng, rng.choice(DOUBLES)),
        "name": maybe(rng, rng.choice(TEXTS)), "day": maybe(rng, rng.choice(DAYS)),
        "at": maybe(rng, rng.choice(TIMES)), "ok": maybe(rng, rng.random() < 0.5),
        "tags": few(SKUS), "nums": few(WHOLES),
        "attrs": maybe(rng, {k: maybe(rng, rng.choice(WHOLES)) for k in rng.sample(KEYS, 2)}),
        "words": maybe(rng, {k: maybe(rng, rng.choice(SKUS)) for k in rng.sample(KEYS, 2)}),
        "lines": maybe(rng, [maybe(rng, line()) for _ in range(rng.randint(0, 3))]),
    }  # fmt: skip


KEYS = ["k1", "odd key", "k.2"]


class Draw:
    """Random filters; each method writes a value or a condition."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def one(self, *options: str) -> str:
        return self.rng.choice(options)

    def whole(self) -> str:
        return f"{self.rng.choice([0, 1, 7, -7, 300, 127, 1_704_190_000])}"

    def double(self) -> str:
        return self.one("7.9D", "0.0D", "250.5D", "1e10")

    def text(self) -> str:
        return self.one("'a'", "'7'", "'A7'", "''", "'true'", "'2024-01-02'", "'ABC'")

    def cast(self, depth: int) -> str:
        """A cast, compared with a constant of its type."""
        number = self.one("int", "bigint", "smallint", "tinyint")
        floating = self.one("double", "float")
        source, target, constant = self.rng.choice([
            (self.one("name", "price", "qty", "ok", "at"), number, self.whole()),
            (self.one("name", "price", "qty", "ok", "at"), floating, self.double()),
            (self.one("name", "day", "at"), "date", "DATE '2024-01-02'"),
            (self.one("name", "day", "at", "qty % 1000000000"), "timestamp",
             "TIMESTAMP '2024-01-02 10:00:00'"),
            (self.one("name", "qty", "ok", "day", "at"), "string", self.text()),
            (self.one("name", "price", "qty"), "boolean", "true"),
            ("attrs['k1']", "string", "'7'"), ("words['k1']", "boolean", "true"),
        ])  # fmt: skip
        return f"TRY_CAST({source} AS {target}) {self.op()} {constant}"

    def op(self) -> str:
        return self.one("=", "!=", "<", "<=", ">", ">=", "<=>")

    def case(self, depth: int) -> str:
        kind, values = self.rng.choice([
            (self.text, ["'a'", "name", "words['k1']", "NULL"]),
            (self.whole, ["1", "7", "qty", "attrs['k1']", "NULL", "qty % 10"]),
        ])  # fmt: skip
        head = ""
        whens = [self.condition(depth + 1) for _ in range(self.rng.randint(1, 3))]
        if self.rng.random() < 0.25:
            head, whens = "qty ", [self.whole() for _ in whens]
        parts = " ".join(f"WHEN {when} THEN {self.rng.choice(values)}" for when in whens)
        other = f" ELSE {self.rng.choice(values[:-1])}" if self.rng.random() < 0.7 else ""
        found = f"CASE {head}{parts}{other} END"
        if self.rng.random() < 0.2:
            return f"{found} IS {self.one('', 'NOT ')}NULL"
        if self.rng.random() < 0.2:
            return f"{found} IN ({kind()}, {kind()})"
        return f"{found} {self.op()} {kind()}"

    def boolean_case(self, depth: int) -> str:
        first, then, other = (self.condition(depth + 1) for _ in range(3))
        if self.rng.random() < 0.4:
            return f"if({first}, {then}, {other})"
        return f"CASE WHEN {first} THEN {then} ELSE {other} END"

    def element(self, depth: int) -> str:
        """A condition on one line, `x`."""
        found = self.one(
            f"x.price {self.op()} {self.double()}", f"x.n {self.op()} {self.whole()}",
            f"x.sku {self.op()} {self.text()}", "x.sku LIKE 'A%'", "x.sku IS NULL", "x IS NULL",
            "x.n > qty", "x.sku = name", "exists(x.tags, t -> t = 'a')", "x.m['k1'] = '7'",
            "exists(x.tags, t -> t = x.sku)", "TRY_CAST(x.m['k1'] AS int) > 3",
            "CASE WHEN x.n > 5 THEN x.sku ELSE 'b' END = 'b'", "size(x.tags) > 1",
        )  # fmt: skip
        if depth < 2 and self.rng.random() < 0.4:
            return f"({found} {self.one('AND', 'OR')} {self.element(depth + 1)})"
        return f"NOT ({found})" if self.rng.random() < 0.15 else found

    def exists(self, depth: int) -> str:
        name = self.one("exists", "exists", "forall")
        return self.one(
            f"{name}(lines, x -> {self.element(0)})",
            f"{name}(tags, t -> t {self.op()} {self.text()})",
            f"{name}(tags, t -> t IN ('a', 'b') OR t LIKE 'A%')",
            f"{name}(nums, t -> t {self.op()} qty)",
            f"{name}(lines.sku, t -> t = {self.text()})",
        )

    def condition(self, depth: int = 0) -> str:
        if depth < 2 and self.rng.random() < 0.35:
            join = self.one(" AND ", " OR ")
            found = "(" + join.join(self.condition(depth + 1) for _ in range(2)) + ")"
        else:
            makers = [self.cast, self.exists, self.simple]
            makers += [self.case, self.boolean_case] if depth < 2 else []
            found = self.rng.choice(makers)(depth)
        return f"NOT ({found})" if self.rng.random() < 0.15 else found

    def simple(self, depth: int) -> str:
        return self.one(
            f"qty {self.op()} {self.whole()}", f"name = {self.text()}", "ok", "tags IS NULL",
            f"attrs['k1'] {self.op()} {self.whole()}", "attrs['odd key'] IS NULL",
            "words['k.2'] = 'a'", "words['k1'] LIKE 'A%'", "attrs['k1'] > attrs['odd key']",
            "lower(words['k1']) = 'a7'", "attrs IS NOT NULL", "array_contains(tags, 'a')",
        )  # fmt: skip


def table_of(spark: SparkSession, events: list[dict[str, Any]]) -> DataFrame:
    rows = [{**one, "#": at} for at, one in enumerate(events)]
    return spark.createDataFrame(rows, f"{COLUMNS}, `#` int")


def judge(table: DataFrame, texts: list[str]) -> list[list[bool | None]]:
    from pyspark.sql import functions as f

    rows = table.select("#", *(f.expr(text).alias(str(at)) for at, text in enumerate(texts)))
    found = sorted(rows.collect(), key=lambda row: row["#"])
    return [[row[str(at)] for row in found] for at in range(len(texts))]


def as_arrow(events: list[dict[str, Any]]) -> pa.RecordBatch:
    line = {"sku": pa.string(), "price": pa.float64(), "n": pa.int64(),
            "tags": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.string())}  # fmt: skip
    of = {
        "qty": pa.int64(), "price": pa.float64(), "name": pa.string(), "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"), "ok": pa.bool_(), "tags": pa.list_(pa.string()),
        "nums": pa.list_(pa.int64()), "attrs": pa.map_(pa.string(), pa.int64()),
        "words": pa.map_(pa.string(), pa.string()), "lines": pa.list_(pa.struct(line)),
    }  # fmt: skip

    def pairs(one: dict[str, Any]) -> dict[str, Any]:
        out = dict(one)
        for name in ("attrs", "words"):
            out[name] = None if one[name] is None else list(one[name].items())
        if one["lines"] is not None:
            out["lines"] = [
                None if row is None
                else {**row, "m": None if row["m"] is None else list(row["m"].items())}
                for row in one["lines"]
            ]  # fmt: skip
        return out

    return pa.RecordBatch.from_pylist([pairs(one) for one in events], schema=pa.schema(of))


@pytest.mark.parametrize("declared", [False, True], ids=["undeclared", "declared"])
def test_elements_cases_casts_and_maps_mean_what_they_mean_to_spark(
    spark: SparkSession, seed: int, declared: bool
) -> None:
    rng = random.Random(f"{seed} elements {declared}")
    attributes = Attributes(TYPES) if declared else None
    events = [event(rng) for _ in range(40)]
    draw = Draw(rng)
    texts = [draw.condition() for _ in range(FILTERS)]
    utc = {"spark.sql.session.timeZone": "UTC"}
    with oracle.settings(spark, oracle.INTERPRETED | utc):
        table = table_of(spark, events).cache()
        says = judge(table, texts)
        problems = []
        for text, expected in zip(texts, says, strict=True):
            problems += differences(text, expected, events, attributes)
        assert not problems, "\n".join(problems[:5])
        matcher = Matcher(attributes, background=False)
        matcher.add_many(enumerate(texts))
        wanted = [[at for at in range(len(texts)) if says[at][row]] for row in range(len(events))]
        batch = as_arrow(events)
        assert [sorted(ids) for ids in matcher.match_batch(batch).to_pylist()] == wanted
        assert [sorted(matcher.match(one)) for one in events] == wanted  # type: ignore[type-var]
        snapshot = Snapshot.build(dict(enumerate(texts)), attributes)
        tagged = tag(table, snapshot, "subscriptions").select("#", "subscriptions").collect()
        assert {row["#"]: sorted(row["subscriptions"]) for row in tagged} == dict(enumerate(wanted))


def test_json_text_gives_the_same(seed: int) -> None:
    rng = random.Random(f"{seed} json")
    draw = Draw(rng)
    texts = [draw.condition() for _ in range(FILTERS)]
    matcher = Matcher(background=False)
    matcher.add_many(enumerate(texts))
    for _ in range(50):
        one = {k: v for k, v in event(rng).items() if k not in ("day", "at")}
        one["price"] = None if one["price"] is None else 7.5
        for line in one["lines"] or []:
            if line is not None:
                line["price"] = rng.choice([None, 7.9, 250.5])
        expected = [at for at, text in enumerate(texts) if parse(text).matches(one)]
        assert sorted(matcher.match(json.dumps(one))) == expected  # type: ignore[type-var]


def test_any_is_an_exists(spark: SparkSession, seed: int) -> None:
    rng = random.Random(f"{seed} any")
    events = [event(rng) for _ in range(40)]
    pairs = {
        "any(lines.price) > 250": "exists(lines.price, x -> x > 250)",
        "any(tags) IN ('a', 'b') AND qty > 5": "exists(tags, x -> x IN ('a', 'b')) AND qty > 5",
        "NOT any(tags) = 'a'": "NOT exists(tags, x -> x = 'a')",
        "any(tags) NOT LIKE 'A%'": "exists(tags, x -> x NOT LIKE 'A%')",
        "lower(any(tags)) = 'a7' OR ok": "exists(tags, x -> lower(x) = 'a7') OR ok",
        "any(nums) BETWEEN qty AND 300": "exists(nums, x -> x BETWEEN qty AND 300)",
        "any(tags) = any(lines.sku)": "exists(tags, t -> exists(lines.sku, s -> t = s))",
        "any(tags) IS NULL": "exists(tags, x -> x IS NULL)",
        "5 < any(nums) % 9": "exists(nums, x -> 5 < x % 9)",
    }
    with oracle.settings(spark, oracle.INTERPRETED):
        says = judge(table_of(spark, events), list(pairs.values()))
    for (text, same), expected in zip(pairs.items(), says, strict=True):
        assert parse(text) == parse(same), text
        assert not differences(text, expected, events, None)
