"""The comparison with peers: its protocol, with drivers that are made up for the tests."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
import pytest
from tests.studies.fake_peers import LIAR, LOOP, add_loop, add_peer, shared_code

from tidings.model import EnvironmentProblem
from tidings.studies import make_workload, match_counts, peer_table
from tidings.studies.compare.peers import (
    Outcome,
    Peer,
    PeerReport,
    PeerSettings,
    cache_folder,
    compare_peers,
    prepare,
    read_peers,
)
from tidings.studies.host.driver import Unavailable
from tidings.studies.result_tables import absent_lines

QUICK = PeerSettings(rounds=2, warm_up=0.05, limit=5, patience=30)

SLEEPER = "import time; time.sleep(60)"
CRASHER = "raise RuntimeError('no memory left')"
CHATTERER = "print('hello', flush=True); input()"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of peers in which the plain loop stands in for tidings."""
    made = tmp_path / "peers"
    add_loop(made, "tidings")
    return made


def outcomes(report: PeerReport) -> dict[str, Outcome]:
    return {one.system: one for one in report.outcomes}


def test_systems_take_turns_and_are_compared(folder: Path) -> None:
    add_loop(folder, "twin")
    notes: list[str] = []
    report = compare_peers("mixed", 100, 200, folder=folder, settings=QUICK, note=notes.append)
    assert [one.status for one in report.outcomes] == ["ok", "ok"]
    assert [note for note in notes if note.startswith("round")] == [
        "round 1 of 2: tidings", "round 1 of 2: twin",
        "round 2 of 2: tidings", "round 2 of 2: twin",
    ]  # fmt: skip
    expected = int(match_counts(make_workload("mixed", 100, 200)).sum())
    for one in report.outcomes:
        assert (one.events, one.matches, one.rounds) == (200, expected, 2)
        assert one.p50_us is not None
        assert one.p99_us is not None
        assert one.p50_us <= one.p99_us
    assert report.ratio("tidings", "tidings") == 1
    assert (report.ratio("twin", "tidings") or 0) > 0
    assert report.ratio("twin", "nobody") is None
    assert peer_table(report).row_count == 2
    assert absent_lines(report) == []
    assert msgspec.json.decode(msgspec.json.encode(report), type=PeerReport) == report


def test_peers_and_systems_can_be_chosen(folder: Path) -> None:
    run = ["{python}", str(LOOP)]
    both: dict[str, list[str]] = {"twin": [], "twin again": []}
    add_peer(folder, "twins", run=run, environment=shared_code(), variants=both)
    add_loop(folder, "other")
    settings = PeerSettings(rounds=1, warm_up=0, limit=5, patience=30)

    def ran(*chosen: str) -> list[str]:
        report = compare_peers("mixed", 5, 5, folder=folder, chosen=chosen, settings=settings)
        assert all(one.status == "ok" for one in report.outcomes)
        return [one.system for one in report.outcomes]

    assert ran() == ran("tidings") == ["tidings"]
    assert ran("twins") == ["tidings", "twin", "twin again"]
    assert ran("twin again", "other") == ["tidings", "other", "twin again"]


def test_a_peer_with_other_matches_is_wrong(folder: Path) -> None:
    add_peer(folder, "liar", script=LIAR)
    report = compare_peers("mixed", 20, 10, folder=folder, settings=QUICK)
    one = outcomes(report)["liar"]
    assert one.status == "wrong"
    assert one.note.startswith("1,000,000 matches in 3 events, expected ")
    assert report.ratio("liar", "tidings") is None
    assert peer_table(report).row_count == 1


def test_a_peer_that_is_too_slow_is_cut(folder: Path) -> None:
    add_peer(folder, "sleeper", script=SLEEPER)
    settings = PeerSettings(
        rounds=2, warm_up=0, limit=0.2, patience=-9
    )  # little more than a second
    report = compare_peers("equality", 20, 10, folder=folder, settings=settings)
    one = outcomes(report)["sleeper"]
    assert one.status == "cut"
    assert re.fullmatch(r"no answer within \d s", one.note)
    assert absent_lines(report) == [f"sleeper: cut: {one.note}"]


@pytest.mark.parametrize(
    ("script", "note"),
    [
        (CRASHER, "the driver failed: RuntimeError: no memory left"),
        (CHATTERER, "the driver failed: JSON is malformed"),
    ],
)
def test_a_driver_that_fails(folder: Path, script: str, note: str) -> None:
    add_peer(folder, "broken", script=script)
    one = outcomes(compare_peers("equality", 20, 10, folder=folder, settings=QUICK))["broken"]
    assert one.status == "failed"
    assert note in one.note


def test_a_pass_ends_when_its_time_is_up(folder: Path) -> None:
    settings = PeerSettings(rounds=1, warm_up=0, limit=0.05, patience=60)
    report = compare_peers("mixed", 2_000, 2_000, folder=folder, settings=settings)
    one = outcomes(report)["tidings"]
    assert one.status == "ok"
    assert 0 < one.events < 2_000


def test_skip_lines(folder: Path) -> None:
    none = [sys.executable, "-c", "pass"]
    add_peer(folder, "absent", run=none, needs=["no-such-program"])
    add_peer(folder, "narrow", run=none, operators=["="], without="it has no ranges")
    add_peer(folder, "silent", run=none, operators=["="])
    failing = "import sys; print('\\x1b[1mERROR: registry not reached'); sys.exit('and so on')"
    add_peer(folder, "unbuilt", run=none, build=[["{python}", "-c", failing]])
    add_peer(folder, "nowhere", run=none, build=[["{build}/no-such-file"]])
    notes: list[str] = []
    report = compare_peers("mixed", 20, 10, folder=folder, settings=QUICK, note=notes.append)
    expected = {
        "absent": "no-such-program is not on PATH",
        "narrow": "not measured on mixed: it has no ranges",
        "silent": "not measured on mixed: it can't express between",
        "unbuilt": "{python} failed: ERROR: registry not reached",
    }
    found = {one.system: one.note for one in report.outcomes if one.status == "skipped"}
    nowhere = found.pop("nowhere")
    assert nowhere.endswith("no-such-file can't be run: No such file or directory")
    assert found == expected
    assert all("\n" not in line for line in absent_lines(report))
    assert [note for note in notes if "narrow" in note] == [
        "narrow: skipped: not measured on mixed: it has no ranges"
    ]
    assert outcomes(report)["tidings"].status == "ok"


def test_a_peer_is_built_once_in_the_cache(folder: Path) -> None:
    write = "from pathlib import Path; Path('made').write_text('x'); print(Path.cwd())"
    add_peer(folder, "built", run=["x"], build=[["{python}", "-c", write]])
    peer = read_peers(folder)["built"]
    notes: list[str] = []
    place = prepare("built", peer, folder / "built", note=notes.append)
    assert place.parent == cache_folder()
    assert (place / "made").exists()
    assert not (folder / "built" / "made").exists()
    assert prepare("built", peer, folder / "built", note=notes.append) == place
    assert notes == ["building built"]
    (folder / "built" / "extra.txt").write_text("another version")
    assert prepare("built", peer, folder / "built") != place


def test_a_failed_build_leaves_nothing(folder: Path) -> None:
    add_peer(folder, "unbuilt", run=["x"], build=[["{python}", "-c", "raise SystemExit(3)"]])
    with pytest.raises(Unavailable, match="failed: it printed nothing"):
        prepare("unbuilt", read_peers(folder)["unbuilt"], folder / "unbuilt")
    assert list(cache_folder().iterdir()) == []


def test_peers_that_are_not_there(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="no peer 'rete', expected one of: tidings"):
        compare_peers("mixed", 1, 1, folder=folder, chosen=["rete"])
    with pytest.raises(EnvironmentProblem, match="no driver for tidings"):
        read_peers(tmp_path / "nothing")
    (folder / "odd").mkdir()
    (folder / "odd" / "peer.toml").write_text("about = 3")
    with pytest.raises(EnvironmentProblem, match=r"odd/peer\.toml can't be used: "):
        read_peers(folder)


def test_unknown_fields_of_a_peer_are_refused() -> None:
    fields = {"about": "x", "operators": [], "run": [], "varients": {}}
    with pytest.raises(msgspec.ValidationError, match="varients"):
        msgspec.convert(fields, Peer)
