"""`tidings match`: which events match which filters, from every format."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.conftest import Run, Write

import tidings

TEXTS = ["origin = 'EWR' AND delay > 60", "delay IS NULL", "delay < 0 OR origin = 'JFK'"]
ROWS: list[dict[str, object]] = [
    {"origin": "EWR", "delay": 75},
    {"origin": "EWR", "delay": None},
    {"origin": "LGA", "delay": 10},
    {"origin": "JFK", "delay": -3},
]
LINES = "".join(
    line + "\n"
    for line in [
        '{"origin": "EWR", "delay": 75}',
        '{"origin": "EWR"}',
        "",
        '{"origin": "LGA", "delay": 10}',
        '{"origin": "JFK", "delay": -3}',
    ]
)
TABLE = "origin,delay\nEWR,75\nEWR,\nLGA,10\nJFK,-3\n"


def expected(ids: list[int] | list[str]) -> list[dict[str, object]]:
    found = []
    for index, row in enumerate(ROWS):
        told = [i for i, text in zip(ids, TEXTS, strict=True) if tidings.parse(text).matches(row)]
        if told:
            found.append({"event": index, "ids": told})
    return found


@pytest.fixture
def filters(write: Write) -> str:
    return write("filters.txt", "\n".join(TEXTS))


def write_parquet(path: Path, rows: list[dict[str, object]]) -> str:
    parquet.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def test_every_format_of_events_gives_the_same(
    run: Run, write: Write, filters: str, tmp_path: Path
) -> None:
    files = [
        write("e.jsonl", LINES),
        write("e.ndjson", "\ufeff" + LINES.replace("\n", "\r\n")),
        write("e.csv", TABLE),
        write_parquet(tmp_path / "e.parquet", ROWS),
    ]
    for path in files:
        result = run("match", "--filters", filters, "--events", path, "--json")
        assert (result.code, result.err) == (0, "")
        assert result.records == expected([1, 2, 3])


def test_every_format_of_filters_gives_the_same(run: Run, write: Write, tmp_path: Path) -> None:
    events = write("e.jsonl", LINES)
    records = [{"id": f"f{n}", "filter": text, "subscriber": "ana"} for n, text in enumerate(TEXTS)]
    files = [
        write("f.jsonl", "\n".join(map(json.dumps, records))),
        write("f.csv", "id,filter,subscriber\n"
              + "".join(f'f{n},"{text}",ana\n' for n, text in enumerate(TEXTS))),
        write_parquet(tmp_path / "f.parquet", list(records)),  # type: ignore[arg-type]
    ]  # fmt: skip
    for path in files:
        result = run("match", "--filters", path, "--events", events, "--json")
        assert (result.code, result.err) == (0, "")
        assert result.records == expected(["f0", "f1", "f2"])


def test_formats_can_be_given(run: Run, write: Write) -> None:
    filters = write("f.data", "# comment\n\n  delay > 60\n")
    events = write("e.data", TABLE)
    args = ["--filters-format", "text", "--format", "csv", "--json"]
    result = run("match", "--filters", filters, "--events", events, *args)
    assert result.records == [{"event": 0, "ids": [3]}]


def test_events_and_filters_from_stdin(run: Run, write: Write, filters: str) -> None:
    result = run("match", "--filters", filters, "--events", "-", "--json", stdin=LINES)
    assert result.records == expected([1, 2, 3])
    csv = run("match", "--filters", filters, "--events", "-", "--format", "csv", "--json",
              stdin=TABLE)  # fmt: skip
    assert csv.records == expected([1, 2, 3])
    events = write("e.jsonl", LINES)
    turned = run("match", "--filters", "-", "--events", events, "--json", stdin="\n".join(TEXTS))
    assert turned.records == expected([1, 2, 3])


def test_a_quiet_stdin_is_no_error(run: Run, filters: str) -> None:
    assert run("match", "--filters", filters, "--events", "-", "--json", stdin="").out == ""
    result = run("match", "--filters", filters, "--events", "-", stdin="")
    assert "0 of 0 events match" in result.out


def test_people_see_who_is_told_what(run: Run, write: Write) -> None:
    path = write("f.csv", "id,filter,subscriber\n7,delay > 60,ana\n8,origin = 'EWR',\n9,x = 1,cy\n")
    result = run("match", "--filters", path, "--events", write("e.csv", TABLE))
    lines = [line.rstrip().split(maxsplit=4) for line in result.out.splitlines()]
    assert ["8", "2", "0", "origin", "= 'EWR'"] in lines
    assert ["ana", "7", "1", "0", "delay = 75"] in lines
    assert "2 of 4 events match: 3 matches for 2 of 3 filters" in result.out


def test_many_rows_are_cut_unless_all_are_wanted(run: Run, write: Write) -> None:
    filters = write("f.txt", "\n".join(f"delay > {n}" for n in range(30)))
    events = write("e.csv", TABLE)
    args = ["match", "--filters", filters, "--events", events]
    assert "and 10 more filters (--all shows them)" in run(*args).out
    assert "--all" not in run(*args, "--all").out


def test_the_first_events_only(run: Run, write: Write, filters: str) -> None:
    # The broken line lies behind the limit: what is not asked for is not read.
    events = write("e.jsonl", LINES + "broken\n")
    result = run("match", "--filters", filters, "--events", events, "--json", "--limit", "4")
    assert (result.code, result.records) == (0, expected([1, 2, 3]))


def test_matches_are_printed_before_a_broken_line(run: Run, write: Write, filters: str) -> None:
    events = write("e.jsonl", LINES + "broken\n")
    result = run("match", "--filters", filters, "--events", events, "--json")
    assert (result.code, result.records) == (2, expected([1, 2, 3]))


def test_declared_types_are_applied(run: Run, write: Write) -> None:
    filters = write("f.txt", "at >= '2024-05-01' AND zip = '01234'")
    lines = write("e.jsonl", '{"at": "2024-05-02", "zip": "01234"}')
    table = write("e.csv", "at,zip\n2024-05-02,01234\n")
    for events in (lines, table):
        result = run("match", "--filters", filters, "--events", events, "--json",
                     "--types", "at=date,zip=string")  # fmt: skip
        assert result.records == [{"event": 0, "ids": [1]}]


def test_only_empty_fields_are_null_unless_told(run: Run, write: Write) -> None:
    filters = write("f.txt", "country = 'NA'\ncountry IS NULL")
    events = write("e.csv", "country,n\nNA,1\n,2\n")
    args = ["match", "--filters", filters, "--events", events, "--json"]
    assert run(*args).records == [{"event": 0, "ids": [1]}, {"event": 1, "ids": [2]}]
    assert run(*args, "--null", "NA").records == [
        {"event": 0, "ids": [2]},
        {"event": 1, "ids": [2]},
    ]


def test_types_of_parquet_reach_the_filters(run: Run, write: Write, tmp_path: Path) -> None:
    table = pa.table(
        {
            "at": pa.array([dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)], pa.timestamp("ns")),
            "day": pa.array([dt.date(2024, 5, 1)]),
            "tags": pa.array([["a", "b"]]),
            "user": pa.array([{"city": "Oslo"}]),
            "props": pa.array([[("k", 5)]], pa.map_(pa.string(), pa.int64())),
            "kind": pa.array(["x"]).dictionary_encode(),
        }
    )
    parquet.write_table(table, tmp_path / "e.parquet")
    texts = [
        "at = TIMESTAMP '2024-05-01 12:00:00'",
        "day = DATE '2024-05-01'",
        "array_contains(tags, 'b')",
        "user.city = 'Oslo'",
        "props.k = 5",
        "kind = 'x'",
    ]
    filters = write("f.txt", "\n".join(texts))
    result = run("match", "--filters", filters, "--events", str(tmp_path / "e.parquet"), "--json")
    assert result.records == [{"event": 0, "ids": [1, 2, 3, 4, 5, 6]}]


def test_a_csv_field_may_hold_lines_and_commas(run: Run, write: Write) -> None:
    filters = write("f.csv", "id,filter\n1,\"note = 'a,b'\n  AND n = 1\"\n2,n = 2\n")
    events = write("e.csv", 'note,n\n"a,b",1\n"x\ny",2\n')
    result = run("match", "--filters", filters, "--events", events, "--json")
    assert result.records == [{"event": 0, "ids": ["1"]}, {"event": 1, "ids": ["2"]}]


def test_random_filters_agree_with_one_by_one(run: Run, write: Write, seed: int) -> None:
    draw = random.Random(seed)
    tests = ["a = {}", "b > {}", "c <= {}", "a IN ({}, 7)", "b IS NULL", "NOT (c = {})"]
    texts = [
        draw.choice([" AND ", " OR "]).join(
            draw.choice(tests).format(draw.randrange(5)) for _ in range(draw.randrange(1, 4))
        )
        for _ in range(60)
    ]
    rows = [{name: draw.choice([None, *range(6)]) for name in "abc"} for _ in range(100)]
    filters = write("f.txt", "\n".join(texts))
    events = write("e.jsonl", "\n".join(map(json.dumps, rows)))
    result = run("match", "--filters", filters, "--events", events, "--json")
    parsed = [tidings.parse(text) for text in texts]
    told = {record["event"]: record["ids"] for record in result.records}
    for index, row in enumerate(rows):
        assert told.get(index, []) == [n for n, f in enumerate(parsed, 1) if f.matches(row)]


def test_all_bad_filters_are_listed_with_their_ids(run: Run, write: Write) -> None:
    records = [{"id": f"s{at}", "filter": f"delay > {at}"} for at in range(60)]
    for at in (3, 57):
        records[at]["filter"] = "delay >"
    path = write("filters.jsonl", "\n".join(map(json.dumps, records)))
    done = run("match", "--filters", path, "--events", "-", stdin=LINES)
    assert done.code == 2
    assert f"{path}, line 4, id s3, character 8: found the end of the filter" in done.err
    assert f"{path}, line 58, id s57, character 8: " in done.err
    assert done.err.endswith("error: 2 of 60 filters are refused\n")
    for record in records:
        record["filter"] = "delay >"
    path = write("filters.jsonl", "\n".join(map(json.dumps, records)))
    done = run("match", "--filters", path, "--events", "-", stdin=LINES)
    assert done.err.count("found the end") == 20
    assert done.err.endswith("60 of 60 filters are refused; the first 20 are listed\n")


def test_filters_that_make_no_sense_on_declared_types(run: Run, write: Write) -> None:
    texts = "origin = 'a'\norigin > 5\nlength(delay) > 3\nhour(origin) = 3\n"
    path = write("filters.txt", texts)
    done = run("match", "--filters", path, "--events", "-", "--types",
               "origin=string,delay=integer", stdin=LINES)  # fmt: skip
    assert done.code == 2
    assert "line 2, character 10: origin is a string and can't be compared with 5" in done.err
    assert "line 3, character 8: length takes a string here, found delay, an integer" in done.err
    assert "line 4, character 6: hour takes a time here, found origin, a string" in done.err
    assert "error: 3 of 4 filters are refused" in done.err


def test_named_parts_by_event_and_by_filter(run: Run, write: Write) -> None:
    texts = ["named('late', delay > 60) OR named('home', origin = 'EWR')", "delay < 0"]
    filters, events = write("f.txt", "\n".join(texts)), write("e.jsonl", LINES)
    asked = ("match", "--filters", filters, "--events", events, "--parts")
    assert run(*asked, "--json").records == [
        {"event": 0, "ids": [1], "parts": {"1": ["late", "home"]}},
        {"event": 1, "ids": [1], "parts": {"1": ["home"]}},
        {"event": 3, "ids": [2], "parts": {}},
    ]
    assert run(*asked, "--json", "--by", "filter").records == [
        {"id": 1, "events": [0, 1], "parts": {"late": [0], "home": [0, 1]}},
        {"id": 2, "events": [3], "parts": {}},
    ]
    shown = run(*asked).out
    assert "late 1, home 2" in shown
    assert run("match", "--filters", filters, "--events", events, "--json", "--by",
               "filter").records[1] == {"id": 2, "events": [3]}  # fmt: skip


def test_events_before_a_bad_one_are_matched(run: Run, write: Write, filters: str) -> None:
    done = run("match", "--filters", filters, "--events", write("e.jsonl", LINES + "{\n"), "--json")
    assert done.code == 2
    assert [one["event"] for one in done.records] == [0, 1, 3]
