"""Files as lines and objects; what is refused is in test_errors.py."""

from __future__ import annotations

import pytest

from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.input_files import format_of, object_of

FORMATS = ("json", "csv")


@pytest.mark.parametrize(
    ("path", "given", "found"),
    [
        ("e.jsonl", None, "json"),
        ("e.NDJSON", None, "json"),
        ("e.json", None, "json"),
        ("e.csv", None, "csv"),
        ("e.csv", "json", "json"),
        ("-", None, "json"),
        ("-", "csv", "csv"),
    ],
)
def test_the_format(path: str, given: str | None, found: str) -> None:
    assert format_of(path, given, FORMATS, "--format") == found


@pytest.mark.parametrize(("path", "given"), [("e.parquet", None), ("e", None), ("e.csv", "xml")])
def test_formats_that_are_not_known(path: str, given: str | None) -> None:
    with pytest.raises(BadInput, match="--format"):
        format_of(path, given, FORMATS, "--format")


def test_the_pointer_counts_characters_not_bytes() -> None:
    with pytest.raises(BadInput, match="event, character 7") as refused:
        object_of('{"äö":x}', "event")
    assert refused.value.pointer == '{"äö":x}\n      ^'
