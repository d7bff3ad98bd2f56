"""`tidings outbox` and `tidings dead-letters`: what they show, follow and replay."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from tests.cli.conftest import Run
from tests.spark.test_outbox_reading import GRAINS, put, rows_of

from tidings.spark.outbox import Outbox
from tidings.spark.outbox.sealed_files import write_sealed
from tidings.spark.pipeline import dead_letters, load_settings
from tidings.spark.pipeline.dead_letters import Letter
from tidings.store import ChangeLog

FILE = """
name = "orders"
[source]
kind = "files"
path = "in"
format = "{format}"
[columns]
qty = "{qty}"
sku = "string"
[subscriptions]
log = "subscriptions"
[outbox]
path = "out"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "p.toml").write_text(FILE.format(format="json", qty="integer"))
    ChangeLog(tmp_path / "subscriptions").put("ana", "qty > 5")
    outbox = Outbox(tmp_path / "out")
    put(outbox, 0, {GRAINS[0]: rows_of(1, 3), GRAINS[1]: rows_of(4, 2)})
    put(outbox, 1, {})
    put(outbox, 2, {GRAINS[2]: rows_of(6, 30)})
    return tmp_path


def add_letters(folder: Path, batch: int, *letters: tuple[str, str]) -> None:
    import pyarrow.parquet as pq
    from tests.spark.outboxes import files_of

    from tidings.spark.outbox import Commit

    outbox = Outbox(folder / "out")
    home = outbox.dead_folder(batch, "good")
    home.mkdir(parents=True)
    reasons, raws = zip(*letters, strict=True)
    pq.write_table(pa.table({"reason": list(reasons), "raw": list(raws)}), home / "part.parquet")
    count = len(letters)
    files = files_of(outbox, batch, "good")
    outbox.commit(Commit(batch, "good", 1, 2, 0, 0, 0, count, {}, files))


def test_list(run: Run, folder: Path) -> None:
    for where in ("p.toml", "out"):
        answer = run("outbox", "list", str(folder / where))
        assert answer.code == 0
        assert [line.split()[0] for line in answer.out.splitlines()[2:]] == ["0", "1", "2"]
    records = run("outbox", "list", "--json", str(folder / "p.toml")).records
    assert [(one["batch"], one["matched"], len(one["files"])) for one in records] == [
        (0, 5, 2), (1, 0, 0), (2, 30, 1),
    ]  # fmt: skip


def test_show(run: Run, folder: Path) -> None:
    where = str(folder / "out")
    shown = run("outbox", "show", where)
    assert shown.code == 0
    assert "and more (--all shows them)" in shown.out
    records = run("outbox", "show", "--json", where).records
    assert [one["notification"] for one in records] == list(range(1, 36))
    assert records[0]["geo.zone"] == "z1"
    assert records[5]["batch"] == 2
    one = run("outbox", "show", "--json", "--batch", "0", "--subscription", "ben", where)
    assert [row["notification"] for row in one.records] == [1, 3, 5]
    few = run("outbox", "show", "--json", "--most", "4", where).records
    assert len(few) == 4
    assert run("outbox", "show", "--batch", "9", where).out == "no rows\n"


def test_no_outbox(run: Run, tmp_path: Path) -> None:
    answer = run("outbox", "list", str(tmp_path / "none"))
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "there is no outbox in" in answer.err


def test_follow_prints_rows_as_they_are_committed(folder: Path) -> None:
    command = [sys.executable, "-m", "tidings", "outbox", "follow", "--json", "--most", "2"]
    with subprocess.Popen(
        [*command, "--since", "3", "--subscription", "ben", str(folder / "out")],
        stdout=subprocess.PIPE, env=os.environ, text=True,
    ) as child:  # fmt: skip
        outbox = Outbox(folder / "out")
        put(outbox, 3, {GRAINS[0]: rows_of(36, 2)})
        assert child.stdout is not None
        first = json.loads(child.stdout.readline())
        put(outbox, 4, {GRAINS[0]: rows_of(38, 2)})
        second = json.loads(child.stdout.readline())
        assert child.wait(120) == 0
    assert [(one["notification"], one["batch"]) for one in (first, second)] == [(37, 3), (39, 4)]


def test_letters_are_listed_and_shown(run: Run, folder: Path) -> None:
    file = str(folder / "p.toml")
    assert run("dead-letters", "list", file).out == "no dead letters are waiting\n"
    add_letters(folder, 3, ("bad qty", '{"qty": "x"}'), ("bad qty", '{"qty": "y"}'))
    add_letters(folder, 4, ("not JSON", "{"), ("bad qty", '{"qty": "z"}'))
    found = run("dead-letters", "list", "--json", file).records
    assert found[0] == {
        "reason": "bad qty", "rows": 3, "first": 3, "last": 4, "raw": '{"qty": "x"}',
    }  # fmt: skip
    assert "3 to 4" in run("dead-letters", "list", file).out
    letters = run("dead-letters", "show", "--json", "--batch", "4", file).records
    assert [(one["batch"], one["row"], one["raw"]) for one in letters] == [
        (4, 0, "{"), (4, 1, '{"qty": "z"}'),
    ]  # fmt: skip


def test_corrected_letters_are_replayed_once(run: Run, folder: Path) -> None:
    file = str(folder / "p.toml")
    add_letters(folder, 3, ("a", '{"qty": "x"}'), ("b", '{"qty": 7, "sku": 1}'), ("c", "{"))
    nothing = run("dead-letters", "replay", file)
    assert nothing.code == 1
    assert "3 rows still refused; the first, row 0 of batch 3: column 'qty'" in nothing.err
    lines = run("dead-letters", "show", "--json", file).records
    lines[0]["raw"] = '{"qty": 8,\n "sku": "a\u2028b"}'
    corrected = folder / "corrected.jsonl"
    corrected.write_text("".join(json.dumps(one) + "\n" for one in lines[:1]))
    done = run("dead-letters", "replay", file, str(corrected))
    assert (done.code, done.err) == (0, "")
    (made,) = (folder / "in").iterdir()
    assert made.name.startswith("replayed-")
    assert [json.loads(line) for line in made.read_text().split("\n") if line] == [
        {"qty": 8, "sku": "a\u2028b"}
    ]
    again = run("dead-letters", "replay", file, str(corrected))
    assert (again.code, again.out) == (0, "no dead letters are waiting\n")
    assert list((folder / "in").iterdir()) == [made]
    assert [one["row"] for one in run("dead-letters", "show", "--json", file).records] == [1, 2]


def test_letters_fit_after_the_columns_were_corrected(run: Run, folder: Path) -> None:
    file = folder / "p.toml"
    add_letters(folder, 3, ("a", '{"qty": 1.5}'), ("b", '{"qty": 2.5}'))
    file.write_text(FILE.format(format="json", qty="double"))
    answer = run("dead-letters", "replay", "--json", str(file)).records
    assert (answer[0]["replayed"], answer[0]["refused"]) == (2, [])
    assert Path(answer[0]["file"]).read_text() == '{"qty": 1.5}\n{"qty": 2.5}\n'


def test_a_killed_replay_is_finished_by_the_next(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(folder / "p.toml")
    add_letters(folder, 3, ("a", '{"qty": 1}'))

    def dies(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:  # before the record: nothing was replayed
        patch.setattr(dead_letters, "write_sealed", dies)
        assert run("dead-letters", "replay", file).code == 2
    assert not [one for one in (folder / "in").iterdir() if not one.name.startswith(".")]

    def dies_after(path: Path, data: bytes) -> None:
        write_sealed(path, data)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:  # after it: the next one renames the file
        patch.setattr(dead_letters, "write_sealed", dies_after)
        assert run("dead-letters", "replay", file).code == 2
    assert run("dead-letters", "replay", file).code == 0
    (made,) = (folder / "in").iterdir()
    assert (made.name[0], made.read_text()) == ("r", '{"qty": 1}\n')


def test_rows_of_csv(run: Run, folder: Path) -> None:
    file = folder / "p.toml"
    file.write_text(FILE.format(format="csv", qty="integer"))
    add_letters(
        folder, 3, ("a", '{"qty":"x","sku":"b"}'), ("b", '7,"a ""quoted"", one"'), ("c", "1,2,3")
    )
    answer = run("dead-letters", "replay", "--json", str(file)).records[0]
    assert [one["row"] for one in answer["refused"]] == [0, 2]
    assert Path(answer["file"]).read_text() == 'qty,sku\n7,"a ""quoted"", one"\n'


def test_a_topic_is_not_written_to(run: Run, folder: Path) -> None:
    file = folder / "p.toml"
    text = FILE.format(format="json", qty="integer")
    kafka = text.replace('"files"', '"kafka"').replace('path = "in"', 'servers = "s"\ntopic = "t"')
    file.write_text(kafka.replace('format = "json"\n', ""))
    add_letters(folder, 3, ("a", '{"qty": 1}'))
    answer = run("dead-letters", "replay", str(file))
    assert answer.code == 2
    assert "write the letters to a file with --to" in answer.err
    out = folder / "rows.jsonl"
    assert run("dead-letters", "replay", str(file), "--to", str(out)).code == 0
    assert out.read_text() == '{"qty": 1}\n'
    assert len(run("dead-letters", "show", "--json", str(file)).records) == 1  # still waiting


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1: "),
        ('{"batch": 9, "row": 0, "raw": ""}', "there is no dead letter 0 of batch 9"),
        ('{"batch": 3, "row": 0}', "expected batch, row and raw"),
    ],
)
def test_corrected_lines_that_make_no_sense(run: Run, folder: Path, line: str, said: str) -> None:
    add_letters(folder, 3, ("a", "{}"))
    corrected = folder / "m.jsonl"
    corrected.write_text(line + "\n")
    answer = run("dead-letters", "replay", str(folder / "p.toml"), str(corrected))
    assert answer.code == 2
    assert said in answer.err
    assert not any((folder / "in").iterdir())


def test_replays_of_another_outbox_are_its_own(folder: Path) -> None:
    """A copy of an outbox keeps what was replayed."""
    add_letters(folder, 3, ("a", '{"qty": 1}'))
    loaded = load_settings(folder / "p.toml")
    found = dead_letters.replay_letters(loaded, [Letter(3, 0, "a", '{"qty": 1}')])
    assert found.replayed == 1
    shutil.copytree(folder / "out", folder / "copy")
    assert dead_letters.list_replayed(folder / "copy") == {(3, 0)}
    assert msgspec.json.encode(found)
