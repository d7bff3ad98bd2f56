"""Only the owner can read what processes write; processes read their tokens again."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.broker.processes import Process, write_secret
from tests.waiting import wait_for

from tidings.network.agent import Refusal, connect

ROOT = """
name = "root"
listen = "127.0.0.1:0"
journal = "new/folder/journal.db"
[tokens]
ann = "*"
bob = "bob"
"""


@pytest.fixture(autouse=True)
def _usual_umask() -> None:
    os.umask(0o022)


def test_a_journal_is_for_its_owner(tmp_path: Path) -> None:
    root = Process(tmp_path, "root", ROOT)
    try:

        async def work() -> None:
            async with connect(f"tidings://127.0.0.1:{root.port}", token="ann") as agent:
                await agent.publish({"n": 1}, b"secret payload")

        asyncio.run(work())
        found = {one: stat.S_IMODE(one.stat().st_mode) for one in (tmp_path / "new").rglob("*")}
        assert len(found) > 1
        assert {one: mode for one, mode in found.items() if mode & 0o077} == {}
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    finally:
        root.stop()


def _refused(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tidings", *words], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    return done.stderr


@pytest.mark.parametrize(
    "others", [0o644, *(pytest.param(mode, marks=pytest.mark.slow) for mode in (0o640, 0o606))]
)
def test_files_with_tokens_that_others_can_read(tmp_path: Path, others: int) -> None:
    path = write_secret(tmp_path / "root.toml", ROOT)
    tree = write_secret(tmp_path / "tree.toml", "[tokens]\nann = '*'\n")
    token = write_secret(tmp_path / "token", "ann")
    for one in (path, tree, token):
        one.chmod(others)
    mended = f"(its mode is {others:04o}); expected 0600: chmod 600 "
    assert f"{mended}{path}\n" in _refused("router", "--config", str(path))
    assert f"{mended}{tree}\n" in _refused("up", str(tree))
    assert f"{mended}{token}\n" in _refused("publish", "{}", "--token-file", str(token))
    assert f"{mended}{token}\n" in _refused("subscribe", "n > 0", "--token-file", str(token))
    assert f"{mended}{token}\n" in _refused("top", "--once", "--token-file", str(token))


def _said(process: Process, text: str, times: int = 1) -> None:
    heard = wait_for(lambda: process.log().count(text) >= times)
    assert heard, f"it did not say {text!r}: {process.log()}"


def test_tokens_are_read_again(tmp_path: Path) -> None:
    root = Process(tmp_path, "root", ROOT)
    path, at = tmp_path / "root.toml", f"tidings://127.0.0.1:{root.port}"

    async def come(token: str, name: str | None = None) -> None:
        async with connect(at, token=token, name=name) as agent:
            await agent.publish({"n": 1}, b"")

    async def work() -> None:
        async with connect(at, token="ann") as ann, connect(at, token="bob", name="bob") as bob:
            await ann.publish({"n": 1}, b"")
            write_secret(path, ROOT.replace('ann = "*"', 'eve = "*"'))
            root.signal(signal.SIGHUP)
            await asyncio.to_thread(_said, root, "the tokens were read again, and 1 link ended")
            await bob.publish({"n": 2}, b"")  # its link is still there
            with pytest.raises(TimeoutError):  # it tries again and again
                async with asyncio.timeout(3):
                    await ann.publish({"n": 3}, b"")
        await come("eve")
        with pytest.raises(Refusal, match="not known here"):
            await come("ann")
        for bad, sentence in (
            ("[tokens", "is not TOML"),
            ('name = "root"', "listen: the setting is missing; add it"),
            (
                ROOT.partition("[tokens]")[0],
                "found no [tokens], but there were some when the node was started",
            ),
        ):
            write_secret(path, bad)
            root.signal(signal.SIGHUP)
            await asyncio.to_thread(_said, root, sentence)
        write_secret(path, ROOT)
        path.chmod(0o644)
        root.signal(signal.SIGHUP)
        await asyncio.to_thread(_said, root, "chmod 600")
        await come("eve")  # those of before
        assert root.log().count("the tokens are unchanged: ") >= 3

    try:
        asyncio.run(work())
    finally:
        assert root.stop() == 0
