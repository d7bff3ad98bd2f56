"""A reader finds what tests a module: tools/tests_of.py has an answer for each."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.tests_of import TOP, Imports, main

SOURCES = TOP / "src" / "tidings"


@pytest.fixture(scope="module")
def imports() -> Imports:
    return Imports()


def test_every_module_is_reached_by_a_test(imports: Imports) -> None:
    modules = [path for path in SOURCES.rglob("*.py") if not path.name.startswith("__")]
    assert [path for path in modules if not imports.tests_of(path)] == []


def test_the_nearest_test_comes_first(imports: Imports) -> None:
    found = imports.tests_of(SOURCES / "matching" / "segments" / "probe.py")
    assert found[0] == (1, TOP / "tests" / "matching" / "test_probe.py")


def test_a_module_that_no_test_imports_is_found(tmp_path: Path) -> None:
    package, tests = tmp_path / "src" / "tidings", tmp_path / "tests"
    for folder in (package / "room", tests):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "room" / "__init__.py").write_text("from tidings.room.used import one\n")
    (package / "room" / "used.py").write_text("one = 1\n")
    (package / "room" / "unused.py").write_text("two = 2\n")
    (tests / "test_one.py").write_text("from tidings.room import one\n")
    imports = Imports(tmp_path / "src", tests)
    assert imports.tests_of(package / "room" / "used.py") == [(1, tests / "test_one.py")]
    assert imports.tests_of(package / "room" / "unused.py") == []


def test_a_path_that_is_no_module(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matching/gone.py"]) == 2
    assert "found no module 'matching/gone.py', expected" in capsys.readouterr().out
