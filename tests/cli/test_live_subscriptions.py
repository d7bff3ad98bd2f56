"""`tidings subscriptions`: changes are acknowledged with a version, and refused in one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Run, Write

from tidings import Attributes
from tidings.snapshots import Snapshot
from tidings.store import ChangeLog

PIPELINE = """
name = "flights"
[source]
kind = "files"
path = "in"
[columns]
origin = "string"
dep_delay = "integer"
[subscriptions]
{subscriptions}
[outbox]
path = "out"
"""


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(tmp_path / "log")


def test_add_drop_and_list(run: Run, log: str) -> None:
    assert run("subscriptions", "add", log, "late", "dep_delay > 60").out == (
        "version 1: late is subscribed to dep_delay > 60\n"
    )
    added = run("subscriptions", "add", log, "too", "NOT (dep_delay <= 60)", "--json")
    assert added.records == [{"version": 2, "id": "too", "filter": "NOT (dep_delay <= 60)"}]
    assert run("subscriptions", "drop", log, "late").out == "version 3: late has ended\n"
    now = run("subscriptions", "list", log)
    assert "too      1   NOT (dep_delay <= 60)" in now.out
    assert now.out.endswith("version 3: 1 subscription, 1 distinct filter\n")
    before = run("subscriptions", "list", log, "--at", "1", "--json")
    assert before.records == [{"id": "late", "node": 1, "filter": "dep_delay > 60"}]
    assert ChangeLog(log).subscriptions() == {"too": ("NOT (dep_delay <= 60)", 1)}


def test_the_log_shows_an_adoption_as_a_row(run: Run, log: str) -> None:
    run("subscriptions", "add", log, "late", "dep_delay > 60")
    adopted = Snapshot.build({"a": "dep_delay > 1", "b": "dep_delay > 2", "c": "dep_delay > 2"})
    ChangeLog(log).adopt(adopted, owner="import")
    run("subscriptions", "add", log, "later", "dep_delay > 90")
    shown = run("subscriptions", "log", log)
    assert shown.code == 0
    rows = [" ".join(row.split()) for row in shown.out.splitlines()[2:5]]
    assert rows == [
        "1 late 1 dep_delay > 60",
        "3 adopted 3 subscriptions, nodes 2 to 3 import",
        "4 later 4 dep_delay > 90",
    ]
    assert run("subscriptions", "log", log, "--after", "1", "--json").records == [
        {"version": 3, "adopted": 3, "nodes": [2, 3], "owner": "import"},
        {"version": 4, "id": "later", "node": 4, "filter": "dep_delay > 90"},
    ]


def test_who_made_a_subscription(run: Run, log: str) -> None:
    run("subscriptions", "add", log, "late", "dep_delay > 60")
    assert "owner" not in run("subscriptions", "list", log).out  # nobody said who
    run("subscriptions", "add", log, "mine", "dep_delay > 90", "--owner", "ana lee")
    run("subscriptions", "add", log, "mine", "dep_delay > 95")  # keeps its owner
    run("subscriptions", "add", log, "his", "dep_delay > 60", "--owner", "ben")
    shown = run("subscriptions", "list", log).out
    assert "owner" in shown
    assert "mine      3   dep_delay > 95   ana lee" in shown
    found = run("subscriptions", "list", log, "--json").records
    assert [one.get("owner") for one in found] == [None, "ana lee", "ben"]
    changes = run("subscriptions", "log", log, "--json").records
    assert [one.get("owner") for one in changes] == [None, "ana lee", "ana lee", "ben"]
    assert ChangeLog(log).state().owners == {"mine": "ana lee", "his": "ben"}
    run("subscriptions", "drop", log, "his")
    run("subscriptions", "add", log, "his", "dep_delay > 60")  # another one
    assert "his" not in ChangeLog(log).state().owners
    refused = run("subscriptions", "add", log, "x", "a > 1", "--owner", "two\nlines")
    assert "found the owner 'two\\nlines', expected at most 200 printable" in refused.err


def test_the_log_of_changes(run: Run, log: str) -> None:
    ChangeLog(log).put_many({f"s{n}": f"a > {n}" for n in range(30)})
    ChangeLog(log).drop("s3")
    shown = run("subscriptions", "log", log).out
    assert "31   s3" in shown
    assert " 11   s10" not in shown  # the last 20 only
    assert shown.endswith("the latest version is 31\n")
    assert len(run("subscriptions", "log", log, "--json", "--all").records) == 31
    after = run("subscriptions", "log", log, "--after", "29", "--json").records
    assert after == [
        {"version": 30, "id": "s29", "node": 30, "filter": "a > 29"},
        {"version": 31, "id": "s3", "node": 0, "filter": None},
    ]
    assert "and 9 more changes" in run("subscriptions", "log", log, "--after", "2").out


def test_a_damaged_log_is_refused_and_repaired(run: Run, log: str) -> None:
    for n in range(3):
        ChangeLog(log).put(f"s{n}", f"a > {n}")
    assert run("subscriptions", "repair", log).out == (
        "the log is intact; the latest version is 3\n"
    )
    (segment,) = Path(log).glob("*.log")
    os.truncate(segment, segment.stat().st_size - 1)
    refused = run("subscriptions", "add", log, "s3", "a > 3")
    assert refused.code == 2
    assert "of its 3 versions, those after 2 can't be read" in refused.err
    assert f"`tidings subscriptions repair {log}`" in refused.err
    assert len(refused.err.splitlines()) == 1
    said = run("subscriptions", "repair", log).out.splitlines()
    assert said[0].endswith("the data is corrupt or cut off")
    assert "lost: version 3" in said
    assert said[-1].startswith("version 4 is intact; use `subscriptions list` to find missing")
    assert len(run("subscriptions", "list", log, "--json").records) == 2
    lost = run("subscriptions", "list", log, "--at", "3")
    assert "the state at version 3 was lost when the log was repaired" in lost.err
    assert run("subscriptions", "repair", log, "--json").records == [
        {"problems": [], "lost": [], "version": 4, "aside": ""}
    ]


def test_load_puts_all_or_none(run: Run, write: Write, log: str) -> None:
    good = write("good.jsonl", '{"id": "x", "filter": "a > 1"}\n{"id": "y", "filter": "b > 1"}\n')
    bad = write("bad.jsonl", '{"id": "z", "filter": "a > 1"}\n{"id": "w", "filter": "b >"}\n')
    assert run("subscriptions", "load", log, good).out == "version 2: 2 subscriptions stored\n"
    result = run("subscriptions", "load", log, bad)
    assert result.code == 2
    assert "bad.jsonl, line 2, id w, character 4: found the end of the filter" in result.err
    assert ChangeLog(log).version == 2
    assert run("subscriptions", "load", log, good, "--json").records == [
        {"version": 4, "subscriptions": 2, "never": []}
    ]


def test_ids_stay_of_one_kind(run: Run, write: Write, log: str) -> None:
    numbered = write("filters.txt", "a > 1\nb > 1\n")
    run("subscriptions", "load", log, numbered)
    run("subscriptions", "add", log, "7", "a > 3")
    assert list(ChangeLog(log).subscriptions()) == [1, 2, 7]
    result = run("subscriptions", "add", log, "ana", "a > 3")
    assert (result.code, result.err) == (
        2, f"error: found the id 'ana', but the ids of {log} are integers\n",
    )  # fmt: skip
    named = log + "2"
    run("subscriptions", "add", named, "ana", "a > 3")
    run("subscriptions", "load", named, numbered)
    assert list(ChangeLog(named).subscriptions()) == ["ana", "1", "2"]


def test_a_pipeline_file_stands_for_its_log(run: Run, write: Write, tmp_path: Path) -> None:
    file = write("p.toml", PIPELINE.format(subscriptions='log = "subs"'))
    assert run("subscriptions", "add", file, "late", "dep_delay > 60").code == 0
    assert ChangeLog(tmp_path / "subs").version == 1
    result = run("subscriptions", "add", file, "late", "dep_dely > 60")
    assert result.code == 2
    assert "there is no attribute 'dep_dely'; did you mean dep_delay?" in result.err
    fixed = write("fixed.toml", PIPELINE.format(subscriptions='snapshot = "s"'))
    result = run("subscriptions", "list", fixed)
    assert result.code == 2
    assert "uses a snapshot" in result.err


def test_attributes_that_a_pipeline_compiled_with_hold(run: Run, log: str) -> None:
    attributes = Attributes({"dep_delay": "integer"})
    ChangeLog(log, attributes).put("late", "dep_delay > 60")
    one = Snapshot.build({"late": "dep_delay > 60"}, attributes)
    one.save(Path(log) / "snapshots" / f"{1:020d}")
    result = run("subscriptions", "add", log, "x", "delay > 60")
    assert result.code == 2
    assert "there is no attribute 'delay'" in result.err


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"id": "x", "filter": "a >"}', "found the end of the filter"),
        ('{"id": 99999999999999999999, "filter": "a > 1"}', "an integer of more than 64 bits"),
    ],
)
def test_what_is_refused_leaves_no_log_behind(
    run: Run, write: Write, log: str, content: str, sentence: str
) -> None:
    result = run("subscriptions", "load", log, write("bad.jsonl", content))
    assert result.code == 2
    assert sentence in result.err
    assert not Path(log).exists()
    for who, text in (("x", "a >"), ("\udcff", "a > 1")):  # as a byte that is no UTF-8 comes in
        assert run("subscriptions", "add", log, who, text).code == 2
        assert not Path(log).exists()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("list", "nowhere"), "nowhere: there is no log of subscriptions"),
        (("log", "nowhere.toml"), "nowhere.toml: there is no such file"),
        (("drop", "LOG", "ben"), "there is no subscription with the id 'ben'"),
        (("list", "LOG", "--at", "9"), "found version 9, expected a version from 0 to 1"),
        (("log", "LOG", "--after", "9"), "found version 9, expected a version from 0 to 1"),
        (("add", "FULL", "x", "a > 1"), "found other files, expected a log or an empty folder"),
    ],
)
def test_what_is_refused_is_refused_in_one_sentence(
    run: Run, write: Write, log: str, args: tuple[str, ...], sentence: str
) -> None:
    ChangeLog(log).put("ana", "a > 1")
    full = str(Path(write("x.txt", "x")).parent)
    places = {"LOG": log, "FULL": full}
    result = run("subscriptions", *(places.get(arg, arg) for arg in args))
    assert result.code == 2
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(("there", "added"), [("ana", "zed"), (7, 8)])
def test_a_log_that_forgot_its_changes_is_changed_as_before(
    run: Run, log: str, there: str | int, added: str | int
) -> None:
    ChangeLog(log).put(there, "a > 1")
    ChangeLog(log).forget_before(1)
    assert run("subscriptions", "add", log, str(added), "a > 3").code == 0
    ChangeLog(log).forget_before(2)
    assert run("subscriptions", "drop", log, str(there)).code == 0
    assert list(ChangeLog(log).subscriptions()) == [added]


def test_ids_of_the_other_kind_once_nobody_subscribes(run: Run, log: str) -> None:
    ChangeLog(log).put(7, "a > 1")
    assert run("subscriptions", "add", log, "ana", "a > 3").code == 2
    ChangeLog(log).drop(7)
    assert run("subscriptions", "add", log, "8", "a > 3").code == 0
    assert list(ChangeLog(log).subscriptions()) == [8]
    ChangeLog(log).drop(8)
    assert run("subscriptions", "add", log, "ana", "a > 3").code == 0
    assert list(ChangeLog(log).subscriptions()) == ["ana"]


def test_sources_with_columns_of_their_own(run: Run, write: Write, tmp_path: Path) -> None:
    """A filter on a column that is not there would match nothing, silently and for ever."""
    columns = PIPELINE[PIPELINE.index("[columns]") : PIPELINE.index("[subscriptions]")]
    text = PIPELINE.replace(columns, "").format(subscriptions='log = "log"')
    feeds = text.replace('kind = "files"\npath = "in"', 'kind = "feeds"\nurls = ["http://x.org/"]')
    rate = text.replace('kind = "files"\npath = "in"', 'kind = "rate"')
    typed = text.replace('path = "in"', 'path = "in"\nformat = "parquet"')
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "in" / "a.parquet")
    for name, file, good, bad, hint in (
        ("feeds", feeds, "title = 'x'", "titel = 'x'", "'titel'; did you mean title?"),
        ("rate", rate, "value > 1", "vaule > 1", "'vaule'; did you mean value?"),
        ("typed", typed, "x > 1", "why > 1", "'why'; it has x"),
    ):
        path = write(f"{name}.toml", file)
        assert run("subscriptions", "add", path, "a", good).code == 0
        refused = run("subscriptions", "add", path, "b", bad)
        assert (refused.code, hint in refused.err) == (2, True), refused.err
        filters = write("f.jsonl", f'{{"id": "c", "filter": "{bad}"}}\n')
        assert hint in run("subscriptions", "load", path, filters).err


def test_filters_that_make_no_sense_on_the_source(run: Run, tmp_path: Path, write: Write) -> None:
    """A Parquet source has typed columns although the pipeline file declares none."""
    (tmp_path / "in").mkdir()
    table = pa.table({"city": ["a"], "qty": [1], "time": ["10:00"], "tags": [["x"]]})
    pq.write_table(table, tmp_path / "in" / "one.parquet")
    settings = PIPELINE.replace('path = "in"', 'path = "in"\nformat = "parquet"')
    settings = settings.replace('[columns]\norigin = "string"\ndep_delay = "integer"\n', "")
    path = write("pipeline.toml", settings.format(subscriptions=f'log = "{tmp_path / "log"}"'))
    assert run("subscriptions", "add", path, "a", "city = 'x'").code == 0
    for text, said in [
        ("city > 5", "the column 'city' is a string, but the filter compares it with numbers"),
        ("hour(time) = 3", "the column 'time' is a string, but hour takes a time"),
        ("length(qty) > 3", "the column 'qty' is a number, but length takes a string"),
        ("tags = 'x'", "the column 'tags' is a list, but the filter compares it with strings"),
    ]:
        refused = run("subscriptions", "add", path, "b", text)
        assert refused.code == 2
        assert said in refused.err
    file = write("new.txt", "city = 'y'\ncity > 5\nhour(time) = 3\n")
    refused = run("subscriptions", "load", path, file)
    assert refused.code == 2
    assert "line 2: the column 'city'" in refused.err
    assert "line 3: the column 'time'" in refused.err
    assert "2 of 3 filters are refused" in refused.err
