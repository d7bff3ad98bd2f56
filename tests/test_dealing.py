"""Which tests stay together in one process, read from their files."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from tests import dealing
from xdist.scheduler import LoadScopeScheduling

FILE = """
@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> DataFrame: ...
def test_itself(spark: SparkSession) -> None: ...
def test_through_a_fixture(table: DataFrame) -> None: ...
@pytest.mark.usefixtures("shared")
def test_through_a_mark() -> None: ...
@pytest.mark.spark
def test_with_a_session_of_its_own() -> None: ...
def test_without() -> None: ...
"""


def named(found: frozenset[str]) -> set[str]:
    return {one for one in found if one.startswith("test_")}


def test_what_takes_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealing, "HOME", tmp_path)
    (tmp_path / "some.py").write_text(FILE)
    some = {"test_itself", "test_through_a_fixture", "test_through_a_mark"}
    assert named(dealing.tests_with_spark("some.py")) == some
    (tmp_path / "all.py").write_text('pytestmark = [pytest.mark.usefixtures("spark")]\n' + FILE)
    rest = {"test_with_a_session_of_its_own", "test_without"}
    assert named(dealing.tests_with_spark("all.py")) == some | rest


def test_the_session_is_in_two_processes() -> None:
    scope = dealing.scope_of
    within = scope("tests/spark/test_session.py::test_time_is_utc")
    assert within == scope("tests/spark/test_tagging.py::test_tags_are_what_spark_says[declared]")
    beside = scope("tests/filters/test_spark_elements.py::test_any_is_an_exists")
    assert beside == scope("tests/docs/test_spark_pages.py::test_python[README.md]") != within
    alone = "tests/filters/test_form.py::test_empty"
    assert scope(alone) == alone


def test_long_ones_come_first() -> None:
    lengths = [
        dealing.guess_length(file)
        for file in ("tests/spark/test_own_session.py", "tests/cli/test_up.py", "tests/none.py")
    ]
    assert lengths == [2, 1, 0]


@pytest.mark.parametrize(("nodes", "last"), [("abcd", "none"), ("abc", "test_up")])
def test_the_last_of_many_processes_takes_the_short_ones(
    monkeypatch: pytest.MonkeyPatch, nodes: str, last: str
) -> None:
    dealt: dict[str, str] = {}

    def assign(self: Any, node: str) -> None:
        dealt[node] = self.workqueue.popitem(last=False)[0]

    monkeypatch.setattr(LoadScopeScheduling, "_assign_work_unit", assign)
    monkeypatch.setattr(dealing.Dealing, "nodes", [*nodes])
    one = dealing.Dealing.__new__(dealing.Dealing)
    files = ("filters/none", "cli/test_up", "spark/test_own_session", "cli/test_endings")
    names = [*(f"tests/{file}.py::test" for file in files), dealing.IN_SPARK]
    one.workqueue = OrderedDict((name, {name: False}) for name in names)
    for node in nodes:
        one._assign_work_unit(node)
    assert dealt["a"] == dealing.IN_SPARK
    assert "own_session" in dealt["b"]
    assert last in dealt[nodes[-1]]
