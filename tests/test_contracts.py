"""Each contract of pyproject.toml catches a violation that is put into a copy of the sources.

What the violation is follows from the type of the contract, so a contract that is added is tested
too, and one of a type that is not known here fails. All violations are put into one copy, and each
must be named in the section of its own contract: a run for each contract took a minute more.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tools.contracts import calls_of

ROOT = Path(__file__).parents[1]
LISTED = "namespaces = ["
BLOCK = "[[tool.importlinter.contracts]]\n"
HEAD, *TEXTS = (ROOT / "pyproject.toml").read_text("utf-8").split(BLOCK)
HEAD = HEAD[HEAD.index("[tool.importlinter]") :]
CONTRACTS: list[Any] = [
    tomllib.loads(BLOCK + text)["tool"]["importlinter"]["contracts"][0] for text in TEXTS
]
Violation = Callable[[Path, Any], list[str]]  # changes the copy; what the report has to name


def file_of(sources: Path, module: str) -> Path:
    path = sources.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def append(sources: Path, module: str, text: str) -> None:
    path = file_of(sources, module)
    path.write_text(f"{path.read_text('utf-8')}\n{text}\n", "utf-8")


def layers_of(contract: Any) -> list[list[str]]:
    """The modules of each layer, highest first, without those that are not built."""
    container = contract["containers"][0]
    names = ([one.strip() for one in layer.split("|")] for layer in contract["layers"])
    found = [[f"{container}.{one}" for one in layer if not one.startswith("(")] for layer in names]
    return [layer for layer in found if layer]


def import_upwards(sources: Path, contract: Any) -> list[str]:
    layers = layers_of(contract)
    low, high = layers[-1][0], layers[0][0]
    if low != high:
        append(sources, low, f"import {high}")
    return [f"{low} -> {high}"] if low != high else []


def import_a_sibling(sources: Path, contract: Any) -> list[str]:
    for layer in layers_of(contract):
        if len(layer) > 1:
            append(sources, layer[-1], f"import {layer[0]}")
            return [f"{layer[-1]} -> {layer[0]}"]
    return []


def add_a_module(sources: Path, contract: Any) -> list[str]:
    (file_of(sources, contract["containers"][0]).parent / "stray.py").write_text("")
    return ["stray"]


def import_what_is_forbidden(sources: Path, contract: Any) -> list[str]:
    source = contract["source_modules"][0].replace("*", "model")
    for forbidden in contract["forbidden_modules"]:
        append(sources, source, f"import {forbidden}")
    return [source, *contract["forbidden_modules"]]


def enter_through_a_wall(sources: Path, contract: Any) -> list[str]:
    append(sources, "tidings.cli.app", "from tidings.filters.filter import Filter")
    return ["tidings.cli.app imports tidings.filters.filter; expected an import from"]


def list_what_is_not_there(sources: Path, contract: Any) -> list[str]:
    path = sources.parent / "pyproject.toml"
    path.write_text(path.read_text("utf-8").replace(LISTED, f'{LISTED} "tidings.gone",'), "utf-8")
    return ["found 'tidings.gone', expected 'module: reason'", "found tidings.gone in namespaces"]


def call_what_does_io(sources: Path, contract: Any) -> list[str]:
    lines = [
        "import os, tempfile, datetime as dt",
        "from pathlib import Path",
        "from shutil import rmtree as remove",
        "def leak(path: Path, text: str) -> None:",
        "    open(text)",
        "    os.replace(text, text)",
        "    tempfile.mkdtemp()",
        "    path.with_name(text).write_text(text)",
        "    path.replace(text)",
        "    remove(path)",
        "    dt.datetime.now()",
    ]
    source = contract["source_modules"][0]
    append(sources, source, "\n".join(lines))
    calls = ("open", "os.replace", "tempfile.mkdtemp", ".write_text", ".replace", "shutil.rmtree")
    return [source, *(f" calls {call};" for call in (*calls, "datetime.datetime.now"))]


def stop_a_call_that_is_excepted(sources: Path, contract: Any) -> list[str]:
    module = contract["exceptions"][0].partition(" -> ")[0]
    file_of(sources, module).write_text("")
    return [f"pyproject.toml: found an exception for {module}"]


VIOLATIONS: dict[str, tuple[Violation, ...]] = {
    "layers": (import_upwards, import_a_sibling, add_a_module),
    "forbidden": (import_what_is_forbidden,),
    "exports": (enter_through_a_wall, list_what_is_not_there),
    "calls": (call_what_does_io, stop_a_call_that_is_excepted),
}


def copy_sources(folder: Path) -> Path:
    """A copy of the sources, with the contracts' own code beside it."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("src", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    (folder / "pyproject.toml").write_text(BLOCK.join([HEAD, *TEXTS]), "utf-8")
    return folder / "src"


def lint(sources: Path) -> subprocess.CompletedProcess[str]:
    """Check a copy against all contracts."""
    code = "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c())"
    environment = {**os.environ, "PYTHONPATH": str(sources), "COLUMNS": "400"}
    return subprocess.run(
        [sys.executable, "-c", code, "--no-logo", "--no-cache"],
        cwd=sources.parent, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


class Violated(NamedTuple):
    """What a copy with a violation of each contract gave."""

    expected: list[list[str]]  # by contract
    code: int
    printed: str

    def section(self, name: str) -> str:
        """What is said about one broken contract: from its heading to the next."""
        head = f"\n{name}\n{'-' * len(name)}\n"
        found = self.printed.partition("\nBroken contracts\n")[2].partition(head)[2]
        return re.split(r"\n.+\n-{3,}\n", found, maxsplit=1)[0]


@pytest.fixture(scope="module")
def violated(tmp_path_factory: pytest.TempPathFactory) -> Violated:
    sources = copy_sources(tmp_path_factory.mktemp("violated"))
    expected = [
        [one for violate in VIOLATIONS[contract["type"]] for one in violate(sources, contract)]
        for contract in CONTRACTS
    ]
    done = lint(sources)
    return Violated(expected, done.returncode, done.stdout + done.stderr)


def test_a_copy_without_a_violation_keeps_all(tmp_path: Path) -> None:
    done = lint(copy_sources(tmp_path))
    assert done.returncode == 0, done.stdout
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in done.stdout


@pytest.mark.parametrize("number", range(len(TEXTS)), ids=[one["name"] for one in CONTRACTS])
def test_violations_are_caught(violated: Violated, number: int) -> None:
    name, expected = CONTRACTS[number]["name"], violated.expected[number]
    assert expected
    assert violated.code == 1, violated.printed
    assert f"{name} BROKEN" in violated.printed
    section = violated.section(name)
    assert [one for one in expected if one not in section] == [], section


def test_every_folder_has_layers() -> None:
    """A folder with two modules or more has a contract that lists them all, in layers."""
    listed = [one for one in CONTRACTS if one["type"] == "layers" and one.get("exhaustive")]
    containers = {name for one in listed for name in one["containers"]}
    found = {
        ".".join(path.parent.relative_to(ROOT / "src").parts)
        for path in (ROOT / "src").rglob("__init__.py")
        if len(modules_of(path.parent)) > 1
    }
    assert sorted(found - containers) == []
    assert sorted(containers - found) == []


def modules_of(folder: Path) -> list[Path]:
    """The modules and folders inside a folder."""
    return [
        path
        for path in folder.iterdir()
        if (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem != "__init__")
    ]


def test_what_counts_as_io() -> None:
    text = """
import io, os.path, datetime as dt
import numpy as np
from os import fspath
from pathlib import Path
"it's open".replace("a", "b"), dt.datetime(2000, 1, 1).replace(tzinfo=None)
fspath(Path("a") / "b"), io.BytesIO(), Path("a").with_suffix(".b").name, np.zeros(3)
opened = open
os.path.exists("a")
Path("a").parent.mkdir()
np.save("a", np.zeros(3))
with Path("a").open() as file: file.read()
Path.home()
"""
    assert sorted(calls_of(text)) == [
        (8, "open"),
        (9, "os.path.exists"),
        (10, ".mkdir"),
        (11, "numpy.save"),
        (12, ".open"),
        (13, "pathlib.Path.home"),
    ]
