"""Logs in the previous format: they are read and rewritten at once, and stay complete if that is
interrupted.

`logs_before` was written by the code of the commit 98f113b, and `told.json` is what that code said
of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.store.cuts import Cut, cut_at

from tidings.store import ChangeLog, LogError
from tidings.store.before import conversion

BEFORE = Path(__file__).parent / "logs_before"
TOLD: dict[str, Any] = json.loads((BEFORE / "told.json").read_text())
NAMES = sorted(TOLD)


def copied(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(BEFORE / name, tmp_path / name))


def told(log: ChangeLog, oldest: int) -> dict[str, Any]:
    state = log.state()
    return {
        "version": log.version,
        "oldest": oldest,
        "changes": [
            [one.version, one.id, one.filter, one.node, key and key.hex()]
            for one, key in log.keyed_changes(oldest)
        ],
        "subscriptions": [[id_, *rest] for id_, rest in state.subscriptions.items()],
        "identities": {node: key.hex() for node, key in state.identities.items()},
    }


def expected(name: str) -> dict[str, Any]:
    """What the code of then said; a filter that nobody has, and whose text is gone, has no node."""
    said = dict(TOLD[name])
    there = {node for _, _, _, node, _ in said["changes"]} | {
        node for _, _, node in said["subscriptions"]
    }
    said["identities"] = {
        node: key for node, key in enumerate(said["identities"], 1) if node in there
    }
    return said


def old_files(folder: Path) -> dict[str, bytes]:
    """The files of the format before; segments of now begin with another word."""
    found = {path.name: path.read_bytes() for path in folder.glob("[0c]*.*") if path.is_file()}
    return {name: data for name, data in found.items() if data[:7] != b"tidings"}


@pytest.mark.parametrize("name", NAMES)
def test_what_was_there_is_there(tmp_path: Path, name: str) -> None:
    folder, oldest = copied(name, tmp_path), TOLD[name]["oldest"]
    files = old_files(folder)
    assert told(ChangeLog(folder), oldest) == expected(name)
    assert told(ChangeLog(folder), oldest) == expected(name)
    if oldest:
        with pytest.raises(
            LogError, match=f"dropped; the log has only the changes after version {oldest}"
        ):
            ChangeLog(folder).changes(0)
    assert not old_files(folder)
    (aside,) = (folder / "aside").iterdir()
    assert old_files(aside) == files
    log = ChangeLog(folder)
    id_ = 77 if name == "numbers" else "new"
    assert log.put(id_, "z = 1") == TOLD[name]["version"] + 1
    assert log.changes(TOLD[name]["version"])[0].node == TOLD[name]["version"] + 1
    first = TOLD[name]["subscriptions"][0]
    log.put(id_, first[1])
    assert log.subscriptions()[id_] == (first[1], first[2])


@pytest.mark.parametrize("name", NAMES)
def test_a_writer_rewrites_it_too(tmp_path: Path, name: str) -> None:
    folder, version = copied(name, tmp_path), TOLD[name]["version"]
    log = ChangeLog(folder)
    assert log.put(TOLD[name]["subscriptions"][0][0], "z = 1") == version + 1
    assert log.changes(version)[0].node == version + 1


@pytest.mark.parametrize("name", NAMES)
def test_interrupted_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for call in range(200):
        folder = copied(name, tmp_path / f"{call}")
        with monkeypatch.context() as patch:
            cut_at(call, patch)
            try:
                assert told(ChangeLog(folder), TOLD[name]["oldest"]) == expected(name)
                break
            except Cut:
                pass
        assert told(ChangeLog(folder), TOLD[name]["oldest"]) == expected(name)
        assert not old_files(folder)
        assert {path.name for path in folder.iterdir()} <= {
            "aside", "lock", "owner", "channel", "end", "checkpoint", "converting",
            "forgetting.lock",
            *(f"{number:020}.log" for number in range(1, 20)),
        }  # fmt: skip
    assert 12 < call < 199


def test_processes_that_open_it_at_once(tmp_path: Path) -> None:
    folder = copied("plain", tmp_path)
    program = (
        "import sys; from tidings.store import ChangeLog; log = ChangeLog(sys.argv[1]);"
        "print(log.version, log.put(sys.argv[2], 'z = 1'))"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", program, folder, id_], stdout=subprocess.PIPE)
        for id_ in ("one", "two", "three")
    ]
    said = sorted(int(one.communicate()[0].split()[1]) for one in both)
    assert said == [19, 20, 21]
    assert ChangeLog(folder).changes(0)[:18] == ChangeLog(folder).changes(0, 18)


def test_an_unfinished_end_is_left_out(tmp_path: Path) -> None:
    whole = (BEFORE / "plain" / "00000000000000000016.log").read_bytes()
    lines = whole.splitlines(keepends=True)
    for size in range(len(whole) - len(lines[-1]), len(whole) - 1):
        folder = copied("plain", tmp_path / f"{size}")
        (folder / "00000000000000000016.log").write_bytes(whole[:size])
        assert ChangeLog(folder).version == 17
        assert ChangeLog(folder).put("new", "a = 0") == 18


def test_what_is_damaged_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    for name in ("00000000000000000001.log", "00000000000000000008.log", "checkpoint.jsonl"):
        kind = "forgotten" if name == "checkpoint.jsonl" else "plain"
        data = (BEFORE / kind / name).read_bytes()
        for at in range(0, len(data), 11):
            folder = copied(kind, tmp_path / f"{name}-{at}")
            (folder / name).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            files = old_files(folder)
            for _ in range(2):
                with pytest.raises(
                    LogError, match=rf"damaged: '.*{name}', line \d+, .* repair it with"
                ):
                    _ = ChangeLog(folder).version
            with pytest.raises(LogError, match=name):
                ChangeLog(folder).put("new", "a = 0")
            assert old_files(folder) == files
    for name in ("00000000000000000001.log", "00000000000000000008.log"):
        folder = copied("plain", tmp_path / f"without-{name}")
        (folder / name).unlink()
        with pytest.raises(LogError, match=r"begins with version \d+, expected (at most )?\d"):
            _ = ChangeLog(folder).version


def test_a_log_that_an_older_tidings_wrote_afterwards_is_refused(tmp_path: Path) -> None:
    folder = copied("plain", tmp_path)
    assert ChangeLog(folder).version == 18
    (folder / "changes").mkdir()
    asks: list[Callable[[], int]] = [
        lambda: ChangeLog(folder).version,
        lambda: ChangeLog(folder).put("x", "a = 1"),
    ]
    for ask in asks:
        with pytest.raises(LogError, match=r"^found .*/changes, which an older version of tidings"):
            ask()


def test_one_who_may_only_read_is_told_who_rewrites_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied("plain", tmp_path)
    files = old_files(folder)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(conversion, "make_durable_folder", refuse)
    with pytest.raises(LogError) as caught:
        _ = ChangeLog(folder).version
    assert str(caught.value) == (
        f"the log '{folder}' was written by an older version of tidings and can't be rewritten: "
        f"Permission denied; ask its owner to run `tidings channel import {folder}` once"
    )
    assert old_files(folder) == files


def test_a_long_log_takes_few_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of its own for each change of a hundred thousand would take minutes."""
    folder, count = copied("plain", tmp_path), [0]
    sync = os.fdatasync

    def counted(handle: int) -> None:
        count[0] += 1
        sync(handle)

    monkeypatch.setattr(os, "fdatasync", counted)
    assert ChangeLog(folder).version == 18
    assert count == [1]
