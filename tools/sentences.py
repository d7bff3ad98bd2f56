"""Draw random sentences from the project, for somebody to read aloud.

    python tools/sentences.py --seed 14 --count 60

One third comes from docstrings and comments, one third from error messages, and one third from
pages. Rewrite every sentence that makes a reader stop.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
FEWEST = 4  # words in a sentence, at least


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
    """The sentences in docstrings and comments."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            paragraphs = re.split(r"\n\s*\n", text)
            plain = [one for one in paragraphs if not re.search(r"^ {4}", one, re.MULTILINE)]
            yield from sentences_of(path, "\n\n".join(plain))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from sentences_of(path, token.string.lstrip("# "))


def messages_of(path: Path) -> Iterator[tuple[Path, str]]:
    """The sentences in error messages, with {} for inserted values."""
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
    """The text of a page without code, tables, headings and pictures."""
    page = re.sub(r"```.*?```|<[^>]*>", "", page, flags=re.DOTALL)
    return "\n".join(line for line in page.split("\n") if not line.startswith(("|", "#", "[")))


def sentences_of(path: Path, text: str) -> Iterator[tuple[Path, str]]:
    for paragraph in re.split(r"\n\s*\n", text):
        for one in re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(paragraph.split())):
            if len(one.split()) >= FEWEST:
                yield path, one


if __name__ == "__main__":
    main()
