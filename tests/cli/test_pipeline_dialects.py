"""Filters of other dialects through a pipeline that runs: `subscriptions add` and `load` put them
into the log, before it starts and while it runs, and the outbox has what each dialect defines."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests import arrivals
from tests.cli.conftest import Run, Write
from tests.filters import eventbridge_oracle
from tests.waiting import wait_for

from tidings.spark.outbox import Outbox

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FILE = """
name = "events"
{extra}

[source]
kind = "files"
path = "in"
files_per_trigger = 1

[subscriptions]
log = "subscriptions"

[outbox]
path = "out"

[trigger]
every_seconds = 0.1

{columns}
"""
COLUMNS = """
[columns]
id = "integer"
source = "string"
ttl = "integer"
"detail.state" = "string"
"detail.ips" = "list<string>"
"""
PATTERNS: dict[str, Any] = {
    "running": {"source": ["aws.ec2"], "detail": {"state": ["running"]}},
    "null": {"detail": {"state": [None]}},
    "absent": {"detail": {"state": [{"exists": False}]}},
    "but": {"detail": {"state": [{"anything-but": "running"}]}},
    "net": {"detail": {"ips": [{"cidr": "10.0.0.0/8"}]}},
    "either": {"$or": [{"ttl": [{"numeric": [">", 5]}]}, {"source": [{"suffix": ".s3"}]}]},
}
EXPRESSIONS = {"has": "EXISTS ttl", "sum": "INT(ttl) + 1 = 4", "like": "source LIKE 'aws.%'"}
EVENTS: list[dict[str, Any]] = [
    {"id": 1, "source": "aws.ec2", "ttl": 3, "detail": {"state": "running", "ips": ["10.1.2.3"]}},
    {"id": 2, "source": "aws.s3", "detail": {"state": None}},
    {"id": 3, "source": "x", "ttl": 9, "detail": {"ips": ["11.0.0.1", "10.0.0.1"]}},
    {"id": 4, "ttl": None, "detail": {"state": "stopped", "ips": []}},
    {"id": 5},
]
LATE = {"detail": {"state": ["stopped"]}}  # subscribed to while the pipeline runs


def wanted(event: dict[str, Any]) -> set[str]:
    found = {name for name, one in PATTERNS.items() if eventbridge_oracle.matches(one, event)}
    found |= {"has"} if "ttl" in event else set()
    found |= {"sum"} if event.get("ttl") == 3 else set()
    return found | ({"like"} if event.get("source", "").startswith("aws.") else set())


def put(folder: Path, name: str, events: list[dict[str, Any]]) -> None:
    arrivals.put(folder, name, map(json.dumps, events))


def told(run: Run, file: str) -> dict[int, set[str]]:
    rows = run("outbox", "show", file, "--json").records
    return {
        row["id"] if "id" in row else json.loads(row["extra"])["id"]: set(row["subscriptions"])
        for row in rows
    }


@pytest.mark.parametrize("columns", [COLUMNS, ""], ids=["declared", "open"])
def test_patterns_and_expressions(
    run: Run, write: Write, spark: SparkSession, tmp_path: Path, columns: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("tidings.cli.pipelines.pipeline_command.GRACE", 60.0)
    (tmp_path / "in").mkdir()
    extra = "" if columns else 'extra = "open"'
    file = write("p.toml", FILE.format(columns=columns, extra=extra))
    lines = [json.dumps({"id": name, "filter": one}) for name, one in PATTERNS.items()]
    patterns = write("patterns.jsonl", "\n".join(lines))
    loaded = run("subscriptions", "load", file, patterns, "--dialect", "eventbridge")
    assert (loaded.code, loaded.err) == (0, "")
    for name, text in EXPRESSIONS.items():
        added = run("subscriptions", "add", file, name, text, "--dialect", "cesql")
        assert (added.code, added.err) == (0, "")
    put(tmp_path, "a.json", EVENTS)
    outbox = Outbox(tmp_path / "out")
    codes: list[int] = []

    def change() -> None:
        try:
            wait_for(lambda: outbox.last() is not None)
            words = ("late", json.dumps(LATE), "--dialect", "eventbridge")
            codes.append(run("subscriptions", "add", file, *words).code)
            put(tmp_path, "b.json", [event | {"id": event["id"] + 10} for event in EVENTS])
            wait_for(lambda: len(outbox.commits()) == 2)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    changing = threading.Thread(target=change)
    changing.start()
    done = run("pipeline", "run", file)
    changing.join()
    assert (done.code, done.err, codes) == (0, "", [0])
    expected = {event["id"]: wanted(event) for event in EVENTS}
    expected |= {event["id"] + 10: wanted(event) for event in EVENTS}
    expected[14].add("late")
    assert told(run, file) == {id_: names for id_, names in expected.items() if names}
    assert sum(map(len, expected.values())) > 20
