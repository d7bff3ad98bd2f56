"""Signed grants with `tidings up` and `tidings subscribe --grant`, as real processes: keys and
tokens change while the tree runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.broker.processes import write_secret
from tests.waiting import wait_for

from tidings.broker import Signer, load_tree
from tidings.broker.config import ConfigError

TREE = """
ticket_key = "tickets.key"
[router.edge]
[tokens]
tags = {{name = "tagger", may = ["subscribe", "preprocess"]}}
it = {{name = "milan", signed = true}}
writes = "writer"
[grants]
{line}
"""
AGENTS = """
name = "agents"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:1"
[tokens]
it = {{name = "milan", within = "region = 'EU'"}}
[tickets]
{line}
"""


def tidings(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidings", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def begun(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tidings", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def read_until(process: subprocess.Popen[str], what: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if what in line:
            return line
    raise AssertionError(f"it ended before {what!r}")


@pytest.mark.timeout(300)
def test_grants_of_a_tree(tmp_path: Path) -> None:
    line = tidings("key", str(tmp_path / "tagger")).stdout.strip()
    file = write_secret(tmp_path / "network.toml", TREE.format(line=line))
    tickets = tidings("key", str(tmp_path / "tickets.key")).stdout.strip()
    agents = write_secret(tmp_path / "agents.toml", AGENTS.format(line=tickets))
    kept, wanted = tmp_path / "milan.grant", "region = 'EU' AND n > 1"
    processes = []
    try:
        processes.append(up := begun("up", str(file)))
        ports = {}
        for name in ("root", "edge"):
            ports[name] = read_until(up, f"{name} listens on").strip().rpartition(":")[2]
        at = [f"tidings://127.0.0.1:{ports[name]}" for name in ("root", "edge")]
        tagger = begun(
            "preprocessor", at[0], "--name", "tagger", "--token", "tags",
            "--key", str(tmp_path / "tagger"), "--config", str(agents),
        )  # fmt: skip
        processes.append(tagger)
        read_until(tagger, "the preprocessor listens on")
        here = ("--router", at[1], "--name", "milan", "--token", "it")

        # without a grant it is refused; with --grant it asks for one, and keeps it
        refused = tidings("subscribe", wanted, *here, "--timeout", "30")
        assert refused.returncode == 2
        assert "may subscribe only with a signed grant here" in refused.stderr
        outside = tidings("subscribe", "n > 1", *here, "--grant", str(kept))
        assert outside.returncode == 2
        assert "AND (region = 'EU')" in outside.stderr
        assert not kept.exists()
        _told(here, kept, wanted, at[1], b"first")
        assert json.loads(kept.read_text())["filter"] == wanted
        assert kept.stat().st_mode & 0o777 == 0o600

        # the stored grant is enough without the preprocessor; it is for this filter only
        tagger.terminate()
        tagger.wait(120)
        _told(here, kept, wanted, at[1], b"second")
        other = tidings("subscribe", "n > 9", *here, "--grant", str(kept))
        assert other.returncode == 2
        assert f"found a grant for {wanted} (sql), expected one for n > 9 (sql)" in other.stderr

        # another key instead, while the tree runs: the grant is of no use, and then it is again
        _, public = Signer.generate()
        for text, code in ((f'new = "{public}"', 2), (line, 0)):
            write_secret(file, TREE.format(line=text))
            up.send_signal(signal.SIGHUP)
            read_until(up, "the tokens were read again")
            _ends_with(code, wanted, *here, "--grant", str(kept))

        # other rights of the token: no grant is needed any more
        write_secret(file, TREE.format(line=line).replace(", signed = true", ""))
        up.send_signal(signal.SIGHUP)
        read_until(up, "the tokens were read again")
        _ends_with(0, "n > 9", *here)
    finally:
        for one in reversed(processes):
            one.terminate()
            one.communicate(timeout=60)


def _ends_with(code: int, *arguments: str) -> None:
    """After a while, subscribing ends with an exit code: 0 if it is not refused."""
    last = wait_for(lambda: _if_it_ends_with(code, *arguments), 90)
    assert last, tidings("subscribe", *arguments, "--timeout", "10")


def _if_it_ends_with(code: int, *arguments: str) -> bool:
    return tidings("subscribe", *arguments, "--timeout", "10").returncode == code


def _told(here: tuple[str, ...], kept: Path, wanted: str, edge: str, payload: bytes) -> None:
    """A subscriber with a grant is told what is published."""
    one = begun("subscribe", wanted, *here, "--grant", str(kept), "--most", "1", "--timeout", "60")
    try:
        read_until(one, "subscribed to")
        published = tidings(
            "publish", '{"region": "EU", "n": 2}', "--payload", payload.decode(),
            "--router", edge, "--name", "writer", "--token", "writes",
        )  # fmt: skip
        assert published.returncode == 0, published.stderr
        assert read_until(one, payload.decode()) == payload.decode() + "\n"
        assert one.wait(60) == 0
    finally:
        one.kill()
        one.communicate()


def test_bad_keys_of_a_tree(tmp_path: Path) -> None:
    file = write_secret(tmp_path / "network.toml", '[grants]\ntagger = "ed25519:AAAA"\n')
    with pytest.raises(ConfigError, match="grants: tagger: found a key of 3 bytes"):
        load_tree(file)


def test_bad_ticket_keys_of_a_tree(tmp_path: Path) -> None:
    file = write_secret(tmp_path / "network.toml", 'ticket_key = "t.key"\n')
    with pytest.raises(ConfigError, match=r"found ticket_key and no \[tokens\]"):
        load_tree(file)
    write_secret(file, 'ticket_key = "t.key"\n[tokens]\na = "b"\n')
    with pytest.raises(ConfigError, match=r"t\.key"):
        load_tree(file)
    private, public = Signer.generate()
    write_secret(tmp_path / "t.key", public)
    with pytest.raises(ConfigError, match="ticket_key: found a key of the other kind"):
        load_tree(file)
    write_secret(tmp_path / "t.key", private)
    assert load_tree(file).ticket_key == (tmp_path / "t.key").absolute()


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"\0\1", "expected a grant that this command stored"), (b"{}", "missing required field")],
    ids=["bytes", "no fields"],
)
def test_bad_files_of_grants(tmp_path: Path, data: bytes, problem: str) -> None:
    from tidings.cli.common.command_errors import BadInput
    from tidings.cli.network.grant_file import _read

    (tmp_path / "x.grant").write_bytes(data)
    with pytest.raises(BadInput, match=problem):
        _read(tmp_path / "x.grant")
