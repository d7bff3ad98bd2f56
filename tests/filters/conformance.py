"""The conformance tests of CloudEvents SQL, where they are: they are not part of this repository.

They are looked for in the folder that TIDINGS_CONFORMANCE names, and otherwise in
`shared/conformance` beside the checkout or beside a folder above it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec


def folder(name: str) -> Path | None:
    """The folder of one set of tests; None where there is none."""
    given = os.environ.get("TIDINGS_CONFORMANCE")
    places = [Path(given)] if given else [
        above / "shared" / "conformance" for above in Path(__file__).resolve().parents
    ]  # fmt: skip
    return next((place / name for place in places if (place / name).is_dir()), None)


def cases(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and name of the test, test) of all files."""
    where = folder(name)
    for path in sorted(where.glob("*.yaml")) if where else []:
        suite = read_yaml(path.read_text(encoding="utf-8"))
        for one in suite["tests"]:
            yield f"{path.stem}: {one['name']}: {one['expression']}", one


def read_yaml(text: str) -> Any:
    """The YAML that the tests are written in: mappings, lists of mappings, scalars on one line."""
    lines = [
        (len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines() if line.strip()
    ]
    value, rest = _block(lines, 0)
    assert rest == len(lines), f"line {rest + 1} of those that are not empty was not understood"
    return value


def _block(lines: list[tuple[int, str]], at: int) -> tuple[Any, int]:
    indent, line = lines[at]
    if line.startswith("- "):
        items = []
        while at < len(lines) and lines[at][0] == indent and lines[at][1].startswith("- "):
            # the mapping of an item begins behind its dash
            lines[at] = (indent + 2, lines[at][1][2:])
            item, at = _block(lines, at)
            items.append(item)
        return items, at
    out: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent:
        name, colon, value = lines[at][1].partition(":")
        assert colon, lines[at][1]
        if value.strip():
            out[name] = _scalar(value.strip(), typed=name != "expression")
            at += 1
        else:
            out[name], at = _block(lines, at + 1)
    return out, at


def _scalar(text: str, typed: bool) -> Any:
    """A scalar; the text of an expression stays one, even that of a number."""
    if text.startswith('"'):
        assert text.endswith('"'), text
        return msgspec.json.decode(text)
    if text.startswith("'"):
        assert text.endswith("'"), text
        return text[1:-1].replace("''", "'")
    if not typed:
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if re.fullmatch("-?[0-9]+", text) else text
