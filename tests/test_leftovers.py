"""A test that fails and leaves things open does not make others fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import gc, socket

def test_that_leaves_a_socket():
    left = socket.create_server(("127.0.0.1", 0))
    round_about = [left]
    round_about.append(round_about)
    assert False

def test_that_comes_later():
    import sys
    sys.last_exc = sys.last_value = sys.last_traceback = None
    gc.collect()
"""


@pytest.mark.parametrize(
    ("plugins", "said"),
    [(("-p", "tests.leftovers"), "1 failed, 1 passed"), ((), "2 failed")],
)
def test_what_was_left_open_is_not_blamed_on_others(
    tmp_path: Path, plugins: tuple[str, ...], said: str
) -> None:
    (tmp_path / "test_one.py").write_text(TESTS)
    words = ["-p", "no:cacheprovider", "-W", "error", *plugins]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), *words, str(tmp_path)],
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert said in done.stdout.splitlines()[-1], done.stdout
