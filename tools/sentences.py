"""Draw sentences of the project at random, for somebody to read aloud.

    python tools/sentences.py --seed 14 --count 60

A third of the sentences come from docstrings and comments, a third from error messages, and a third
from pages. Rewrite the sentences at which a reader stops.
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
        [one for path in pages for one in sentences_of(path, prose_of(path.read_text()))],
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
    """The texts of errors, with {} where something is put in."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            yield from sentences_of(path, _text_of(node.exc.args[0]))


def _text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(one) for one in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{}"
    return ""


def prose_of(page: str) -> str:
    """A page without code, tables, headings, tags and the addresses of links. Each item of a list
    is a paragraph."""
    page = re.sub(r"```.*?```|<!--.*?-->|</?[a-z][^>]*>", "", page, flags=re.DOTALL)
    lines = (line for line in page.split("\n") if not re.match(r"\||#|\[[^]]*\]:| {4}", line))
    return _split_items(re.sub(r"\]\([^)\s]*\)", "]", "\n".join(lines)))


def sentences_of(path: Path, text: str) -> Iterator[tuple[Path, str]]:
    for paragraph in re.split(r"\n\s*\n", text):
        for one in re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(paragraph.split())):
            if len(one.split()) >= FEWEST:
                yield path, one


if __name__ == "__main__":
    main()
