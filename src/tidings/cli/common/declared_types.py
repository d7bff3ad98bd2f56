"""Reads the attributes that `--types` declares: a JSON or TOML file, or name=type, ..."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from tidings import Attributes, AttributesError
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.input_files import read_lines
from tidings.files import TomlFile, find_lines
from tidings.model import read_declaration


class DeclaredTypes(msgspec.Struct, frozen=True):
    """The columns that `--types` declares, and their Attributes (None without `--types`)."""

    names: tuple[str, ...] = ()
    attributes: Attributes | None = None


def read_types(given: str | None, others: bool = False) -> DeclaredTypes:
    """Read the value of `--types`; with `others`, filters may also use undeclared names."""
    if given is None:
        return DeclaredTypes()
    file = None if _is_inline(given) else _read_file(given)
    declared: Any = given if file is None else file.data
    if not declared:
        raise BadInput(f"--types {given}: found no attribute, expected name=type, ...")
    try:
        attributes = Attributes(declared, closed=not others)
        return DeclaredTypes(tuple(read_declaration(declared)), attributes)
    except AttributesError as problem:
        if file is not None and file.lines:
            raise BadInput(file.describe(problem.problems)) from None
        raise BadInput(f"--types {given}: {problem}") from None


def _is_inline(given: str) -> bool:
    return "=" in given and not Path(given).exists()


def _read_file(path: str) -> TomlFile:
    extension = Path(path).suffix.lower()
    if extension not in (".json", ".toml"):
        raise BadInput(f"--types {path}: expected name=type, ... or a .json or .toml file")
    text = "".join(line for _, line in read_lines(path))
    try:
        if extension == ".toml":
            return TomlFile(Path(path), tomllib.loads(text), find_lines(text))
        return TomlFile(Path(path), msgspec.json.decode(text, type=dict[str, Any]), {})
    except (ValueError, RecursionError) as problem:
        example = 'price = "double"' if extension == ".toml" else '{"price": "double"}'
        raise BadInput(
            f"{path}: this can't be read as {extension[1:].upper()}: {problem}; "
            f"expected names with their types, such as {example}"
        ) from None
