"""The docstring of each folder's `__init__` is its page, and it is true to the folder."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
ROOT = TOP / "src" / "tidings"
FOLDERS = sorted(path.parent for path in ROOT.rglob("__init__.py"))
NAMED = re.compile(r"(?<![\w*./])((?:\w+/)*\w+\.py)\b")
START = re.compile(r"Start(?:\s+reading)?\s+at\s+((?:\w+/)*\w+\.py)")
AUDIENCE = re.compile(
    r"\b(users|used\s+(only\s+)?(by|inside)|uses?\s+this\s+folder"
    r"|for\s+(other\s+rooms|cli|the\s+rest))\b",
    re.IGNORECASE,
)


def page_of(folder: Path) -> str:
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""


def missing_files(page: str, folder: Path) -> list[str]:
    """Files that a page names and that are neither in its folder, nor in src/tidings or tests."""
    places = (folder, folder.parent, ROOT, TOP)
    named = NAMED.findall(page)
    return [name for name in named if not any((place / name).exists() for place in places)]


def unnamed_modules(page: str, folder: Path) -> list[str]:
    """Modules and folders that a page does not speak of; `*_kernels.py` speaks of all of them."""
    there = [path.stem for path in folder.iterdir() if is_part(path)]
    words = set(re.findall(r"\w+", page))
    if "*_kernels.py" in page:
        there = [name for name in there if not name.endswith("_kernels")]
    return sorted(name for name in there if name not in words)


def is_part(path: Path) -> bool:
    if path.is_dir():
        return (path / "__init__.py").exists()
    return path.suffix == ".py" and not path.stem.startswith("_")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_page_of_a_folder(folder: Path) -> None:
    page = page_of(folder)
    assert 5 <= len(page.splitlines()) <= 30
    assert START.search(page), "it does not say where to start reading"
    assert AUDIENCE.search(page), "it does not say who may use it"
    assert missing_files(page, folder) == []
    assert unnamed_modules(page, folder) == []


def test_a_page_that_is_wrong_is_found() -> None:
    folder = ROOT / "model"
    page = "Values: values.py, gone.py. Users. Start at values.py."
    assert missing_files(page, folder) == ["gone.py"]
    unnamed = ["data_types", "decimals", "declaration", "errors", "gc_pause", "ids"]
    unnamed += ["pandas_block", "toml_strings", "type_inference", "type_text", "types"]
    assert unnamed_modules(page, folder) == unnamed
