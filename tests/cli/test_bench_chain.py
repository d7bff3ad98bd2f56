"""`tidings bench chain`: the whole chain over real processes, small; and what people see of it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from tests.cli.conftest import Run

from tidings.model import EnvironmentProblem
from tidings.spark import kafka_jars
from tidings.studies import chain
from tidings.studies.chain import ChainReport, bench_chain
from tidings.studies.chain.chain_report import AddedInterests
from tidings.studies.chain.chain_stages import Latencies, Seconds, StageRates
from tidings.studies.host.kafka_broker import broker_jars
from tidings.studies.host.machine_info import describe_machine

pytestmark = pytest.mark.usefixtures("forked")

SMALL = ["--agents", "12", "--rate", "60", "--seconds", "4", "--rows", "500"]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_everybody_is_told_once_although_processes_are_killed(run: Run) -> None:
    result = run("bench", "chain", *SMALL, "--kills", "2", "--json")
    assert result.code == 0, result.err
    (report,) = result.records
    assert (report["agents"], report["routers"]) == (12, 3)
    assert report["killed"] == {"driver": 1, "root": 1}
    for name in ("lost", "doubled", "strays", "altered", "misnumbered", "breaks", "out_of_order"):
        assert report[name] == 0, name
    assert report["delivered"] == report["expected"] + report["optional"] > report["rows"] > 900
    assert min(report["interests"].values()) >= 3
    assert report["published"] > report["preprocessed"] // 2 > 5
    added = report["added"]
    assert added["interests"] == 9
    assert added["in_next_batch"] == added["counted"]
    for stage in report["latencies"].values():
        assert 0 < stage["p50"] <= stage["p99"] <= stage["most"]
    assert report["rates"].pop("rows") == 500
    assert min(report["rates"].values()) > 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_rows_in_kafka(tmp_path: Path) -> None:
    """Each process is killed once, the broker too."""
    try:
        kafka_jars()
        broker_jars()
    except EnvironmentProblem as problem:
        if os.environ.get("TIDINGS_KAFKA") == "required":  # `make kafka`
            raise
        pytest.skip(str(problem))
    report = bench_chain(
        tmp_path, source="kafka", agents=12, rate=60, seconds=4, at_once=500, kills=9
    )
    assert report.is_right, report
    assert report.killed["broker"] == 1


def _report() -> ChainReport:
    one = Seconds(0.5, 0.9, 1.0, 10)
    return ChainReport(
        describe_machine(), "files", 1, 4, 2, 3, {"sql": 4}, 100, 3, 9, 8, 9.0, 50, 51, 0, 0,
        0, 0, 0, 0, 1, 0, 1, {"root": 1}, 0, AddedInterests(1, 1, 1),
        Latencies(one, one, one, one, None), StageRates(80, 1000.0, 2000.0, 300.0, None), [],
    )  # fmt: skip


def test_tables_and_the_verdict(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    good = _report()
    monkeypatch.setattr(chain, "bench_chain", lambda *_, **__: good)
    result = run("bench", "chain")
    assert result.code == 0
    for words in ("expected", "tagging: rows", "from the source to an agent", "next micro-batch",
                  "killed: 1 root"):  # fmt: skip
        assert words in result.out
    bad = msgspec.structs.replace(good, doubled=3, lost=1)
    monkeypatch.setattr(chain, "bench_chain", lambda *_, **__: bad)
    result = run("bench", "chain")
    assert result.code == 1
    assert "1 loss, 3 doubled" in result.err
    late = msgspec.structs.replace(good, added=AddedInterests(2, 2, 1))
    monkeypatch.setattr(chain, "bench_chain", lambda *_, **__: late)
    assert run("bench", "chain").code == 1


def test_a_bad_source_is_refused(run: Run) -> None:
    result = run("bench", "chain", "--source", "tape")
    assert result.code == 2
    assert "--source is 'tape', expected one of files, kafka" in result.err
