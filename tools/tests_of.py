"""List the tests that exercise a module, the nearest first.

    $ python tools/tests_of.py matching/segments/probe.py
    1  tests/matching/test_probe.py
    2  tests/matching/test_part.py

Tests are organised by behaviour, so a module may have no test named after it. This tool follows
imports instead: the number says how many imports lead from the test to the module. If a test
imports a name that a folder exports, that counts as an import of the module that defines the name.
If it imports a whole folder, that counts as an import of every module that the folder exports from.
A string that names a file in the same folder also counts, because tests start programs that way. A
test named after the module comes first.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
MOST = 10  # tests to show


class Imports:
    """The imports of all files below two folders, the sources and the tests."""

    def __init__(self, root: Path = TOP / "src", tests: Path = TOP / "tests") -> None:
        self._files = {_name(path, root): path for path in root.rglob("*.py")}
        self._exports = {
            name: dict(self._exported(path))
            for name, path in self._files.items()
            if path.name == "__init__.py"
        }
        importers: dict[Path, set[Path]] = {}
        for path in [*self._files.values(), *tests.rglob("*.py")]:
            if path.name != "__init__.py":
                for found in self._imported(path):
                    importers.setdefault(found, set()).add(path)
        self._importers = {path: sorted(found) for path, found in importers.items()}

    def tests_of(self, module: Path) -> list[tuple[int, Path]]:
        """The tests that import a module, with the number of steps, the nearest first."""
        steps = {module: 0}
        queue = deque([module])
        while queue:
            at = queue.popleft()
            for one in self._importers.get(at, ()):
                if one not in steps:
                    steps[one] = steps[at] + 1
                    queue.append(one)
        found = [(count, path) for path, count in steps.items() if path.name.startswith("test_")]

        def rank(one: tuple[int, Path]) -> tuple[bool, int, bool, Path]:
            count, test = one
            near = bool({*test.parts[len(TOP.parts) :]} & {*module.parts[len(TOP.parts) :]})
            return not (near and module.stem in test.stem), count, not near, test

        return sorted(found, key=rank)

    def _imported(self, path: Path) -> Iterator[Path]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in self._files:
                        yield self._files[alias.name]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                for alias in node.names:
                    yield from self._module_of(node.module, alias.name)
            elif isinstance(node, ast.JoinedStr) and ast.unparse(node).startswith("f'tidings."):
                yield from self._loaded_by(node)
            elif isinstance(node, ast.Constant) and str(node.value).endswith(".py"):
                beside = path.parent / str(node.value)
                if "\n" not in str(node.value) and beside.is_file():
                    yield beside

    def _loaded_by(self, name: ast.JoinedStr) -> Iterator[Path]:
        """The modules that match a module name built at run time, as for dialects."""
        parts = [one.value if isinstance(one, ast.Constant) else None for one in name.values]
        fits = re.compile("".join(r"\w+" if one is None else re.escape(str(one)) for one in parts))
        yield from (path for found, path in self._files.items() if fits.fullmatch(found))

    def _module_of(self, package: str, name: str) -> Iterator[Path]:
        """The file that defines a name, found through the exports of folders."""
        whole = f"{package}.{name}"
        if whole in self._exports:
            for module, one in self._exports[whole].values():
                yield from self._module_of(module, one)
        elif whole in self._files:
            yield self._files[whole]
        elif name in self._exports.get(package, {}):
            yield from self._module_of(*self._exports[package][name])
        elif package in self._files:
            yield self._files[package]
        elif package.startswith("tests."):  # helpers that tests share
            helper = TOP.joinpath(*package.split("."))
            yield from (one for one in (helper.with_suffix(".py"), helper / f"{name}.py")
                        if one.exists())  # fmt: skip

    def _exported(self, path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                for alias in node.names:
                    yield alias.asname or alias.name, (node.module, alias.name)


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(f"found {len(arguments)} arguments, expected one: the path of a module")
        return 2
    given = arguments[0]
    place = next((one for one in (TOP / given, TOP / "src" / "tidings" / given)
                  if one.is_file()), None)  # fmt: skip
    if place is None:
        print(f"found no module '{given}', expected a path such as matching/segments/access.py")
        return 2
    for count, path in Imports().tests_of(place)[:MOST]:
        print(f"{count}  {path.relative_to(TOP)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
