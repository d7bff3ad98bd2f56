"""Draw sentences of the project at random, for somebody to read aloud.

    python tools/sentences.py --seed 14 --count 60

A third of the sentences come from docstrings and comments, a third from messages (errors, log lines
and the help of commands), and a third from pages and their tables. Rewrite the sentences at which a
reader stops.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
FEWEST = 4  # words of a sentence
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}  # of log lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seed", type=int, default=14)
    options.add_argument("--count", type=int, default=60)
    options.add_argument("--top", type=Path, default=TOP)
    given = options.parse_args()
    sources = sorted((given.top / "src").rglob("*.py"))
    pages = sorted([*given.top.glob("*.md"), *(given.top / "docs").rglob("*.md")])
    kinds = [
        [one for path in sources for one in comments_of(path)],
        [one for path in sources for one in messages_of(path)],
        [one for path in pages for one in page_sentences_of(path)],
    ]
    chance = random.Random(given.seed)
    for kind in kinds:
        for where, sentence in chance.sample(kind, given.count // len(kinds)):
            print(f"{where.relative_to(given.top)}: {sentence}")


def comments_of(path: Path) -> Iterator[tuple[Path, str]]:
    """Sentences of docstrings and comments."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            paragraphs = re.split(r"\n\s*\n", _docstring(node))
            plain = [one for one in paragraphs if not re.search(r"^ {4}| {3}->", one, re.MULTILINE)]
            yield from sentences_of(path, _split_items("\n\n".join(plain)))
        for above, below in pairwise(_body_of(node)):
            if isinstance(above, ast.Assign | ast.AnnAssign):
                yield from sentences_of(path, _of_attribute(below))
    for comment in _comments(source):
        yield from sentences_of(path, comment)


def _docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A docstring without the indentation of its code. `ast.get_docstring` would also remove the
    indentation of an example if nothing else follows the first line."""
    text = ast.get_docstring(node, clean=False) or ""
    return re.sub(rf"^ {{{node.body[0].col_offset}}}", "", text, flags=re.MULTILINE)


def _body_of(node: ast.AST) -> list[ast.stmt]:
    return node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else []


def _of_attribute(below: ast.stmt) -> str:
    """The docstring of an attribute: the string below its assignment, if there is one."""
    found = below.value if isinstance(below, ast.Expr) else None
    text = found.value if isinstance(found, ast.Constant) else ""
    return text if isinstance(text, str) else ""


def _split_items(text: str) -> str:
    """Make each item of a list a paragraph."""
    return re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n", text, flags=re.MULTILINE)


def _comments(source: str) -> Iterator[str]:
    """The comments of a module. Lines with nothing but a comment can continue the comment above;
    titles of sections are left out."""
    lines: list[str] = []
    last = (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("# --"):
            continue
        continues = token.start == (last[0] + 1, last[1]) and token.line.lstrip().startswith("#")
        if lines and not continues:
            yield "\n".join(lines)
            lines = []
        lines.append(token.string.lstrip("# "))
        last = token.start
    yield "\n".join(lines)


def messages_of(path: Path) -> Iterator[tuple[Path, str]]:
    """The texts of errors and log lines, with {} where something is put in, and the help of
    options, arguments and groups of commands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            yield from sentences_of(path, _text_of(node.exc.args[0]))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from sentences_of(path, _shown_by(node, node.func))


def _shown_by(call: ast.Call, function: ast.Attribute) -> str:
    """The text that a call of typer or of a logger shows; empty if it is another call."""
    if function.attr in ("Option", "Argument", "Typer"):
        return "".join(_text_of(one.value) for one in call.keywords if one.arg == "help")
    is_log = isinstance(function.value, ast.Name) and function.value.id in ("_log", "log", "logger")
    if is_log and function.attr in LEVELS and call.args:
        return re.sub(r"%[-\d.,]*[a-z]", "{}", _text_of(call.args[0]))
    return ""


def _text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(one) for one in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{}"
    return ""


def page_sentences_of(path: Path) -> Iterator[tuple[Path, str]]:
    """Sentences of a page and of the cells of its tables."""
    page = path.read_text()
    yield from sentences_of(path, prose_of(page))
    yield from sentences_of(path, cells_of(page))


def prose_of(page: str) -> str:
    """A page without code, tables, headings, tags and the addresses of links. Each item of a list
    is a paragraph."""
    lines = _plain_lines(page)
    return _split_items(
        "\n".join(one for one in lines if not re.match(r"\||#|\[[^]]*\]:| {4}", one))
    )


def cells_of(page: str) -> str:
    """The cells of the tables of a page, each as a paragraph."""
    rows = (one.strip().strip("|") for one in _plain_lines(page) if one.startswith("|"))
    return "\n\n".join(cell for row in rows for cell in re.split(r"(?<!\\)\|", row))


def _plain_lines(page: str) -> list[str]:
    """The lines of a page without code, tags and the addresses of links. A link to a decision loses
    its number, which is not the end of a sentence."""
    page = re.sub(r"```.*?```|<!--.*?-->|</?[a-z][^>]*>", "", page, flags=re.DOTALL)
    page = re.sub(r"\[(?:\d{3}\. )?([^]]*)\]\([^)\s]*\)", r"\1", page)
    return page.split("\n")


def sentences_of(path: Path, text: str) -> Iterator[tuple[Path, str]]:
    for paragraph in re.split(r"\n\s*\n", text):
        for one in re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(paragraph.split())):
            if len(one.split()) >= FEWEST:
                yield path, one


if __name__ == "__main__":
    main()
