"""No name that is imported only for type checkers is used at run time.

Such a use is a NameError, but only when its line runs. Ruff's TC004 looks for them too; this test
shares no code with it, and looks at type aliases and nested functions as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "tools", "benchmarks", "docs/examples")
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def misused_names(source: str) -> list[tuple[int, str]]:
    """The line and the name of each use at run time of a name that only type checkers import."""
    if "TYPE_CHECKING" not in source:  # parsing takes long
        return []
    tree = ast.parse(source)
    only = {name for body in _type_blocks(tree) for one in body for name in _imported(one)}
    return sorted(_uses(tree, frozenset(only))) if only else []


def _type_blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for one in ast.walk(tree):
        if _is_type_block(one):
            assert isinstance(one, ast.If)
            yield one.body


def _is_type_block(one: ast.AST) -> bool:
    return isinstance(one, ast.If) and ast.unparse(one.test).rpartition(".")[2] == "TYPE_CHECKING"


def _imported(one: ast.AST) -> Iterator[str]:
    for node in ast.walk(one):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0]


def _uses(node: ast.AST, only: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Uses of the names `only` below a node. Annotations are never evaluated."""
    if _is_type_block(node):
        assert isinstance(node, ast.If)
        for one in node.orelse:
            yield from _uses(one, only)
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in only:
        yield node.lineno, node.id
    inside = only - _bound(node) if isinstance(node, Function) else only
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _uses(child, inside if field == "body" else only)


def _bound(function: Function) -> set[str]:
    """The names that a function binds itself, so that they are not those of the module."""
    body = function.body if isinstance(function.body, list) else [function.body]
    found = {name for one in body for name in _imported(one) if not _is_type_block(one)}
    for one in (node for statement in body for node in ast.walk(statement)):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found.add(one.id)
    given = function.args
    for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if arg is not None:
            found.add(arg.arg)
    return found


def _files() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def test_no_name_is_misused() -> None:
    files = _files()
    assert len(files) > 300
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name} is imported only under TYPE_CHECKING"
        for path in files
        for line, name in misused_names(path.read_text("utf-8"))
    ]
    assert found == []


HEAD = """
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from a.b import Break, Lost as Gone
"""


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("def f(x: Break | Gone) -> Break: ...", []),
        ("def f(x: object) -> bool: return isinstance(x, Break)", ["Break"]),
        ("def f(x: object) -> bool:\n    from a.b import Break\n    return Break is x", []),
        ("Either = Break | Gone", ["Break", "Gone"]),
        ("one: Break = None", []),
        ("one = Gone(1)", ["Gone"]),
        ("class A(Gone):\n    x: Break", ["Gone"]),
        ("def f(x: int = Gone.most) -> None: ...", ["Gone"]),
        ("f = lambda Break: Break", []),
        ("async def f():\n    def g(x): return Break(x)\n    return g", ["Break"]),
        ("@Break\ndef f() -> None: ...", ["Break"]),
    ],
)
def test_what_counts_as_misused(body: str, names: list[str]) -> None:
    assert [name for _, name in misused_names(HEAD + body)] == names


def test_a_block_with_another_branch() -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\nelse:\n    "
    assert misused_names(source + "pandas = None\n") == []
    assert misused_names(source + "x = pandas.NA\n") == [(5, "pandas")]
