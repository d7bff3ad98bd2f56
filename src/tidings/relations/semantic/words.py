"""Splits text into words, leaves out stop words, and finds the stems of words.

The stems and the stop words come from the packages snowballstemmer and stop-words (`pip install
"tidings[relations]"`), which are imported on first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from tidings.model import EnvironmentProblem
from tidings.relations.semantic.term_values import name_key

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
SHORTEST = 2  # shorter strings are not words


class Words:
    """Reads words of one language, which is given by its English name."""

    def __init__(self, language: str = "english") -> None:
        self.language = language
        self._stop, self._stem = _load(language)

    def stem(self, word: str) -> str:
        """The stem of a word, or of each word of a name such as `hot air balloon`."""
        return " ".join(map(self._stem, name_key(word).split(" ")))

    def of_text(self, text: str) -> list[str]:
        """The distinct words of some text, in order, without stop words."""
        words = (one.replace("’", "'") for one in _WORD.findall(name_key(text)))
        kept = (one for one in words if len(one) >= SHORTEST and one not in self._stop)
        return list(dict.fromkeys(kept))


@lru_cache(maxsize=8)
def _load(language: str) -> tuple[frozenset[str], Callable[[str], str]]:
    try:
        import snowballstemmer
        import stop_words
    except ImportError:
        raise EnvironmentProblem(
            "tags are extracted from text with the packages snowballstemmer and stop-words, which "
            "are not installed: pip install 'tidings[relations]'"
        ) from None
    known = sorted(set(snowballstemmer.algorithms()) & set(stop_words.LANGUAGE_MAPPING.values()))
    if language not in known:
        raise EnvironmentProblem(
            f"found the language '{language}', expected one of {', '.join(known)}"
        )
    stemmer = snowballstemmer.stemmer(language)
    return frozenset(map(name_key, stop_words.get_stop_words(language))), stemmer.stemWord
