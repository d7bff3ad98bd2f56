"""backtest(): Spark SQL is the judge of counts; how a table is cut makes no difference."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.repeats import slow_but

from tidings import AttributesError, EnvironmentProblem, FilterError, TidingsError
from tidings.matching.matcher import Matcher
from tidings.snapshots import Snapshot
from tidings.spark import backtest
from tidings.spark.backtests import backtest_plots, fire_counts
from tidings.spark.backtests.backtest_result import Backtest
from tidings.spark.backtests.backtest_worker import micros_of
from tidings.spark.backtests.fire_counts import Earliest, FireCounts, TooManyCounts
from tidings.spark.backtests.time_buckets import TimeBucket

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
TRUNCATED = {"hour": "HOUR", "day": "DAY", "week": "WEEK", "month": "MONTH"}


def rows_of(rng: random.Random, count: int) -> list[tuple[Any, ...]]:
    """(n, origin, delay, at): times in the dark of 1969 too, some null, many the same."""
    found: list[tuple[Any, ...]] = []
    for n in range(count):
        at: Any = START + dt.timedelta(hours=rng.randrange(24 * 90))
        roll = rng.random()
        if roll < 0.05:
            at = None
        elif roll < 0.1:
            at = dt.datetime(1969, 12, rng.randrange(1, 32), 23, 59, 59, 999_999, tzinfo=dt.UTC)
        delay = None if rng.random() < 0.1 else rng.randrange(-20, 200)
        found.append((n, rng.choice(("EWR", "JFK", "LGA", None)), delay, at))
    return found


def text_of(rng: random.Random) -> str:
    tests = [
        f"delay > {rng.randrange(-30, 210)}",
        f"origin = '{rng.choice(('EWR', 'JFK', 'BOS'))}'",
        f"delay BETWEEN {rng.randrange(100)} AND {rng.randrange(200)}",
        "delay IS NULL",
        "origin LIKE '%R'",
        f"n % {rng.randrange(2, 9)} = 0",
        f"at >= TIMESTAMP'2013-0{rng.randrange(1, 4)}-11T05:00:00Z'",
    ]
    joint = rng.choice((" AND ", " OR "))
    text = joint.join(rng.sample(tests, rng.choice((1, 2, 3))))
    return f"NOT ({text})" if rng.random() < 0.2 else text


@pytest.fixture
def table(spark: SparkSession, seed: int) -> DataFrame:
    rows = rows_of(random.Random(f"{seed} table"), 2000)
    return spark.createDataFrame(rows, "n int, origin string, delay int, at timestamp")


def by_stretch(result: Backtest, id_: str) -> dict[str, int]:
    pairs = zip(result.stretches, result.counts(id_), strict=True)
    return {str(start): int(count) for start, count in pairs if count}


@pytest.mark.spark
@pytest.mark.parametrize("every", slow_but(("hour", "month"), TRUNCATED))
def test_counts_are_what_spark_counts(table: DataFrame, seed: int, every: str) -> None:
    rng = random.Random(f"{seed} {every}")
    filters = {f"f{at}": text_of(rng) for at in range(12)}
    found = backtest(table.repartition(rng.choice((1, 3, 7))), filters, every=every)
    assert found.rows == 2000
    assert found.untimed == table.filter("at IS NULL").count()
    for id_, text in filters.items():
        stretch = f"date_format(date_trunc('{TRUNCATED[every]}', at), \"yyyy-MM-dd'T'HH:mm:ss\")"
        judged = table.filter(text).selectExpr(f"{stretch} AS start", "at").collect()
        starts = Counter(row.start for row in judged if row.start is not None)
        assert by_stretch(found, id_) == dict(starts), text
        about = found[id_]
        times = sorted(row["at"].astimezone(dt.UTC) for row in judged if row["at"] is not None)
        assert about.total == len(judged) == found.total(id_)
        assert about.untimed == len(judged) - len(times)
        assert about.share == len(judged) / 2000
        assert about.most == max(starts.values(), default=0)
        if times:
            ends = [time.replace(tzinfo=None) for time in (times[0], times[-1])]
            assert about.first is not None
            assert about.last is not None
            assert [about.first.item(), about.last.item()] == ends
            assert starts[str(about.busiest)] == about.most
        else:
            assert (about.first, about.last, about.busiest) == (None, None, None)
    rows = found.to_table().to_pylist()
    assert sum(row["fired"] for row in rows) == int(found.fired_in_all().sum())
    assert found.summary().num_rows == 12


@pytest.mark.spark
def test_it_does_not_matter_how_a_table_is_cut(
    spark: SparkSession, table: DataFrame, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{seed} cut")
    filters = {f"f{at}": text_of(rng) for at in range(8)}
    table.repartition(2).write.parquet(str(tmp_path / "table"))
    try:
        seen = []
        for pieces, batch in ((1, 10_000), (5, 7), (12, 1)):
            spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(batch))
            cut = spark.read.parquet(str(tmp_path / "table")).repartition(pieces)
            found = backtest(cut, filters, every="week", samples=4)
            samples = {id_: found.samples(id_) for id_ in found.ids}
            seen.append((found.to_table().to_pylist(), found.summary().to_pylist(), samples))
        assert seen[0] == seen[1] == seen[2]
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.spark
def test_samples_are_the_earliest_rows(table: DataFrame) -> None:
    found = backtest(table, {"late": "delay > 150", "none": "delay > 5000"}, samples=6)
    judged = table.filter("delay > 150").orderBy("at").filter("at IS NOT NULL").collect()
    samples = found.samples("late")
    times = [row["at"].astimezone(dt.UTC).replace(tzinfo=None) for row in judged[:6]]
    assert [one.time.item() for one in samples if one.time is not None] == times
    known = {row.n: row for row in judged}
    for one in samples:
        row = known[one.row["n"]]
        assert (one.row["delay"], one.row["origin"]) == (row.delay, row.origin)
    assert found.samples("none") == []
    assert found.never_fired() == ["none"]
    assert found.noisiest(5) == ["late"]
    assert found.shown == ["at", "delay", "n", "origin"]


@pytest.mark.spark
def test_days_are_those_of_utc_whatever_the_session_says(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        times = spark.sql(
            "SELECT timestamp'2013-01-01 23:30:00Z' AS at, timestamp_ntz'2013-01-01 23:30:00' AS "
            "wall, date'2013-01-01' AS day, '2013-01-01 23:30:00' AS text, 'soon' AS bad"
        )
        for column in ("at", "wall", "day", "text"):
            found = backtest(times, "true", time=column)
            assert [str(one) for one in found.stretches] == ["2013-01-01T00:00:00"], column
        found = backtest(times, {"a": "true"}, time="bad")
        assert (found.rows, found.untimed, found.total("a")) == (1, 1, 1)
        assert found["a"].untimed == 1
        assert found.samples("a")[0].time is None
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


@pytest.mark.spark
def test_ways_to_give_filters(table: DataFrame, tmp_path: Path) -> None:
    late = table.filter("delay > 60").count()
    assert backtest(table, "delay > 60").total("delay > 60") == late
    snapshot = Snapshot.build({7: "delay > 60", 9: "NOT (delay <= 60)", 10: "delay > 6000"})
    snapshot.save(tmp_path / "snapshot")
    for given in (snapshot, tmp_path / "snapshot", str(tmp_path / "snapshot")):
        found = backtest(table, given, samples=0)
        assert {id_: found.total(id_) for id_ in found.ids} == {7: late, 9: late, 10: 0}
        assert found.fired_in_all().sum() == 2 * found.counts(7).sum()
        assert found.samples(7) == []
    assert len(found) == 3
    with pytest.raises(TidingsError, match="no filter with the id 'x'"):
        found["x"]


@pytest.mark.spark
def test_columns_of_any_kind(spark: SparkSession) -> None:
    df = spark.sql(
        "SELECT named_struct('seats', 5, 'when', timestamp'2013-01-01 10:00:00') AS plane, "
        "array('x', 'y') AS tags, map('a', 1) AS m, repeat('é', 999) AS `long.name`"
    )
    found = backtest(
        df,
        {"a": "plane.seats > 1", "b": "array_contains(tags, 'x')"},
        time="plane.when",
        every=90,
    )
    assert [str(one) for one in found.stretches] == ["2013-01-01T09:00:00"]
    row = found.samples("b")[0].row
    assert row["tags"] == '["x","y"]'
    assert row["long.name"] == "é" * fire_counts.MOST_LETTERS
    assert "m" not in row


@pytest.mark.spark
def test_a_table_without_times_is_counted_as_a_whole(spark: SparkSession) -> None:
    found = backtest(spark.range(100), "id < 30")
    assert (found.time, found.rows, found.untimed) == (None, 100, 100)
    assert found.total("id < 30") == 30
    assert found.plot_text() == "no row has a time, so there is nothing to plot"
    assert len(found.samples("id < 30")) == 5
    empty = backtest(spark.range(0), "id < 30")
    assert (empty.rows, empty.total("id < 30"), empty["id < 30"].share) == (0, 0, 0.0)


@pytest.mark.spark
def test_progress_is_told_to_the_end(spark: SparkSession) -> None:
    told: list[tuple[int, int, int]] = []
    table = spark.range(0, 2000, 1, 4)
    backtest(table, "id > 60", progress=lambda *far: told.append(far))
    assert told[-1][1:] == (4, 2000)
    assert told[-1][0] >= 3  # Spark may tell of the last one a moment later
    assert [far[2] for far in told] == sorted(far[2] for far in told)
    context = spark.sparkContext
    assert context.getLocalProperty("spark.jobGroup.id") is None


@pytest.mark.spark
def test_what_is_refused(table: DataFrame, spark: SparkSession) -> None:
    for filters, options, message in (
        ("dealy > 60", {}, "did you mean delay"),
        ("origin > 60", {}, "is string, but filters compare it with numbers"),
        ("delay > 60", {"time": "n"}, "the column 'n' is int, expected date"),
        ("delay > 60", {"time": "when"}, "column 'when', which the table does not have"),
    ):
        with pytest.raises(AttributesError, match=message):
            backtest(table, filters, **options)  # type: ignore[arg-type]
    two = table.selectExpr("*", "current_date() AS today")
    with pytest.raises(AttributesError, match="several time columns, at, today"):
        backtest(two, "delay > 60")
    with pytest.raises(FilterError):
        backtest(table, "delay >")
    with pytest.raises(TidingsError, match="expected minute, hour, day, week, month or a number"):
        backtest(table, "delay > 60", every="fortnight")
    with pytest.raises(TidingsError, match="expected 0 or more"):
        backtest(table, "delay > 60", samples=-1)
    with pytest.raises(TidingsError, match="found no filter"):
        backtest(table, {})
    with pytest.raises(TidingsError, match="samples=0"):
        backtest(table, {"a": "delay > 6", "b": "delay > 5"}, samples=600_000)


@pytest.mark.spark
def test_too_many_counts_are_refused(
    spark: SparkSession, table: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = {str(at): f"delay > {at}" for at in range(30)}
    monkeypatch.setattr(fire_counts, "MOST_COUNTS", 1000)  # of the driver; workers have their own
    with pytest.raises(TidingsError, match=r"30 filters in at least \d+ .* use a coarser `every`"):
        backtest(table, filters, every="hour")
    assert backtest(table, filters, every="month").rows == 2000
    wide = spark.range(60_000).selectExpr("timestamp_seconds(id * 60) AS at", "id AS delay")
    many = {str(at): f"delay > {at}" for at in range(1000)}
    with pytest.raises(TidingsError, match="50,000,000; use a coarser"):
        backtest(wide, many, every="minute", samples=0)


# -- without Spark -----------------------------------------------------------------------------


def test_stretches() -> None:
    times = np.array(["1969-12-31T23:59", "1970-01-01T00:00", "2024-02-29T12:34"], "M8[us]")
    micros = times.astype(np.int64)
    expected = {
        "minute": ["1969-12-31T23:59", "1970-01-01T00:00", "2024-02-29T12:34"],
        "hour": ["1969-12-31T23:00", "1970-01-01T00:00", "2024-02-29T12:00"],
        "day": ["1969-12-31", "1970-01-01", "2024-02-29"],
        "week": ["1969-12-29", "1969-12-29", "2024-02-26"],
        "month": ["1969-12-01", "1970-01-01", "2024-02-01"],
        "45": ["1969-12-31T23:15", "1970-01-01T00:00", "2024-02-29T12:00"],
    }
    for name, starts in expected.items():
        every = TimeBucket.parse(name)
        found = every.starts(every.numbers(micros))
        assert found.tolist() == np.array(starts, "M8[s]").tolist(), name
    assert TimeBucket.parse(60) == TimeBucket.parse("hour")
    assert TimeBucket.parse("month").label(times[2]) == "2024-02"
    assert TimeBucket.parse(15).label(times[2]) == "2024-02-29 12:34"
    for bad in ("", "0", "-5", "1.5", "2 days", True):
        with pytest.raises(TidingsError):
            TimeBucket.parse(bad)


def test_a_tally_of_parts_is_that_of_the_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    filters, rows = 5, 3000
    matcher = Matcher(background=False)
    matcher.add_many((at, f"a % {at + 2} = 0") for at in range(filters))
    batch = pa.record_batch({"a": rng.integers(0, 500, rows)})
    lists = matcher.match_batch(batch).to_pylist()
    times = rng.integers(-50, 50, rows) * 3_600_000_000
    times[rng.random(rows) < 0.1] = fire_counts.NEVER
    orders = rng.integers(-(2**62), 2**62, rows)
    every = TimeBucket.parse("day")
    total = FireCounts(filters, 3, np.int64)
    cuts = np.sort(rng.integers(0, rows, 6))
    for first, last in zip([0, *cuts], [*cuts, rows], strict=True):
        part = FireCounts(filters, 3)
        for start in range(first, last, 100):
            some = slice(start, min(start + 100, last))
            starts = np.cumsum([0, *map(len, lists[some])])
            places = np.array([one for found in lists[some] for one in found], np.int64)
            matched = starts, places
            part.add_rows(matched, times[some], every.numbers(times[some]))
            shown = {"a": batch.slice(start, some.stop - start).column("a")}
            part.earliest.add_rows(matched, times[some], orders[some], shown)
        total.add(part.make_part(peak=int(first)))
    total.sort()
    assert (total.rows, total.peak) == (rows, int(cuts[-1]))
    days = times // 86_400_000_000
    for at in range(filters):
        fired = np.array([at in found for found in lists])
        timed = fired & (times != fire_counts.NEVER)
        expected = Counter(days[timed].tolist())
        pairs = zip(total.stretches.tolist(), total.counts[:, at].tolist(), strict=True)
        assert {day: count for day, count in pairs if count} == expected
        assert total.untimed[at] == (fired & ~timed).sum()
        assert (total.first[at], total.last[at]) == (times[timed].min(), times[timed].max())
        best = sorted(zip(times[fired].tolist(), orders[fired].tolist(), strict=True))[:3]
        kept = [(time, row["a"] % (at + 2)) for time, row in total.earliest.samples_of(at)]
        assert kept == [(time, 0) for time, _ in best]
        assert total.earliest.orders[at].tolist() == [order for _, order in best]


def test_a_tally_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fire_counts, "MOST_COUNTS", 20)
    one = FireCounts(4, 0)
    nothing = np.zeros(6, np.int64), np.zeros(0, np.int64)
    one.add_rows(nothing, np.arange(5), np.arange(5))
    with pytest.raises(TooManyCounts) as caught:
        one.add_rows((np.zeros(2, np.int64), nothing[1]), np.array([7]), np.array([7]))
    assert caught.value.stretches == 6


def test_rows_that_were_outdone_are_let_go() -> None:
    kept = Earliest(1, 2)
    every = np.arange(1001, dtype=np.int64), np.zeros(1000, np.int64)
    for round_ in range(300, 0, -1):
        times = np.full(1000, round_, np.int64)
        kept.add_rows(every, times, times, {"x": pa.array(times)})
    assert [row["x"] for _, row in kept.samples_of(0)] == [1, 1]
    assert kept._held == 2


def test_times_of_columns() -> None:
    texts = pa.array(["1970-01-01T00:00:01Z", "1970-01-01 00:00:01", None, "never", "1970-01-02"])
    never, second, day = fire_counts.NEVER, 1_000_000, 86_400_000_000
    assert micros_of(texts).tolist() == [second, second, never, never, day]
    assert micros_of(pa.array([dt.date(1970, 1, 2), None])).tolist() == [day, never]
    assert micros_of(pa.nulls(2)).tolist() == [never, never]


def test_charts() -> None:
    every = TimeBucket.parse("day")
    starts = np.array(["2013-01-01", "2013-01-02", "2013-01-05"], "M8[s]")
    counts = np.array([1, 800, 400])
    assert backtest_plots.sparkline(counts, starts, every, 10) == "▁█  ▄"
    assert backtest_plots.sparkline(counts, starts, every, 2) == "█▄"
    lines = backtest_plots.chart(counts, starts, every, 40).splitlines()
    assert lines[0] == "800 ┤ █"
    assert lines[7] == "    ┤▁█  █"
    assert lines[8:] == [
        "  0 └─────",
        "     2013-01-01 to 2013-01-05",
        "     one column: day",
    ]
    wide = np.arange(400).astype("M8[D]").astype("M8[s]")
    assert "one column: 6 × day; it shows the busiest day" in backtest_plots.chart(
        np.arange(400), wide, every, 80
    )


def test_without_matplotlib_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'tidings\[plot\]'"):
        backtest_plots.load_matplotlib()


@pytest.mark.spark
def test_pictures(table: DataFrame, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    given: list[Any] = ["delay > 60", {"a $x$": "delay > 5", "b": "delay > 999"}]
    for at, filters in enumerate(given):
        path = tmp_path / f"{at}.png"
        backtest(table, filters).plot_png(path)
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
