"""Our sessions start without any output of Java or Spark on the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.class_archive import PLAIN

from tidings.spark.session.java import java_home, quiet_home

START = """
from tidings.spark import local_session
spark = local_session("quiet")
assert spark.range(3).count() == 3
spark.stop()
"""


@pytest.mark.spark
def test_a_session_starts_without_noise(tmp_path: Path) -> None:
    # with the archive of classes, Java says nothing at all
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "SPARK_SUBMIT_OPTS": PLAIN}
    answer = subprocess.run(
        [sys.executable, "-c", START], env=environment, capture_output=True, text=True,
        check=False, timeout=240,
    )  # fmt: skip
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_a_quiet_home_is_found_again_and_is_optional(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_home()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    quiet = quiet_home(home)
    assert quiet_home(quiet) == quiet
    answer = subprocess.run(
        [quiet / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "incubator" not in answer.stderr + answer.stdout
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert quiet_home(home) == home
