"""Each promise of a page names the tests that show it: they exist, on every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
SHOWN = re.compile(r"<!--\s*shown by\s+(.*?)\s*-->", re.DOTALL)
NAMED = re.compile(r"(tests/\S+\.py)(?:::(\w+))?")  # a test, or all tests of a file
PAGES = sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")])
SHOWS = {
    str(page.relative_to(TOP)): SHOWN.findall(page.read_text())
    for page in PAGES
    if "shown by" in page.read_text()
}


@pytest.mark.parametrize("page", ["docs/network.md", "docs/security.md"])
def test_pages_name_tests(page: str) -> None:
    assert len(SHOWS[page]) > 10


def find_problem(given: str) -> str:
    """Why a comment that names a test is wrong; empty if the test exists."""
    named = NAMED.fullmatch(given)
    if named is None:
        return f"found {given!r}, expected a file of tests, or a file and a test: FILE::TEST"
    path, name = named.groups()
    if not (TOP / path).is_file():
        return f"there is no {path}"
    text = (TOP / path).read_text()
    if name and not re.search(rf"^(async )?def {name}\(", text, re.MULTILINE):
        return f"{path} has no {name}"
    return ""


@pytest.mark.parametrize("page", SHOWS)
def test_the_tests_that_a_page_names_exist(page: str) -> None:
    problems = [found for given in SHOWS[page] if (found := find_problem(given))]
    assert not problems, problems


def test_every_comment_is_read() -> None:
    """A comment of another form would be checked by nobody."""
    for page in PAGES:
        text = page.read_text()
        assert len(SHOWN.findall(text)) == text.count("<!-- shown by"), page


def test_a_test_that_is_missing_is_found() -> None:
    here = "tests/docs/test_shown.py"
    assert not find_problem(f"{here}::test_every_comment_is_read")
    assert not find_problem(here)
    assert find_problem(f"{here}::test_gone") == f"{here} has no test_gone"
    assert find_problem("tests/gone.py::test_one") == "there is no tests/gone.py"
    assert find_problem("test_gone").startswith("found 'test_gone'")
