"""The sentences that tools/sentences.py draws, from a module and a page with one of each kind."""

from __future__ import annotations

from pathlib import Path

from tools import sentences

MODULE = '''
"""A module that shows each kind."""
import logging
import typer

_log = logging.getLogger(__name__)
app = typer.Typer(help="Commands that show what is stored.")
AMOUNT = typer.Option("--count", help="How many rows are shown. All rows by default.")


def show(name: str) -> None:
    # a comment that is long enough
    _log.warning("the folder '%s' is read again in %.1f s", name, 2)
    _log.info(name)
    if not name:
        raise ValueError(f"found no name for {name}, expected a text")
    print("not a message of this kind at all")
'''
PAGE = """# A heading of four words

A page with [one link](there.md) in it. It has a second sentence.

- [009. A parser of our own](009-a-parser-of-our-own.md)

| key | meaning |
| --- | --- |
| `a\\|b` | what a node of the tree keeps. The rest is on disk. |
| `b` | see [the page](x.md) for more words |

```text
code is left out of all this
```
"""


def test_messages_and_help(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(MODULE)
    assert sorted(text for _, text in sentences.messages_of(module)) == [
        "All rows by default.",
        "Commands that show what is stored.",
        "How many rows are shown.",
        "found no name for {}, expected a text",
        "the folder '{}' is read again in {} s",
    ]
    assert sorted(text for _, text in sentences.comments_of(module)) == [
        "A module that shows each kind.",
        "a comment that is long enough",
    ]


def test_pages_and_their_tables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert [text for _, text in sentences.page_sentences_of(page)] == [
        "A page with one link in it.",
        "It has a second sentence.",
        "A parser of our own",
        "what a node of the tree keeps.",
        "The rest is on disk.",
        "see the page for more words",
    ]


def test_no_sentence_of_the_decisions_is_cut_at_its_number() -> None:
    index = sentences.TOP / "docs" / "decisions" / "index.md"
    found = [text for _, text in sentences.page_sentences_of(index)]
    assert "A parser of our own" in found
    assert not any("]" in text for text in found)
