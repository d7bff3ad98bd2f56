"""What `tidings up` does about its nodes, without starting them."""

from __future__ import annotations

import asyncio
import signal
import tomllib
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tidings.broker.admission.permissions import TokenRights
from tidings.broker.trees import running_tree as module
from tidings.broker.trees.node_file import write_pairs
from tidings.broker.trees.node_process import ProcessState
from tidings.broker.trees.running_tree import RunningTree
from tidings.broker.trees.tree_file import load_tree

TREE = """
[tokens]
old = "*"
[router.west]
"""


def test_a_node_that_starts_while_tokens_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had read its file by then, and ran on with tokens that were revoked."""

    sent: list[tuple[object, int]] = []
    monkeypatch.setattr(module, "send_signal", lambda *one: sent.append(one))

    async def work() -> None:
        path = tmp_path / "network.toml"
        path.touch(0o600)
        path.write_text(TREE)
        running = RunningTree(load_tree(path), lambda _: None)
        running.tree.folder.mkdir()
        branch = running.root
        branch.process = cast(Any, "its process")
        file = running._write_config(branch)
        path.write_text(TREE.replace("old", "new"))
        running.renew(load_tree(path))
        assert "old" in file.read_text()
        branch.port = 7400
        running._note_listening(branch)
        assert sent == [("its process", signal.SIGHUP)]
        assert "old" not in file.read_text()
        running._note_listening(branch)  # another time, with the file as it is
        assert sent == [("its process", signal.SIGHUP)]

    asyncio.run(work())


def test_a_slow_start_is_not_held_against_a_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node was killed if it had started for longer than `patience`, and a check came between its
    first line and its first heartbeat."""

    async def work() -> None:
        (tmp_path / "network.toml").touch(0o600)
        tree = msgspec.structs.replace(load_tree(tmp_path / "network.toml"), patience=3.0)
        running = RunningTree(tree, said.append)
        branch, checks = running.root, iter(range(1, 100))
        branch.state, branch.port, branch.rights = ProcessState.STARTING, 7400, running._rights
        sent: list[tuple[object, int]] = []

        async def check(_: float) -> None:
            """Time passes: seconds 1 to 20 are the start, and there is no heartbeat at all."""
            if next(checks) == 20:
                running._note_listening(branch)

        monkeypatch.setattr(module, "_shorten", lambda _: None)
        monkeypatch.setattr("asyncio.sleep", check)
        monkeypatch.setattr(module, "send_signal", lambda *one: sent.append(one))
        await running._watch(branch, cast(Any, "its process"))
        assert sent == [("its process", signal.SIGKILL)]
        assert next(checks) == 24  # three seconds after the node listened, and not at once

    said: list[str] = []
    asyncio.run(work())
    assert said[1:] == ["root gave no sign of life for 3 s; killing it"]


def test_grants_are_written_as_they_were_read(tmp_path: Path) -> None:
    text = """[tokens]
a = {name = "b", may = ["subscribe"], within = "c = 'd\\"'"}
e = {name = "f", within = "g > 1"}
h = {name = "i"}
"""
    (tmp_path / "tree.toml").write_text(text)
    (tmp_path / "tree.toml").chmod(0o600)
    found = load_tree(tmp_path / "tree.toml").tokens
    assert found is not None
    written = "\n".join(["[tokens]", *write_pairs(found)])
    again = msgspec.convert(tomllib.loads(written)["tokens"], dict[str, str | TokenRights])
    assert again == found == {
        "a": TokenRights("b", frozenset({"subscribe"}), "c = 'd\"'"),
        "e": TokenRights("f", None, "g > 1"), "h": TokenRights("i"),
    }  # fmt: skip


def test_logs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LOG", 1000)
    log = tmp_path / "west.log"
    with log.open("ab") as out:
        for number in range(10):
            out.write(b"%d" % number * 400)
            out.flush()
            module._shorten(log)
            assert log.stat().st_size <= 1000
        out.write(b"the end")
    assert log.read_bytes() == b"9" * 400 + b"the end"
    old = tmp_path / "west.log.old"
    assert old.read_bytes() == b"".join(b"%d" % number * 400 for number in (6, 7, 8))
    assert old.stat().st_mode & 0o777 == 0o600
    assert module._last_line(log, 5000) == "9" * 400 + "the end"
