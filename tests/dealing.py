"""How `make test` deals the tests out to its processes.

One by one, each to the process that is free, the long ones first: most take milliseconds, some half
a minute, and one of those at the end would leave the other processes without work. But the last
process takes the short ones first: they need a processor, while the long ones mostly wait, so the
processors are busy all the time. The tests that share the Spark session stay together and come
first of all, those of tests/spark in one process and the others in a second: to start a session and
warm its Java takes longer than many of them, so not each process should pay for it, and all in one
would end last. Files with a fixture for the whole module stay together too, in any process:
otherwise each process would make it again. One of them starts a Kafka broker.

xdist groups by marks (`--dist loadgroup`) only where pytest lets it rename tests; pytest 9.2 does
not. So what a test needs is read from its file.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScopeScheduling

HOME = Path(__file__).parents[1]
MODULE = 'scope="module"'
SESSION = frozenset({"spark", "shared"})  # the fixtures of tests/conftest.py that give the session
MANY = 4  # processes; of fewer, none can be spared for the short tests
IN_SPARK, ELSEWHERE = "spark", "spark elsewhere"  # the scopes of the tests with the session
STARTS = re.compile(r"\bsubprocess\b|\bprocesses\b|\bmark\.spark\b")


@cache
def tests_with_spark(file: str) -> frozenset[str]:
    """The tests of a file that take the Spark session, themselves or through fixtures."""
    tree = ast.parse(text_of(file))
    wanted = {one.name: _wants(one) for one in tree.body if isinstance(one, ast.FunctionDef)}
    marks = [one for one in tree.body if ast.unparse(one).startswith("pytestmark =")]
    if any(_strings(one) & SESSION for one in marks):
        return frozenset(wanted)
    found = set(SESSION)
    while more := {name for name, needs in wanted.items() if needs & found} - found:
        found |= more
    return frozenset(found)


def _wants(function: ast.FunctionDef) -> set[str]:
    """The fixtures that a test or a fixture names: its arguments, and those of its marks."""
    return {one.arg for one in function.args.args}.union(
        *(_strings(one) for one in function.decorator_list)
    )


def _strings(tree: ast.AST) -> set[str]:
    return {
        one.value
        for one in ast.walk(tree)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


@cache
def shares_fixture(file: str) -> bool:
    """Whether a file has a fixture that all of its tests share."""
    return MODULE in text_of(file)


@cache
def guess_length(file: str) -> int:
    """How long the tests of a file take, from 0 to 2: to start processes takes seconds, and a
    session of one's own half a minute."""
    if "/kills/" in file:
        return 2
    if not STARTS.search(text_of(file)):
        return 0
    return 2 if "/spark/" in file else 1


@cache
def text_of(file: str) -> str:
    path = HOME / file
    return path.read_text("utf-8") if path.exists() else ""


def scope_of(test: str) -> str:
    """The name of what a test stays together with: its own, if it stays together with nothing."""
    file, _, name = test.partition("::")
    if name.partition("[")[0] in tests_with_spark(file):
        return IN_SPARK if file.startswith("tests/spark/") else ELSEWHERE
    return file if shares_fixture(file) else test


class Dealing(LoadScopeScheduling):  # type: ignore[misc]  # it ships no types
    """What stays together is a scope, as xdist calls it; a scope of its own for most tests."""

    is_sorted = False

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if not self.is_sorted:
            self.is_sorted = True
            for name, _ in sorted(self.workqueue.items(), key=_place):
                self.workqueue.move_to_end(name)
        if len(self.nodes) >= MANY and node is self.nodes[-1]:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


def _place(scope: tuple[str, dict[str, bool]]) -> tuple[bool, int, int]:
    name, tests = scope
    return name not in (IN_SPARK, ELSEWHERE), -guess_length(name.partition("::")[0]), -len(tests)
