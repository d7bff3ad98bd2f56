"""Filters that can never match, and those that always do: a note wherever commands read them, a
refusal where a person types one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Result, Run, Write

from tidings.cli.backtests import backtest_tables
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.subscription_files import MOST_NOTED
from tidings.store import ChangeLog

EMPTY = "price > 10 AND price < 5"
FULL = "price IS NULL OR price IS NOT NULL"
WHY = "the filter can never match: no value of price is both > 10 and < 5"
ALL = "the filter matches every event, whatever the value of price is"
FILE = f"price > 1\n# a comment\n{FULL}\n{EMPTY}\n"


@pytest.fixture
def file(write: Write) -> str:
    return write("f.txt", FILE)


def notes(done: Result) -> list[str]:
    return [line for line in done.err.splitlines() if line.startswith("note: ")]


@pytest.mark.parametrize(
    "words",
    [
        ("match", "--filters", "FILE", "--events", "EVENTS"),
        ("graph", "FILE"),
        ("convert", "FILE", "--from", "sql"),
        ("snapshot", "build", "FILE", "FOLDER"),
        ("subscriptions", "load", "FOLDER", "FILE"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
@pytest.mark.parametrize("json", [False, True])
def test_a_note_on_each_filter_of_a_file(
    run: Run, write: Write, file: str, tmp_path: Path, words: tuple[str, ...], json: bool
) -> None:
    names = {
        "FILE": file,
        "EVENTS": write("e.jsonl", '{"price": 3}\n'),
        "FOLDER": str(tmp_path / "folder"),
    }
    done = run(*(names.get(word, word) for word in words), *(["--json"] if json else []))
    assert done.code == 0, done.err
    assert notes(done) == [f"note: {file}, line 4: {WHY}", f"note: {file}, line 3: {ALL}"]


def test_only_some_of_many_are_named(run: Run, write: Write) -> None:
    file = write("f.txt", f"{FULL}\n" * 3 + f"{EMPTY}\n" * 7)
    said = notes(run("graph", file))
    assert said[:MOST_NOTED] == [f"note: {file}, line {n}: {WHY}" for n in range(4, 9)]
    assert said[MOST_NOTED:] == [
        "note: 5 more filters are never true or always true; `tidings doctor` lists them"
    ]


def test_check_explain_and_doctor_say_why(run: Run, file: str) -> None:
    done = run("check", EMPTY)
    assert (done.code, f"never-true: {WHY}" in " ".join(done.out.split())) == (0, True)
    [record] = run("check", EMPTY, "--json").records
    assert (record["warnings"], record["note"]) == (["never-true"], WHY)
    done = run("explain", "--filter", EMPTY, "--event", "{}", "--json")
    assert (done.code, done.records[0]["reason"]) == (1, WHY)
    assert f"does not match: {WHY}" in run("explain", "--filter", EMPTY, "--event", "{}").out
    [report] = run("doctor", file, "--json").records
    found = {one["id"]: (one["kind"], one["note"]) for one in report["findings"]}
    assert found == {3: ("always-true", ALL), 4: ("never-true", WHY)}
    assert "is both > 10 and < 5" in " ".join(run("doctor", file).out.split())


def test_add_refuses_what_can_never_match(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    done = run("subscriptions", "add", str(folder), "ana", EMPTY)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: {WHY}; --force accepts the filter\n"
    assert not folder.exists()
    done = run("subscriptions", "add", str(folder), "ana", EMPTY, "--force", "--json")
    assert (done.code, notes(done)) == (0, [f"note: {WHY}"])
    assert done.records == [{"version": 1, "id": "ana", "filter": EMPTY, "note": WHY}]
    done = run("subscriptions", "add", str(folder), "ben", FULL)
    assert (done.code, notes(done)) == (0, [f"note: {ALL}"])
    done = run("subscriptions", "add", str(folder), "cy", "TRUE", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.records == [{"version": 3, "id": "cy", "filter": "TRUE"}]


def test_add_knows_the_declared_types(run: Run, tmp_path: Path) -> None:
    words = ("subscriptions", "add", str(tmp_path / "log"), "ana", "n > 3 AND n < 4")
    done = run(*words, "--types", "n=integer")
    assert done.code == 2
    assert "no value of n, an integer, is both > 3 and < 4; --force accepts the filter" in done.err
    assert run(*words, "--types", "n=double").code == 0


def test_load_lists_ids_as_they_are_stored(run: Run, write: Write, tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "log")
    log.put("x", "a = 1")
    file = write("f.csv", f"id,filter\n7,{EMPTY}\n8,price > 1\n")
    [found] = run("subscriptions", "load", str(tmp_path / "log"), file, "--json").records
    assert (found["subscriptions"], found["never"]) == (2, ["7"])


def test_a_graph_marks_the_node(run: Run, file: str) -> None:
    marked = {tuple(one["ids"]): one["never"] for one in run("graph", file, "--json").records}
    assert marked == {(1,): False, (3,): False, (4,): True}


def test_a_snapshot_counts_them(run: Run, file: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "snapshot")
    [made] = run("snapshot", "build", file, folder, "--json").records
    assert (made["subscriptions"], made["never"]) == (3, 1)
    assert "3; 1 of them can never match" in run("snapshot", "show", folder).out
    [shown] = run("snapshot", "show", folder, "--json").records
    assert shown["never"] == 1


@pytest.fixture
def past(write: Write, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table; backtests end before Spark would start."""

    def stop(_master: str) -> None:
        raise BadInput("stopped here")

    monkeypatch.setattr(backtest_tables, "open_session", stop)
    return write("past.jsonl", '{"price": 3}\n')


@pytest.mark.parametrize(("texts", "where"), [((EMPTY,), ""), (("price > 1", EMPTY), "filter 2: ")])
def test_backtest_refuses_what_is_typed(
    run: Run, past: str, texts: tuple[str, ...], where: str
) -> None:
    done = run("backtest", *texts, "--on", past)
    assert (done.code, done.err) == (2, f"error: {where}{WHY}; --force accepts the filter\n")


@pytest.mark.parametrize("words", [(EMPTY, "--force"), ("--filters", "FILE")])
def test_backtest_takes_files_and_force(
    run: Run, past: str, file: str, words: tuple[str, ...]
) -> None:
    done = run("backtest", *(file if word == "FILE" else word for word in words), "--on", past)
    assert notes(done)[0].endswith(WHY)
    assert done.err.endswith("error: stopped here\n")


def test_subscribe_refuses_without_a_router(run: Run) -> None:
    done = run("subscribe", EMPTY, "--router", "tidings://127.0.0.1:1")
    assert (done.code, done.err) == (2, f"error: {WHY}; --force accepts the filter\n")
    done = run("subscribe", EMPTY, "--force", "--router", "tidings://127.0.0.1:1")
    assert notes(done)[0] == f"note: {WHY}"
    assert "can't connect" in done.err
