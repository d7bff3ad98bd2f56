"""`tidings channel create`, `declare` and `show`: what they print, refuse and leave behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Write

from tidings.store import ChangeLog


def test_create_declare_show(run: Run, tmp_path: Path) -> None:
    folder = str(tmp_path / "orders")
    made = run("channel", "create", folder, "--types", "id=integer, user.city=string")
    assert (made.code, made.out) == (0, f"version 0: {folder} declares 2 attributes, extra keep\n")
    assert run("subscriptions", "add", folder, "ana", "user.city = 'Bern' AND id > 1").code == 0
    told = run("channel", "declare", folder, "--types", "user.age=integer, note=string")
    assert told.out == f"version 2: {folder} declares 3 attributes, extra keep\n"
    [found] = run("channel", "show", folder, "--json").records
    types = {"id": "integer", "user": "struct<age: integer, city: string>", "note": "string"}
    assert found == {
        "folder": folder, "version": 2, "declared": 2, "kind": "content", "extra": "keep",
        "attributes": types, "subscriptions": 1, "owner": None,
    }  # fmt: skip
    [before] = run("channel", "show", folder, "--at", "1", "--json").records
    assert before["attributes"] == {"id": "integer", "user": "struct<city: string>"}
    assert "user        struct<age: integer, city: string>" in run("channel", "show", folder).out
    assert run("channel", "declare", folder, "--drop", "note", "--extra", "refuse").code == 0
    rows = run("subscriptions", "log", folder).out
    assert "declared 3 attributes" in rows
    *_, last = run("subscriptions", "log", folder, "--json").records
    assert last == {
        "version": 3, "attributes": {"id": "integer", "user": types["user"]}, "extra": "refuse",
    }  # fmt: skip
    log = ChangeLog(folder)
    assert log.own()
    try:
        [found] = run("channel", "show", folder, "--json").records
        assert found["owner"] == os.getpid()
        assert run("channel", "declare", folder, "--types", "z=date").code == 0
    finally:
        log.close()
    assert log.last_declaration.version == 4


def test_a_channel_that_declares_nothing(run: Run, tmp_path: Path) -> None:
    folder = str(tmp_path / "open")
    assert run("channel", "create", folder).out == f"version 0: {folder} declares nothing\n"
    assert run("subscriptions", "add", folder, "a", "x > 1").code == 0
    assert "nothing: filters may test every attribute" in run("channel", "show", folder).out
    refused = run("channel", "declare", folder, "--types", "y=integer")
    assert (refused.code, "there is no attribute 'x'" in refused.err) == (2, True)
    told = run("channel", "declare", folder, "--types", "x=integer", "--extra", "open")
    assert told.code == 0
    assert [*ChangeLog(folder).subscriptions().values()] == [("x > 1", 1)]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("create", "FOLDER"), "found a channel here; change it with `tidings channel declare`"),
        (("create", "FULL"), "found other files, expected an empty folder"),
        (("create", "NEW", "--extra", "keep"), "found --extra without --types, expected both"),
        (("declare", "FOLDER"), "found nothing to change, expected --types, --drop or --extra"),
        (("declare", "FOLDER", "--drop", "y"), "--drop y: the channel does not declare this"),
        (("declare", "FOLDER", "--types", "x=double"), "'x' is integer and would become double"),
        (("declare", "NEW", "--types", "x=double"), "found no channel here; create one"),
        (("show", "tidings://127.0.0.1:1"), "found an address, expected the folder of the channel"),
        (("show", "FILE"), "the pipeline names no folder of a channel, expected a pipeline"),
    ],
)
def test_what_is_refused(
    run: Run, write: Write, tmp_path: Path, args: tuple[str, ...], sentence: str
) -> None:
    folder, full = tmp_path / "c", tmp_path / "full"
    assert run("channel", "create", str(folder), "--types", "x=integer").code == 0
    ChangeLog(folder).put("a", "x > 1")
    full.mkdir()
    (full / "file").touch()
    file = write(
        "p.toml",
        'name = "n"\n[source]\nkind = "rate"\n[subscriptions]\n'
        'channel = "tidings://127.0.0.1:1"\n[outbox]\npath = "out"\n',
    )
    places = {"FOLDER": str(folder), "FULL": str(full), "NEW": str(tmp_path / "n"), "FILE": file}
    result = run("channel", *(places.get(one, one) for one in args))
    assert (result.code, result.err.count("\n")) == (2, 1), result.err
    assert sentence in result.err
    assert not (tmp_path / "n").exists()
    assert ChangeLog(folder).version == 1
