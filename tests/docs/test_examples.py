"""The scripts among the examples run, and say what they show."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("forked")

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def test_sealed_payloads() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "encrypted.py")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.stderr == ""
    lines = ended.stdout.splitlines()
    assert lines[0] == "the subscriber reads: we sell everything on Monday"
    assert lines[1].startswith("the journal holds ciphertext,")
    assert lines[2:] == [
        "another key: refused, it was changed, or sealed with another key",
        "a changed payload: refused, it was changed, or sealed with another key",
        "a changed number: refused, it was changed, or sealed with another key",
        "a repeated payload: refused, it was delivered before",
        "the payload of another notification: refused, it belongs to another notification",
    ]


# -- docs/network.md, "With certificates" --------------------------------------------------------

PAGE = EXAMPLES.parent / "network.md"


def blocks(language: str) -> list[str]:
    section = PAGE.read_text().split("\n### With certificates\n")[1].split("\n## ", maxsplit=1)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_the_certificates_of_the_page(tmp_path: Path) -> None:
    """What the page says, word for word, but for the ports and the token."""
    make, publish = blocks("bash")
    subprocess.run(["bash", "-ec", make], cwd=tmp_path, check=True, capture_output=True)
    root, edge = blocks("toml")
    token = (tmp_path / "desk.token").read_text().strip()
    (tmp_path / "root.toml").write_text(root.replace(":7400", ":0"))
    with running(tmp_path / "root.toml") as at_root:
        edge = edge.replace(":7401", ":0").replace(":7400", f":{at_root}").replace('"..."', token)
        (tmp_path / "edge.toml").touch(0o600)
        (tmp_path / "edge.toml").write_text(edge)
        with running(tmp_path / "edge.toml") as at_edge:
            programs = f'tidings() {{ "{sys.executable}" -m tidings "$@"; }}\n'
            command = programs + publish.replace(":7401", f":{at_edge}")
            told = subprocess.run(
                ["bash", "-ec", command],
                cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60,
            )  # fmt: skip
    assert (told.stdout, told.stderr) == ("published\n", "")


@contextlib.contextmanager
def running(file: Path) -> Iterator[int]:
    """A router, and the port at which it listens."""
    command = [sys.executable, "-m", "tidings", "router", "--config", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rsplit(":", 1)[1])
        finally:
            process.terminate()
