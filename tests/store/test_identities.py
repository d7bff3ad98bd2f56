"""Files written before null and absent were distinguished: identities are computed again, numbers
are kept.

`before_nulls.tar.gz` was written by the code of the commit 484e6a6: a log, a log that has forgotten
its first changes, a snapshot, a matcher, a journal, and in `told.json` what that code said of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.archives import unpack

from tidings import parse
from tidings.channel.interests import ArrayInterests
from tidings.matching import Matcher
from tidings.snapshots import Snapshot
from tidings.store import ChangeLog
from tidings.store.folder import CURRENT, Format, read_format
from tidings.store.journal import FileJournal

BEFORE = Path(__file__).parent / "before_nulls.tar.gz"
EVENTS: list[dict[str, Any]] = [
    {}, {"a": "x"}, {"a": "x", "b": None}, {"a": None, "b": "y"}, {"a": ["x"], "b": {"c": 1}},
    {"a": ["x", None], "b": {"c": None}}, {"a": [1], "b": "y"}, {"a": "x", "b": {"c": [None]}},
    {"source": "aws.ec2", "detail": {"state": None, "n": [2]}}, {"n": 6}, {"a": None, "n": 6},
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    unpack(BEFORE, tmp_path)
    return tmp_path / "before_nulls"


@pytest.fixture
def told(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return found


def test_patterns_have_other_identities_now_and_other_filters_do_not(told: dict[str, Any]) -> None:
    changed = {
        id_ for id_, text in told["texts"].items() if parse(text).key.hex() != told["keys"][id_]
    }
    assert changed == {"p0", "p1", "p2", "p3", "same"}


@pytest.mark.parametrize("name", ["log", "forgotten"])
def test_a_log_is_renewed_with_its_numbers(folder: Path, told: dict[str, Any], name: str) -> None:
    log = ChangeLog(folder / name)
    found = log.subscriptions()
    assert {id_: list(one) for id_, one in found.items()} == told[name]
    identities = log.state().identities
    assert {node for _, node in found.values()} <= identities.keys()
    for text, node in found.values():
        assert identities[node] == parse(text).key
    version = log.version
    for at, (text, node) in enumerate(list(found.values())):  # the same filter has the same node
        assert log.put(f"again {at}", text) == version + at + 1
        assert log.subscriptions()[f"again {at}"] == (text, node)
    assert log.put("new", "zzz = 1") == version + len(found) + 1
    assert log.subscriptions()["new"][1] == log.version


def test_changes_and_versions_stay(folder: Path, told: dict[str, Any]) -> None:
    log = ChangeLog(folder / "log")
    found = [[one.version, one.id, one.filter, one.node] for one in log.changes(0)]
    assert found == told["log_changes"]
    far = ChangeLog(folder / "forgotten")
    assert far.version == told["forgotten_version"]
    assert [one.version for one in far.changes(15)] == list(range(16, far.version + 1))


def test_it_happens_once(folder: Path) -> None:
    ChangeLog(folder / "log").subscriptions()
    assert read_format(folder / "log") == Format(CURRENT, 2)
    (aside,) = (folder / "log" / "aside").iterdir()
    before = sorted((folder / "log").iterdir())
    ChangeLog(folder / "log").subscriptions()
    assert sorted((folder / "log").iterdir()) == before
    assert list((folder / "log" / "aside").iterdir()) == [aside]


def test_a_snapshot_is_compiled_again_with_its_numbers(folder: Path, told: dict[str, Any]) -> None:
    opened = Snapshot.open(folder / "snapshot")
    assert opened.number == 3
    assert opened.nodes_by_id() == told["snapshot"]
    for node, key in zip(opened.numbers.tolist(), opened.keys, strict=True):
        assert key == opened.filter(node).key
    for event in EVENTS:
        places = opened.matcher.match(event)
        found = {id_ for place in places for id_ in opened.members(int(opened.numbers[place]))}  # type: ignore[call-overload]
        wanted = {id_ for id_, text in told["texts"].items() if parse(text).matches(event)}
        assert found == wanted, event
    opened.save(folder / "saved")
    assert Snapshot.open(folder / "saved").keys == opened.keys


def test_a_matcher_is_compiled_again(folder: Path, told: dict[str, Any]) -> None:
    opened = Matcher.open(folder / "matcher")
    for event in EVENTS:
        wanted = {id_ for id_, text in told["texts"].items() if parse(text).matches(event)}
        assert set(opened.match(event)) == wanted, event
    opened.remove("same")
    opened.add("more", "a = 'x'")
    assert {"more", "other"} <= set(opened.match({"a": "x"}))


def test_a_journal_keeps_the_numbers_of_its_nodes(folder: Path, told: dict[str, Any]) -> None:
    journal = FileJournal(folder / "root" / "journal.db")
    stored = journal.interests()
    journal.close()
    texts = dict(enumerate(told["texts"].values(), 11))
    assert stored == [(node, texts[node].encode()) for node in range(11, 17)]
    interests = ArrayInterests(interests=stored, last=16)
    for node, text in stored:
        assert interests.place(text).node == node
        assert interests.identity(node) == parse(text.decode()).key
    assert interests.place(b"zzz = 1").node == 17
