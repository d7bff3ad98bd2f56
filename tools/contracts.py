"""Our own contracts for import-linter. pyproject.toml lists them, and `make check` runs them.

The rule for exports:

    tidings/filters/__init__.py          exports names, for users and for other rooms
    tidings/filters/values/__init__.py   exports names, for other rooms
    tidings/filters/values/like.py       exports none: only tidings.filters imports it

A room is a folder right under `tidings`. Other rooms import only names that its `__init__.py`, or
that of a folder inside it, exports. So a room's files can be moved and renamed without a change
anywhere else.

The rule for calls: the core does no I/O and reads no clock. Imports alone can't show that: `open`
needs no import, and `pathlib` is imported for paths as well as for files. So the contract looks for
calls in the syntax tree of each module.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import grimp
from importlinter import Contract, ContractCheck, fields, output

# Names that do I/O or read a clock, as they are imported; `*` matches anything.
NAMES = (
    "open",
    "input",
    "print",
    "breakpoint",
    *("asyncio.*", "fcntl.*", "glob.*", "http.*", "mmap.*", "multiprocessing.*", "select.*"),
    *("shutil.*", "signal.*", "socket.*", "sqlite3.*", "ssl.*", "subprocess.*", "tempfile.*"),
    *("time.*", "urllib.*", "os.*", "io.open", "io.FileIO"),
    *("sys.stdin", "sys.stdout", "sys.stderr"),
    *("datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow"),
    "datetime.date.today",
    *("pathlib.Path.cwd", "pathlib.Path.home"),
    *("numpy.fromfile", "numpy.load", "numpy.memmap", "numpy.save", "numpy.savez*"),
    *("pyarrow.OSFile", "pyarrow.memory_map", "pyarrow.fs.*", "pyarrow.parquet.*"),
)
# Exceptions to NAMES, which only work on text or name a type.
HARMLESS = ("os.PathLike", "os.fsdecode", "os.fsencode", "os.fspath", "os.linesep", "os.sep")
# Methods of paths. The type of an object is not known here, so no other object of the core may have
# a method of such a name.
METHODS = frozenset(
    (
        *("chmod", "exists", "expanduser", "glob", "hardlink_to", "is_dir", "is_file"),
        *("is_symlink", "iterdir", "lchmod", "lstat", "mkdir", "open", "owner", "read_bytes"),
        *("read_text", "readlink", "rename", "replace", "resolve", "rglob", "rmdir", "samefile"),
        *("stat", "symlink_to", "touch", "unlink", "write_bytes", "write_text"),
    )
)


class ExportsContract(Contract):
    """Other rooms import only what folders export. `namespaces` lists modules that may be imported
    whole, as texts "module: reason". A module that no other room imports is an error."""

    type_name = "exports"

    namespaces: Any = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        reasons = dict(text.partition(": ")[::2] for text in self.namespaces)
        edges = sorted(
            (importer, imported)
            for imported in graph.modules
            if imported.count(".") >= 2 and not graph.find_children(imported)
            for importer in graph.find_modules_that_directly_import(imported)
            if _room(importer) != _room(imported)
        )
        found = [
            f"{importer} imports {imported}; expected an import from {imported.rpartition('.')[0]}"
            for importer, imported in edges
            if imported not in reasons
        ]
        used = {imported for _, imported in edges}
        for module, reason in reasons.items():
            if not reason:
                found.append(f"pyproject.toml: found '{module}', expected 'module: reason'")
            if module not in used:
                found.append(
                    f"pyproject.toml: found {module} in namespaces, a module that no other room "
                    "imports; remove it"
                )
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for sentence in check.metadata["found"]:
            output.print_error(sentence)


class CallsContract(Contract):
    """Modules call nothing that does I/O. `exceptions` are texts "module -> call, call: reason". A
    call is written as the error message shows it. An exception for a call that no longer exists is
    an error."""

    type_name = "calls"

    source_modules: Any = fields.ListField(subfield=fields.StringField())
    exceptions: Any = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        found: list[str] = []
        allowed: dict[tuple[str, str], bool] = {}  # exception -> was it used?
        for text in self.exceptions:
            module, calls, reason = _exception(text)
            if not reason:
                found.append(
                    f"pyproject.toml: found '{text}', expected 'module -> call, call: reason'"
                )
            allowed.update({(module, call): False for call in calls})
        for module in _below(graph, self.source_modules):
            for line, call in sorted(calls_of(_source(module))):
                if (module, call) in allowed:
                    allowed[module, call] = True
                else:
                    found.append(f"{module}:{line} calls {call}; expected no I/O in the core")
        for (module, call), used in allowed.items():
            if not used:
                found.append(
                    f"pyproject.toml: found an exception for {module} -> {call}, which does not "
                    "occur; remove it"
                )
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for sentence in check.metadata["found"]:
            output.print_error(sentence)


def calls_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each use of a name that does I/O, such as `os.replace` or `.mkdir`."""
    tree = ast.parse(source)
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                top = name.name.partition(".")[0]
                imported[name.asname or top] = name.name if name.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                imported[name.asname or name.name] = f"{node.module}.{name.name}"
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            used = _dotted(node, imported)
            if used and _is_one_of(used, NAMES) and not _is_one_of(used, HARMLESS):
                yield node.lineno, used
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method in METHODS and not _is_of_text(node) and not _dotted(node.func, imported):
                yield node.lineno, f".{method}"


def _is_of_text(call: ast.Call) -> bool:
    """Is this `replace` of a text or a time? For a text it has two arguments, for a time keywords,
    and for a path one argument."""
    assert isinstance(call.func, ast.Attribute)
    return call.func.attr == "replace" and (len(call.args) != 1 or bool(call.keywords))


def _is_one_of(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _dotted(node: ast.expr, imported: dict[str, str]) -> str | None:
    """The full name of an imported object or a built-in; None for anything else."""
    if isinstance(node, ast.Name):
        return imported.get(node.id, node.id if node.id in NAMES else None)
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, imported)
        return owner and f"{owner}.{node.attr}"
    return None


def _exception(text: str) -> tuple[str, list[str], str]:
    """Split an exception into module, calls and reason."""
    what, _, reason = text.partition(": ")
    module, _, calls = what.partition(" -> ")
    return module, [call.strip() for call in calls.split(",")], reason.strip()


def _below(graph: grimp.ImportGraph, modules: list[str]) -> list[str]:
    return sorted({*modules}.union(*(graph.find_descendants(one) for one in modules)))


def _source(module: str) -> str:
    top, *rest = module.split(".")
    found = importlib.util.find_spec(top)
    assert found is not None
    assert found.submodule_search_locations is not None
    path = Path(found.submodule_search_locations[0], *rest)
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.read_text("utf-8")


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])
