"""The pages are correct: their code is run, and their links are followed.

On README.md, ARCHITECTURE.md, CONTRIBUTING.md, CHANGELOG.md and the pages below docs/:

    ```python    run in order, one namespace per page; `>>>` examples must print what is shown;
                 test_spark_pages.py runs those that use Spark, and such commands
    ```console   `$ tidings ...` and a few harmless commands are run in a copy of docs/examples and
                 must print what is shown, where `...` stands for anything; others are not run;
                 see console.py
    ```sql       each paragraph is a filter

Links between pages lead to files and headings that exist, and so do paths in backticks. Each check
is a function from a page to a list of problems; the last part of the file holds pages that must
have some.
"""

from __future__ import annotations

import doctest
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
from tests.cli.command_tree import COMMANDS
from tests.docs.console import problems_of_block, steps_of

from tidings import FilterError, parse
from tidings.cli.common.shutdown import INTERRUPTED
from tidings.cli.pipelines.pipeline_command import run_pipeline
from tidings.filters.canonical import boxes, covering, point_images, rewrites, rules
from tidings.filters.dialects.sql import dialect
from tidings.filters.language import expression, functions, tokens
from tidings.filters.language.builders import special_calls
from tidings.filters.language.dialect import sql_functions
from tidings.filters.language.sql_writer import RESERVED
from tidings.filters.values import regular
from tidings.spark.outbox.batches.batch_stages import EXTRA
from tidings.spark.pipeline import settings
from tidings.spark.pipeline.inputs import RESERVED as RESERVED_COLUMNS

pytestmark = pytest.mark.usefixtures("forked")

TOP = Path(__file__).resolve().parents[2]
DECISIONS = sorted((TOP / "docs" / "decisions").glob("[0-9]*.md"))
PAGES = [TOP / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += [*sorted((TOP / "docs").glob("*.md")), TOP / "docs" / "decisions" / "index.md", *DECISIONS]
EXAMPLES = TOP / "docs" / "examples"


class Block(NamedTuple):
    language: str
    line: int  # of its first line of text
    text: str


class Page(NamedTuple):
    path: Path
    text: str

    def blocks(self, language: str) -> list[Block]:
        return [block for block in blocks_of(self.text) if block.language == language]


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page; a block that is indented loses its indentation."""
    found: list[Block] = []
    lines: list[str] | None = None
    language, indent, start = "", 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"( *)```(\w*)\s*$", line)
        if lines is None and fence:
            lines, language, indent, start = [], fence[2], len(fence[1]), number + 1
        elif lines is not None and fence and not fence[2]:
            found.append(Block(language, start, "".join(f"{one[indent:]}\n" for one in lines)))
            lines = None
        elif lines is not None:
            lines.append(line)
    if lines is not None:
        raise ValueError(f"the block that starts at line {start} is not closed")
    return found


def prose_of(text: str) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)


# -- the checks --------------------------------------------------------------------------------


def problems_of_python(page: Page) -> list[str]:
    """Run the Python of a page, from top to bottom."""
    space: dict[str, object] = {"__name__": "page"}
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE)
    for block in page.blocks("python"):
        name = f"{page.path.name}:{block.line}"
        if ">>>" not in block.text:
            exec(compile(block.text, name, "exec"), space)
            continue
        test = doctest.DocTestParser().get_doctest(block.text, space, name, name, block.line - 1)
        runner.run(test, out=told.append, clear_globs=False)
        space = test.globs
    return told


def problems_of_console(page: Page, folder: Path) -> list[str]:
    """Run the commands of a page in a folder."""
    return [
        f"{page.path.name}:{block.line}: {problem}"
        for block in page.blocks("console")
        for problem in problems_of_block(block.text, folder)
    ]


def problems_of_filters(page: Page) -> list[str]:
    """Parse the filters of a page."""
    told = []
    for block in page.blocks("sql"):
        for text in filters_of(block):
            try:
                parse(text)
            except FilterError as error:
                told.append(f"{page.path.name}:{block.line}: {error}\n{error.pointer()}")
    return told


def filters_of(block: Block) -> list[str]:
    return re.split(r"\n\s*\n", block.text.strip())


def problems_of_links(page: Page) -> list[str]:
    """Follow the links of a page that lead to files."""
    told = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page.text)):
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.path.parent / name).resolve() if name else page.path
        if path != page.path and not path.exists():
            told.append(f"{page.path.name}: there is no file '{name}'")
        elif anchor:
            text = page.text if path == page.path else path.read_text()
            if anchor not in anchors_of(text):
                told.append(f"{page.path.name}: there is no heading '#{anchor}' in {path.name}")
    return told


def anchors_of(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ +(.+?) *$", prose_of(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def problems_of_paths(page: Page) -> list[str]:
    """Look for the files that a page names in backticks."""
    named = re.findall(r"`((?:src|tests|docs|tools)/[\w./*-]*)`", prose_of(page.text))
    return [
        f"{page.path.name}: there is no '{name}'"
        for name in named
        if not any(TOP.glob(name.rstrip("/")))
    ]


Check = Callable[[Page], list[str]]
CHECKS: list[Check] = [
    problems_of_python,
    problems_of_filters,
    problems_of_links,
    problems_of_paths,
]


# -- the pages ---------------------------------------------------------------------------------


def page_of(path: Path) -> Page:
    return Page(path, path.read_text())


def pages_with(language: str, pattern: str) -> list[Path]:
    """The pages that have something in their blocks of a language."""
    found = re.compile(pattern)
    return [
        path
        for path in PAGES
        if any(found.search(block.text) for block in page_of(path).blocks(language))
    ]


PYTHON_ON_SPARK = pages_with("python", r"\blocal_session\(|\bSparkSession\.builder\b")
CONSOLE_ON_SPARK = pages_with(
    "console", r"tidings (pipeline (run|check)|backtest|dead-letters replay) "
)


@pytest.mark.parametrize(
    ("check", "path"),
    [
        pytest.param(check, path, id=f"{check.__name__}-{path.relative_to(TOP)}")
        for check in CHECKS
        for path in PAGES
        if check is not problems_of_python or path not in PYTHON_ON_SPARK
    ],
)
def test_page(path: Path, check: Check) -> None:
    problems = check(page_of(path))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "path",
    [path for path in pages_with("console", "") if path not in CONSOLE_ON_SPARK],
    ids=lambda path: str(path.relative_to(TOP)),
)
def test_console(path: Path, tmp_path: Path) -> None:
    run_console(path, tmp_path)


def run_console(path: Path, folder: Path) -> None:
    examples = shutil.copytree(EXAMPLES, folder / "examples")
    problems = problems_of_console(page_of(path), examples)
    assert not problems, "\n".join(problems)


def test_the_pages_have_something_to_check() -> None:
    languages = [block.language for path in PAGES for block in blocks_of(path.read_text())]
    assert {"python", "console", "sql"} <= set(languages)
    commands = [
        command
        for path in PAGES
        for block in page_of(path).blocks("console")
        for command, _ in steps_of(block.text)
    ]
    for name in ("check", "match", "explain", "doctor", "backtest", "demo", "bench", "pipeline",
                 "subscriptions", "snapshot"):  # fmt: skip
        assert any(one.startswith(f"tidings {name} ") for one in commands), name


def test_the_notification_of_the_readme_matches_its_filters() -> None:
    page = page_of(TOP / "README.md")
    notification = json.loads(page.blocks("json")[0].text)
    filters = filters_of(page.blocks("sql")[0])
    assert len(filters) > 3
    assert [text for text in filters if not parse(text).matches(notification)] == []


def test_every_page_is_listed() -> None:
    index = (TOP / "docs" / "index.md").read_text()
    unlisted = [p.name for p in (TOP / "docs").glob("*.md") if f"({p.name})" not in index]
    assert unlisted == ["index.md"]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_its_parts_and_is_listed(path: Path) -> None:
    text = path.read_text()
    assert text.startswith(f"# {path.name[:3]}. ")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["Context", "Choice", "Rejected", "Figure"]
    assert f"]({path.name})" in (path.parent / "index.md").read_text()


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [int(path.name[:3]) for path in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_ten_changes_name_files_that_are_there() -> None:
    section = (TOP / "CONTRIBUTING.md").read_text().split("\n## Ten changes")[1].split("\n## ")[0]
    assert len(re.findall(r"^\| an? ", section, re.MULTILINE)) == 10
    named = re.findall(r"`([\w*]+/[\w./*-]*)`", section)
    assert len(named) > 40
    places = (TOP, TOP / "src" / "tidings")
    assert [n for n in named if not any(any(p.glob(n.rstrip("/"))) for p in places)] == []


def test_every_page_leads_to_the_words() -> None:
    pages = [path for path in (TOP / "docs").glob("*.md") if path.name != "words.md"]
    assert [path.name for path in pages if "(words.md" not in path.read_text()] == []


def test_words_are_each_explained_once() -> None:
    words = re.findall(r"^### (.+)$", (TOP / "docs" / "words.md").read_text(), re.MULTILINE)
    assert len(words) > 50
    assert len(words) == len(set(words))


# -- docs/filters.md names everything that the language has -------------------------------------


def rows_of(section: str, text: str) -> str:
    """The code in the tables of a section, without the bars of the table."""
    body = text.split(f"\n## {section}\n")[1].split("\n## ", maxsplit=1)[0]
    rows = "\n".join(line.replace("\\|", "¦") for line in body.splitlines() if line[:1] == "|")
    return "\n".join(re.findall(r"`([^`]+)`", rows)).replace("¦", "|")


def function_names() -> set[str]:
    table = {*functions.FUNCTIONS, *functions.ALIASES, *sql_functions()}
    named = table | special_calls._SPECIAL | set(special_calls._CASTS) | {"cast"}
    return named - special_calls._PRIVATE


def operator_names() -> set[str]:
    return {
        *expression.COMPARISONS,
        *dialect._ARITHMETIC,
        *dialect._PREDICATES,
        "AND",
        "OR",
        "!",
        "DIV",
    }


FILTERS_PAGE = (TOP / "docs" / "filters.md").read_text()


@pytest.mark.parametrize("name", sorted(function_names()))
def test_function_is_specified(name: str) -> None:
    assert re.search(rf"(?<!\w){name}\(", rows_of("Functions", FILTERS_PAGE))


@pytest.mark.parametrize("name", sorted(operator_names()))
def test_operator_is_specified(name: str) -> None:
    assert name in rows_of("Operators", FILTERS_PAGE).split()


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_reserved_word_is_listed(name: str) -> None:
    listed = FILTERS_PAGE.split("These words are reserved")[1].split("**Strings**")[0]
    assert name in re.findall(r"[A-Z]+", listed)


BOUNDS = {
    "length of the text of a filter": tokens.MAX_LENGTH,
    "depth of brackets": expression.MAX_DEPTH,
    "length of a regular expression": regular.MAX_PATTERN,
    "positions of a regular expression": regular.MOST_POSITIONS,
    "positions of such a pattern times bytes of a string": regular.MOST_STEPS,
    "text that `concat` makes": functions.MOST_TEXT,
    "tests of a form that a graph compares in full": covering.HEAVY,
    "boxes of a form | 64, or the number of tests if that is more, but not over": (
        rules.MOST_OF_TESTS
    ),
    "boxes of a form": rules.MOST_BOXES,
    "text of a value that IN or `arrays_overlap` repeats for each option (rule 2)": (
        rewrites.MOST_WRITTEN
    ),
    "intersections of boxes": boxes.EFFORT,
    "comparisons of boxes in one covering": covering.EFFORT,
    "combinations of points": point_images.MOST_POINTS,
}


@pytest.mark.parametrize(("what", "bound"), BOUNDS.items())
def test_bound_is_that_of_the_code(what: str, bound: int) -> None:
    section = FILTERS_PAGE.split("\n## Bounds\n")[1]
    row = section.split(f"\n| {what}")[1]
    assert re.findall(r"[\d,]*\d", row)[0] == f"{bound:,}"


def test_functions_that_spark_lacks_are_marked() -> None:
    table = FILTERS_PAGE.split("\n## Functions\n")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    lacking = {row[3 : row.index("(")] for row in rows if row.endswith("| no |")}
    private = {name for name in functions.FUNCTIONS if name in special_calls._PRIVATE}
    expected = {f.name for f in functions.FUNCTIONS.values() if not f.spark} - private
    by_parser = {"subject", "any"}  # not among FUNCTIONS
    assert lacking == expected | by_parser | {*sql_functions()}


# -- docs/pipelines.md and docs/command-line.md name what the code has --------------------------


def settings_named() -> set[str]:
    kinds = [settings.Settings, *get_args(settings.Source), *get_args(settings.Sink)]
    kinds += [settings.Subscriptions, settings.OutboxSettings, settings.Trigger]
    names = {name for kind in [*kinds, settings.SparkSettings] for name in kind.__struct_fields__}
    return names - {"folder"}  # where the file is


@pytest.mark.parametrize("name", sorted(settings_named()))
def test_setting_of_a_pipeline_file_is_listed(name: str) -> None:
    page = prose_of((TOP / "docs" / "pipelines.md").read_text())
    section = page.split("\n## The file\n")[1].split("\n## Subscriptions", maxsplit=1)[0]
    section += page.split("\n## Sinks\n")[1].split("\n## ", maxsplit=1)[0]
    assert re.search(rf"`\[*{name}\b", section)


def test_what_is_said_of_pipeline_files_is_so() -> None:
    page = (TOP / "docs" / "pipelines.md").read_text()
    rest = page.split("outbox reserves these names:")[1]
    taken = re.split(r"\.\s", rest, maxsplit=1)[0]  # that sentence
    assert re.findall(r"`(\w+)`", taken) == [*RESERVED_COLUMNS, EXTRA]
    assert f"`master` (`{settings.SparkSettings().master}`" in page


def test_exit_codes_are_listed() -> None:
    page = (TOP / "docs" / "command-line.md").read_text()
    table = page.split("\n## Exit codes\n")[1].split("\n## ", maxsplit=1)[0]
    codes = re.findall(r"^\| (\d+) \|", table, re.MULTILINE)
    assert codes == ["0", "1", "2", str(INTERRUPTED), "143"]
    assert str(INTERRUPTED) in (run_pipeline.__doc__ or "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section(command: str) -> None:
    """Of its own, or in that of its group; and the table at the top leads to it."""
    page = prose_of((TOP / "docs" / "command-line.md").read_text())
    group = command.partition(" ")[0]
    name = command if f"\n## {command}\n" in page else group
    assert f"\n## {name}\n" in page
    section = page.split(f"\n## {name}\n")[1].split("\n## ", maxsplit=1)[0]
    assert name == command or f"`{command} " in section
    assert f"[`tidings {name}`](#{name.replace(' ', '-')})" in page


# -- each check can fail -----------------------------------------------------------------------


def invented(text: str) -> Page:
    return Page(TOP / "docs" / "invented.md", text)


BROKEN = [
    (problems_of_python, "```python\n>>> 1 + 1\n3\n```\n"),
    (problems_of_python, "```python\nx = 1\n```\n```python\n>>> x\n2\n```\n"),
    (problems_of_filters, "```sql\nprice > 5\n\nprice >> 5\n```\n"),
    (problems_of_links, "[gone](gone.md)"),
    (problems_of_links, "# Here\n[gone](#there)"),
    (problems_of_links, "[gone](filters.md#gone)"),
    (problems_of_paths, "`src/tidings/gone.py`"),
]


@pytest.mark.parametrize(("check", "text"), BROKEN)
def test_check_finds_a_problem(check: Check, text: str) -> None:
    assert len(check(invented(text))) == 1


SOUND = [
    (problems_of_python, "```python\nx = 1\n```\n```python\n>>> x\n1\n```\n"),
    (problems_of_filters, "```sql\nprice > 5\n\nprice > 6\n```\n"),
    (problems_of_links, "# Here it is\n[here](#here-it-is) [there](filters.md#values)"),
    (problems_of_paths, "`src/tidings/filters/` `tests/docs/test_docs.py`"),
]


@pytest.mark.parametrize(("check", "text"), SOUND)
def test_check_finds_no_problem(check: Check, text: str) -> None:
    assert check(invented(text)) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("$ echo one\none\n$ echo two three\ntwo ...\n", 0),
        ("$ echo one\ntwo\n", 1),
        ("$ echo one\none\ntwo\n", 1),
        ("$ echo one \\\n>   two\none two\n", 0),
        ("$ cat /nowhere\ncat: ...\n$ echo $?\n0\n", 1),
        ("$ make nothing\nis not run\n", 0),
        ("$ echo one; exit 3\none\n$ echo two\ntwo\n", 1),
    ],
)
def test_console_problems(text: str, count: int, tmp_path: Path) -> None:
    assert len(problems_of_console(invented(f"```console\n{text}```\n"), tmp_path)) == count


def test_a_block_that_is_not_closed_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 2 is not closed"):
        blocks_of("```python\n>>> 1\n")
