"""The peers of this repository: their descriptions, and the drivers that need nothing fetched."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from tests.studies.fake_peers import LIAR, LOOP, PEERS, add_loop, add_peer, shared_code

from tidings.studies import RECIPES, make_workload, match_counts
from tidings.studies.compare.peers import Pass, PeerReport, peers_folder, read_peers


def test_the_peers_of_this_repository() -> None:
    assert peers_folder() == PEERS
    peers = read_peers(PEERS)
    assert set(peers) == {
        "a-tree", "duckdb", "event-ruler", "lucene-monitor", "polars", "python-loop", "quamina",
        "tidings",
    }  # fmt: skip
    known = make_workload("prefix", 500, 1).filters.operators() | {"between"}
    systems: list[str] = []
    for name, peer in peers.items():
        assert set(peer.operators) <= known
        assert bool(peer.without) == (set(peer.operators) != known)
        systems += list(peer.variants) or [name]
    assert len(set(systems)) == len(systems)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_the_plain_loop_finds_the_right_matches(name: str, tmp_path: Path) -> None:
    workload = make_workload(name, 200, 100, seed=5)
    answer = ask(LOOP, [], workload.write(tmp_path))
    assert answer.filters == 200
    assert answer.events == 100
    assert answer.matches == match_counts(workload).sum()


@pytest.mark.parametrize("way", ["one", "json", "batch"])
def test_the_driver_of_tidings(way: str, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    workload = make_workload("flights", 200, 100, seed=5)
    answer = ask(PEERS / "tidings" / "driver.py", [way], workload.write(tmp_path))
    assert answer.matches == match_counts(workload).sum()


def ask(driver: Path, more: list[str], files: tuple[Path, Path]) -> Pass:
    command = [sys.executable, str(driver), *more, *map(str, files), "0.1", "30"]
    ran = subprocess.run(
        command, input=b"\n", capture_output=True, check=False,
        env={**os.environ, **shared_code()},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr.decode()
    return msgspec.json.decode(ran.stdout, type=Pass)


@pytest.mark.parametrize("name", ["mixed", "flights", "ranges"])
def test_bounds_hold_what_the_tests_say(name: str, tmp_path: Path) -> None:
    bounds = load(PEERS / "shared" / "bounds.py")
    workload = make_workload(name, 150, 80, seed=5)
    filters, _ = workload.write(tmp_path)
    rows = [json.loads(line) for line in filters.read_bytes().splitlines()]
    made = bounds.Bounds(rows)
    left, right = made.event_rows(workload.event_lines()), made.filter_rows(rows)
    found = 0
    for event in range(80):
        for number in range(150):
            found += all(
                left[f"{name}_low"][event] >= right[f"{name}_low"][number]
                and left[f"{name}_high"][event] <= right[f"{name}_high"][number]
                for name in made.kinds
            )
    assert found == match_counts(workload).sum()


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "peers"
    add_loop(folder, "tidings")
    run = load(PEERS / "run.py")
    quick = ["--rounds", "1", "--warm-up", "0", "--limit", "5", "--filters", "50", "--events", "60"]
    assert run.main(["--list"], folder) == 0
    assert capsys.readouterr().out == "tidings: tidings\n"
    assert run.main([*quick, "--workload", "equality"], folder) == 0
    assert "equality: 50 filters, 60 events" in capsys.readouterr().out
    assert run.main([*quick, "--json"], folder) == 0
    report = msgspec.json.decode(capsys.readouterr().out, type=PeerReport)
    assert [one.system for one in report.outcomes] == ["tidings"]
    add_peer(folder, "liar", script=LIAR)
    assert run.main(quick, folder) == 1
    assert "liar: wrong: 1,000,000 matches in 3 events" in capsys.readouterr().out
    assert run.main([*quick, "--peers", "rete"], folder) == 2
    assert "error: there is no peer 'rete'" in capsys.readouterr().err
