"""Processes of nodes load no pandas, but a class of an application that runs in them may."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.preprocessing.installed import install

CODE = """
import sys
from tidings.model import block_pandas
from tidings.preprocessing.kinds.application import version_of

block_pandas()
import pyarrow
assert pyarrow.array([1]).to_numpy().tolist() == [1]
assert pyarrow.array([1.5], pyarrow.float64()).to_pylist() == [1.5]
assert "pandas" not in sys.modules
sys.path.insert(0, sys.argv[1])
assert version_of("portfolios") == "7"
import pandas
assert pyarrow.array([1]).to_pandas().tolist() == [1]
print("done")
"""


def test_pandas_comes_with_the_class_of_an_application(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CODE, str(install(tmp_path, "7"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("done\n", "")
