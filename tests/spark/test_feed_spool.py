"""The spool of a stream of feeds: what it keeps through crashes, and whose folders it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.model import EnvironmentProblem
from tidings.spark.feeds import feed_spool
from tidings.spark.feeds.feed_documents import Entry
from tidings.spark.feeds.feed_spool import Spool, check_spool


def entry(name: str) -> Entry:
    return Entry("f", name, None, None, None, None, [], None, None)


def test_the_spool_keeps_what_was_fetched(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.add(spool.take_new("f", [entry("a"), entry("b")]))
    spool.add(spool.take_new("f", [entry("b"), entry("c")]))
    spool.close()
    spool = Spool(tmp_path)

    assert spool.last == 2
    assert [list(spool.read(n)) for n in (1, 2)] == [[entry("a"), entry("b")], [entry("c")]]
    assert spool.take_new("f", [entry("c"), entry("d")]) == [entry("d")]
    spool.commit(1)
    assert not (tmp_path / "0000000001.jsonl").exists()
    with pytest.raises(EnvironmentProblem, match="lacks file 1"):
        list(spool.read(1))
    spool.close()


def test_a_crash_before_the_state_was_written_is_as_if_nothing_was_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path)
    spool.add(spool.take_new("f", [entry("a")]))
    with monkeypatch.context() as patch:
        patch.setattr(Spool, "save", lambda _: None)
        spool.add(spool.take_new("f", [entry("b"), entry("c")]))
    spool.close()
    assert (tmp_path / "0000000002.jsonl").exists()
    spool = Spool(tmp_path)

    assert not (tmp_path / "0000000002.jsonl").exists()
    assert spool.last == 1
    assert spool.take_new("f", [entry("a"), entry("b")]) == [entry("b")]
    spool.close()


def test_what_is_seen_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_spool, "REMEMBERED", 3)
    spool = Spool(tmp_path)
    for number in range(10):
        assert len(spool.take_new("f", [entry(f"{number}"), entry(f"{number + 1}")])) <= 2

    assert len(spool.feed("f").seen) == 5
    assert spool.take_new("f", []) == []  # a feed that is empty for a while
    assert spool.take_new("f", [entry("9"), entry("10")]) == []
    spool.close()


def test_a_spool_has_one_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_spool, "_WAIT", 0.0)
    spool = Spool(tmp_path)

    with pytest.raises(EnvironmentProblem, match="used by another query"):
        Spool(tmp_path)
    spool.close()
    Spool(tmp_path).close()


def test_a_checkpoint_that_outlived_the_spool_goes_on(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.catch_up(7)
    spool.add([entry("a")])

    assert spool.last == 8
    with pytest.raises(EnvironmentProblem, match="do not belong together"):
        spool.catch_up(20)
    spool.close()


@pytest.mark.parametrize("name", ["20130101.jsonl", "2013-01-01.jsonl", "0000000001.jsonl"])
def test_a_folder_of_somebody_else_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")

    with pytest.raises(EnvironmentProblem, match=f"is not a spool, but it contains {name}: use"):
        Spool(tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "precious")]


def test_files_of_other_names_stay(tmp_path: Path) -> None:
    Spool(tmp_path).close()
    names = {"20130101.jsonl", "2013-01-01.jsonl", "00000000001.jsonl", "1.jsonl", "notes"}
    for name in (*names, "0000000001.jsonl"):
        (tmp_path / name).write_text("x")
    Spool(tmp_path).close()

    assert {path.name for path in tmp_path.iterdir()} == names | {"lock", "state.json"}


def test_a_crash_while_the_spool_was_made(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / ".state.json.new").write_text("{")
    spool = Spool(tmp_path)

    assert spool.last == 0
    spool.close()


@pytest.mark.parametrize(
    "state",
    [
        b"", b"{}", b"[" * 100_000, b"\xff\xfe{}", b'{"last":"x"}', b'{"jobs": 3}',
        b'{"last":1,"committed":0,"feeds":{"\xff":{}}}', b'{"last":-1,"committed":0,"feeds":{}}',
    ],
)  # fmt: skip
def test_a_state_that_is_none(tmp_path: Path, state: bytes) -> None:
    (tmp_path / "state.json").write_bytes(state)
    (tmp_path / "0000000001.jsonl").write_text("precious")

    with pytest.raises(EnvironmentProblem, match=r"state\.json is not the state of a spool: "):
        Spool(tmp_path)
    assert (tmp_path / "0000000001.jsonl").exists()


@pytest.mark.parametrize("line", [b'["f","i"', b"\xff", b'["\xff"]', b"[" * 100_000, b"{}"])
def test_a_line_that_is_damaged_is_named(tmp_path: Path, line: bytes) -> None:
    spool = Spool(tmp_path)
    spool.add([entry("a")])
    file = tmp_path / "0000000001.jsonl"
    file.write_bytes(file.read_bytes() + line + b"\n")

    with pytest.raises(EnvironmentProblem, match=f"{file}, line 2, is not an entry of a feed: "):
        list(spool.read(1))
    spool.close()


def test_a_spool_belongs_to_the_stream_that_began_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a")
    spool.add([entry("x")])
    spool.close()

    for other in ("b", ""):
        with pytest.raises(EnvironmentProblem, match="belongs to another checkpoint: give this"):
            check_spool(tmp_path, other)
        with pytest.raises(EnvironmentProblem, match="belongs to another checkpoint: give this"):
            Spool(tmp_path, other)
    check_spool(tmp_path, "a")
    spool = Spool(tmp_path, "a")
    assert list(spool.read(1)) == [entry("x")]
    spool.close()


def test_a_spool_that_nobody_claimed_is_taken_over(tmp_path: Path) -> None:
    check_spool(tmp_path / "none", "a")
    Spool(tmp_path).close()
    Spool(tmp_path, "a").close()

    with pytest.raises(EnvironmentProblem, match="belongs to another checkpoint"):
        Spool(tmp_path, "b")
