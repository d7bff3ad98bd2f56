"""`tidings channel import`: what each older format becomes, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.archives import unpack
from tests.cli.conftest import Run

from tidings.store import ChangeLog, FileJournal
from tidings.store.groups import GroupLog

STORE = Path(__file__).parents[1] / "store"
TOLD = json.loads((STORE / "logs_before" / "told.json").read_text())


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(folder)): one.read_bytes()
        for one in folder.rglob("*") if one.is_file() and one.stat().st_size
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(TOLD))
def test_a_log_in_text(run: Run, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(STORE / "logs_before" / name, tmp_path / name))
    before = files_of(folder)
    lines = run("channel", "import", str(folder)).out.splitlines()
    found = dict(line.split(maxsplit=1) for line in lines[:-1])
    assert found["found"] == "a log in text"
    assert int(found["version"]) == TOLD[name]["version"]
    assert int(found["subscriptions"]) == len(TOLD[name]["subscriptions"])
    assert int(found["nodes"]) >= len({node for *_, node in TOLD[name]["subscriptions"]})
    assert found["notifications"] == "0 numbered"
    words = lines[-1].split()
    assert words[:2] == ["old", "files"]
    assert files_of(Path(words[2])) == before
    again = run("channel", "import", str(folder), "--json")
    assert again.records == [{
        "before": None, "version": TOLD[name]["version"], "nodes": int(found["nodes"]),
        "subscriptions": len(TOLD[name]["subscriptions"]), "notifications": 0, "copies": [],
    }]  # fmt: skip
    assert not run("channel", "import", str(folder)).out.count("old files")


def test_a_log_of_changes(run: Run, tmp_path: Path) -> None:
    unpack(STORE / "before_nulls.tar.gz", tmp_path)
    folder = tmp_path / "before_nulls" / "log"
    (found,) = run("channel", "import", str(folder), "--json").records
    assert found["before"] == "a log of changes"
    log = ChangeLog(folder)
    assert found["version"] == log.version > 0
    assert found["subscriptions"] == len(log.subscriptions()) > 0
    (aside,) = found["copies"]
    assert (Path(aside) / "changes").is_dir()


def test_journals(run: Run, tmp_path: Path) -> None:
    shutil.copy(STORE / "before" / "journal.db", tmp_path)
    path = tmp_path / "journal.db"
    old = path.read_bytes()
    (found,) = run("channel", "import", str(path), "--json").records
    assert found["before"] == "a journal in SQLite"
    assert (found["nodes"], found["subscriptions"], found["notifications"]) == (3, 0, 50)
    assert [Path(one).read_bytes() for one in found["copies"]] == [old]
    journal = FileJournal(path)
    assert len(journal.interests()) == 3
    journal.close()

    folder = Path(shutil.copytree(STORE / "before" / "journal-2", tmp_path / "journal-2"))
    (found,) = run("channel", "import", str(folder), "--json").records
    assert found["before"] == "a journal without versions"
    assert found["copies"] == []  # only a version is added
    journal = FileJournal(folder)
    assert found["nodes"] == len(journal.interests()) > 0
    journal.close()
    again = run("channel", "import", str(folder))
    assert "found          a channel in the current format; nothing to convert\n" in again.out


def test_what_is_refused(run: Run, tmp_path: Path) -> None:
    """In one sentence, and nothing is written."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no journal")
    shutil.copytree(STORE / "logs_before" / "plain", tmp_path / "damaged")
    first = min((tmp_path / "damaged").glob("*.log"))
    data = bytearray(first.read_bytes())
    data[100] ^= 1
    first.write_bytes(data)
    newer = tmp_path / "newer"
    ChangeLog(newer).put("a", "x = 1")
    (newer / "channel").write_text('{"format": 99, "identities": 2}')
    both = Path(shutil.copytree(newer, tmp_path / "both"))
    (both / "channel").write_text('{"format": 5, "identities": 2}')
    (both / "changes").mkdir()
    before = files_of(tmp_path)
    for name, reason in (
        ("none", "there is no such folder"),
        ("empty", "found neither a log of subscriptions nor a journal in this folder"),
        ("file", "found a file, expected a folder, or a journal in SQLite"),
        ("damaged", "is corrupt: its checksum differs; restore"),
        ("newer", "use the release of tidings that wrote the folder, or a later one"),
        ("both", "which an older version of tidings wrote next to the log; move this folder"),
    ):
        done = run("channel", "import", str(tmp_path / name))
        assert (done.code, done.out) == (2, ""), name
        assert reason in done.err, done.err
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1
    assert files_of(tmp_path) == before


def test_a_log_that_is_no_channel(run: Run, tmp_path: Path) -> None:
    """Such as that of the commits of an outbox: it has other entries."""
    log = GroupLog(tmp_path)
    walk = log.walk()
    list(walk)
    log.take_end(walk)
    log.append([b"\xffcommit of a batch"], 0)
    log.close()
    before = files_of(tmp_path)
    done = run("channel", "import", str(tmp_path))
    assert done.code == 2, done.out
    assert "has a log, but not that of a channel: found a record of kind" in done.err
    assert files_of(tmp_path) == before
