"""Tags by meaning: a tree of words with synonyms.

A tag is looked up as it is written, then by its stem, so that `roses` finds rose and `delayed`
finds delay. If the thesaurus does not have a word, the tag is the stem of the word.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tidings.relations.semantic.term_values import name_key
from tidings.relations.semantic.tree import NameTree
from tidings.relations.semantic.words import Words


class Thesaurus:
    """A tree of words. Without `words`, nothing is stemmed, and no package is needed."""

    def __init__(self, words: Words | None = None) -> None:
        self.tree = NameTree()
        self.words = words
        self._stems: dict[str, str] = {}

    def add(self, name: str, under: Iterable[str] = (), also: Iterable[str] = ()) -> str:
        """Add a word under words that the thesaurus already has."""
        also = list(also)
        added = self.tree.add(name_key(name), under, also)
        if self.words is not None:
            for one in (name, *also):
                self._stems.setdefault(self.words.stem(one), added)
        return added

    def find(self, word: str) -> str | None:
        """The tag that a word means; None if the thesaurus does not have it."""
        found = self.tree.find(word)
        if found is None and self.words is not None:
            found = self._stems.get(self.words.stem(word))
        return found

    def tag(self, word: str) -> str:
        """The tag that a word means, or the stem of the word."""
        found = self.find(word)
        if found is not None:
            return found
        return name_key(word) if self.words is None else self.words.stem(word)

    def tags_of_text(self, text: str) -> list[str]:
        """The tags of some text: those of all words except stop words, and those of known names of
        two words."""
        words = (self.words or Words()).of_text(text)
        pairs = (f"{one} {two}" for one, two in pairwise(words))
        several = [found for pair in pairs if (found := self.tree.find(pair)) is not None]
        return list(dict.fromkeys([*several, *map(self.tag, words)]))

    def __len__(self) -> int:
        return len(self.tree)
