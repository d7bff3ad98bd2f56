"""The rooms on the page of `tidings` and on the map, against the contract and the folders."""

from __future__ import annotations

import re
import tomllib

import pytest
from tests.docs.test_folder_pages import ROOT, TOP, page_of

LAYERS = next(
    one["layers"]
    for one in tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    if one.get("containers") == ["tidings"]
)
LEVELS = {
    name.strip(): level
    for level, layer in enumerate(LAYERS)
    for name in layer.split("|")
    if "(" not in name  # not built yet
}
TABLE = re.findall(
    r"^\| \[(\w+)\]\(src/tidings/\1\) \| .* \| (.*?) ?\|$",
    (TOP / "ARCHITECTURE.md").read_text("utf-8"),
    re.MULTILINE,
)


def rooms_on_the_page() -> list[str]:
    """The first words of the block of lines that lists the rooms, one room a line."""
    lines = page_of(ROOT).partition("their folders export:")[2].strip("\n").partition("\n\n")[0]
    return [line.split()[0] for line in lines.splitlines()]


@pytest.mark.parametrize("rooms", [rooms_on_the_page(), [room for room, _ in TABLE]])
def test_rooms_are_listed_in_the_order_of_their_layers(rooms: list[str]) -> None:
    assert sorted(rooms) == sorted(LEVELS)
    assert rooms == sorted(rooms, key=lambda room: LEVELS[room])


@pytest.mark.parametrize(("room", "inside"), TABLE, ids=[room for room, _ in TABLE])
def test_the_map_names_the_folders_of_a_room(room: str, inside: str) -> None:
    there = sorted(path.parent.name for path in (ROOT / room).glob("*/__init__.py"))
    assert sorted(filter(None, inside.split(", "))) == there
