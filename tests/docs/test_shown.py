"""Each promise on the pages about the network and security names the tests that show it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
SHOWN = re.compile(r"<!-- shown by (\S+)::(\w+) -->")
PAGES = {
    page: SHOWN.findall((TOP / "docs" / page).read_text()) for page in ("network.md", "security.md")
}


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_tests(page: str) -> None:
    assert len(PAGES[page]) > 10


@pytest.mark.parametrize(
    ("path", "name"), sorted({one for found in PAGES.values() for one in found})
)
def test_a_test_that_a_page_names_is_there(path: str, name: str) -> None:
    text = (TOP / path).read_text()
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{path} has no {name}"
