"""The Python and the commands of the pages that use Spark, in the session of the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.test_docs import (
    CONSOLE_ON_SPARK,
    PYTHON_ON_SPARK,
    TOP,
    page_of,
    problems_of_python,
    run_console,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize("path", PYTHON_ON_SPARK, ids=lambda path: str(path.relative_to(TOP)))
def test_python(path: Path) -> None:
    problems = problems_of_python(page_of(path))
    assert not problems, "\n".join(problems)


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("path", CONSOLE_ON_SPARK, ids=lambda path: str(path.relative_to(TOP)))
def test_console(path: Path, tmp_path: Path) -> None:
    run_console(path, tmp_path)


def test_pages_use_spark() -> None:
    assert PYTHON_ON_SPARK
    assert CONSOLE_ON_SPARK
