"""The Python of the pages that use Spark, in the session of the run: a start takes many seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.test_docs import ON_SPARK, TOP, page_of, problems_of_python


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("path", ON_SPARK, ids=lambda path: str(path.relative_to(TOP)))
def test_python_of_a_page(path: Path) -> None:
    problems = problems_of_python(page_of(path))
    assert not problems, "\n".join(problems)


def test_pages_use_spark() -> None:
    assert ON_SPARK
