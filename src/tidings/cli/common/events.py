"""Reads events one at a time: from a file, a folder, the files that a pattern matches, or stdin.

Besides the formats that all commands read, `tidings publish` reads the formats in which
notifications can be sent.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tidings.cli.common import arrow, input_files
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.declared_types import DeclaredTypes
from tidings.model import NotificationError

FORMATS = ("json", "csv", "parquet")
PUBLISHED = (*FORMATS, "xml", "msgpack", "arrow")
Content = dict[str, Any] | bytes  # attributes, or an XML document that is sent unchanged
_encode = msgspec.json.Encoder(decimal_format="number").encode


def read_events(
    path: str, given: str | None, declared: DeclaredTypes, nulls: Iterable[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield the events of one or several files, with declared attributes in their declared types;
    see `list_files`."""
    for file in list_files(path, given):
        form = input_files.format_of(file, given, FORMATS, "--format")
        for where, event in _read_placed(file, form, declared, nulls):
            yield conform_event(event, declared, where)


def read_contents(
    path: str, given: str | None, nulls: Iterable[str] = ()
) -> Iterator[tuple[Content, str]]:
    """Yield what `tidings publish` sends for each event of one or several files, and its text."""
    for file in list_files(path, given, PUBLISHED):
        form = input_files.format_of(file, given, PUBLISHED, "--format")
        if form == "xml":
            yield from _read_xml(file)
            continue
        for _, event in _read_placed(file, form, DeclaredTypes(), nulls):
            yield event, _encode(event).decode()


def _read_xml(path: str) -> Iterator[tuple[bytes, str]]:
    """The XML documents of a file. The documents are sent unchanged: values without a type take the
    type that the channel declares."""
    from tidings.notifications.content_formats import decode_content, split_xml

    name = input_files.name_of(path)
    with input_files.open_input(path) as file:
        data = file.read().removeprefix(b"\xef\xbb\xbf")
    where = name
    try:
        for line, one in split_xml(data):
            where = f"{name}, the notification at line {line}"
            decode_content(one)
            yield one, one.decode("utf-8", "surrogateescape")
            where = name
    except NotificationError as problem:
        raise BadInput(f"{where}: {problem}") from None


def _read_msgpack(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    from tidings.notifications.content_formats import decode_content, is_json, split_msgpack

    name, index = input_files.name_of(path), 0
    with input_files.open_input(path) as file:
        data = file.read()
    try:
        for one in split_msgpack(data):
            if is_json(one):
                raise NotificationError(
                    "found a value of another type, expected a map in MessagePack"
                )
            yield f"{name}, event {index}", decode_content(one)
            index += 1
    except NotificationError as problem:
        raise BadInput(f"{name}, event {index}: {problem}") from None


def are_texts(path: str, given: str | None) -> bool:
    """Whether the events come from CSV files, whose types are declared or inferred."""
    files = list_files(path, given)
    return all(input_files.format_of(one, given, FORMATS, "--format") == "csv" for one in files)


def list_files(
    path: str, given: str | None = None, formats: tuple[str, ...] = FORMATS
) -> list[str]:
    """The files that a path stands for, sorted by name. The path may be a file; a folder, for all
    files with events in it and below it; or a pattern such as `in/*.json.gz`, for the files that
    match. Hidden files, and files whose names begin with _, are left out, as in Spark."""
    if path == input_files.STDIN or Path(path).is_file():
        return [path]
    if Path(path).is_dir():
        found = [
            str(one)
            for one in sorted(Path(path).rglob("*"))
            if _has_events(one, path, given, formats)
        ]
        if not found:
            known = "files" if given else "files with the extension " + ", ".join(
                one for one, form in input_files.EXTENSIONS.items() if form in formats
            )  # fmt: skip
            raise BadInput(f"{path}: found no events in this folder, expected {known}")
        return found
    if glob.has_magic(path):
        matching = glob.glob(path, recursive=True)  # noqa: PTH207  the pattern may be absolute
        found = sorted(one for one in matching if Path(one).is_file())
        if not found:
            raise BadInput(f"{path}: no file matches this pattern")
        return found
    return [path]


def _has_events(one: Path, folder: str, given: str | None, formats: tuple[str, ...]) -> bool:
    inside = one.relative_to(folder).parts
    if not one.is_file() or any(part.startswith((".", "_")) for part in inside):
        return False
    return given is not None or (
        input_files.EXTENSIONS.get(input_files.extension_of(one.name)) in formats
    )


def conform_event(event: dict[str, Any], declared: DeclaredTypes, where: str) -> dict[str, Any]:
    """Convert the declared attributes of an event to their declared types."""
    if declared.attributes is None:
        return event
    try:
        return declared.attributes.read(event)
    except NotificationError as problem:
        raise BadInput(f"{where}: {problem}") from None


def _read_placed(
    path: str, form: str, declared: DeclaredTypes, nulls: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    name = input_files.name_of(path)
    if form == "json":
        for place, event in input_files.read_objects(path):
            yield f"{name}, {place}", event
        return
    if form == "msgpack":
        yield from _read_msgpack(path)
        return
    if form == "csv":
        rows = arrow.read_csv(path, declared.names, nulls)
    else:
        rows = arrow.read_arrow(path) if form == "arrow" else arrow.read_parquet(path)
    for index, event in enumerate(rows):
        yield f"{name}, event {index}", event
