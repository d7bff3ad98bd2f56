"""Reads the attributes that `--types` declares: a JSON or TOML file, or name=type, ..."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from tidings import Attributes, AttributesError
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.input_files import read_lines


class DeclaredTypes(msgspec.Struct, frozen=True):
    """The names that `--types` declares, and their Attributes (None without `--types`)."""

    names: tuple[str, ...] = ()
    attributes: Attributes | None = None


def read_types(given: str | None, others: bool = False) -> DeclaredTypes:
    """Read the value of `--types`; with `others`, filters may also use undeclared names."""
    if given is None:
        return DeclaredTypes()
    types = _read_inline(given) if _is_inline(given) else _flatten(_read_file(given), given)
    if not types:
        raise BadInput(f"--types {given}: found no attribute, expected name=type, ...")
    try:
        return DeclaredTypes(tuple(types), Attributes(types, closed=not others))
    except AttributesError as problem:
        raise BadInput(f"--types {given}: {problem}") from None


def _is_inline(given: str) -> bool:
    return "=" in given and not Path(given).exists()


def _read_inline(given: str) -> dict[str, Any]:
    types: dict[str, Any] = {}
    for part in given.split(","):
        name, equals, kind = (piece.strip() for piece in part.partition("="))
        if not name or not equals or not kind:
            raise BadInput(f"--types {given}: found '{part.strip()}', expected name=type")
        if name in types:
            raise BadInput(f"--types {given}: '{name}' is declared twice")
        types[name] = kind
    return types


def _read_file(path: str) -> dict[str, Any]:
    extension = Path(path).suffix.lower()
    if extension not in (".json", ".toml"):
        raise BadInput(f"--types {path}: expected name=type, ... or a .json or .toml file")
    text = "".join(line for _, line in read_lines(path))
    try:
        if extension == ".toml":
            return tomllib.loads(text)
        return msgspec.json.decode(text, type=dict[str, Any])
    except (ValueError, RecursionError) as problem:
        raise BadInput(
            f"{path}: this can't be read as {extension[1:].upper()}: {problem}; "
            'expected names with their types, such as price = "double"'
        ) from None


def _flatten(nested: dict[str, Any], path: str, above: str = "") -> dict[str, Any]:
    """Turn nested fields into dotted names, because TOML reads `user.city` as a table."""
    types: dict[str, Any] = {}
    for name, kind in nested.items():
        if isinstance(kind, dict):
            types |= _flatten(kind, path, f"{above}{name}.")
        elif isinstance(kind, str):
            types[above + name] = kind
        else:
            raise BadInput(f"{path}: '{above}{name}' is {kind!r}, expected the name of a type")
    return types
