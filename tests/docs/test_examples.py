"""The scripts among the examples run, and say what they show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
        "with another key: refused, it was changed, or sealed with another key",
        "a payload that was changed: refused, it was changed, or sealed with another key",
        "one with another number: refused, it was changed, or sealed with another key",
        "one that came before: refused, it was handed out before",
        "that of another notification: refused, it belongs to another notification",
    ]
