"""All errors that tidings raises, as one class tree.

    TidingsError
    |-- FilterError         a filter was refused: says where, what was found, what was expected
    |   |-- LimitError      a valid filter exceeds a limit
    |   `-- RefusedFilters  several filters with ids: lists what is wrong with each
    |-- AttributesError     an attribute declaration is invalid
    |-- NotificationError   a notification does not fit the declared attributes
    |-- Undecided           a notification can't be matched before predicates are called
    |-- GraphError          a node belongs to another graph, or an interest can't be placed
    `-- EnvironmentProblem  something outside tidings is missing: Java, a package, a file

Each message is one sentence that tells the reader what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

MOST_LISTED = 10  # the most refused filters that one message lists


class TidingsError(Exception):
    """The base class: catch this to catch every error of tidings."""


class FilterError(TidingsError):
    """A filter was refused by the parser.

    `text` is the whole filter. `position` is the offset (from 0) of the first character that the
    parser could not accept. `reason` says what was found there and what was expected.
    """

    def __init__(self, reason: str, text: str = "", position: int = 0) -> None:
        self.reason = reason
        self.text = text
        self.position = position
        super().__init__(f"{reason} (at character {position + 1})")

    def pointer(self, width: int = 72) -> str:
        """Return two lines: the text around the position, and a caret under the position."""
        start = max(0, self.position - width // 2)
        piece = self.text[start : start + width]
        shown = "".join(c if c.isprintable() else "·" for c in piece)
        return f"{shown}\n{' ' * (self.position - start)}^"


class LimitError(FilterError):
    """A valid filter exceeds a limit: its regular expression needs backtracking, a pattern or list
    is too large, or placing it in the graph takes too much work. A later release may lower a limit;
    if a stored filter then exceeds the limit, the filter is set aside, not deleted."""


class Undecided(TidingsError):
    """A notification can't be matched yet, because filters call predicates whose results are not
    known yet. `calls` lists these calls."""

    def __init__(self, calls: Iterable[Any]) -> None:
        self.calls = tuple(calls)
        super().__init__("predicates must be called before this notification can be matched")


class RefusedFilters(FilterError):
    """Some of many filters were refused. `problems` maps the id of each refused filter to its
    error; the message lists the first ones."""

    def __init__(self, problems: Mapping[Any, FilterError], total: int) -> None:
        self.problems = dict(problems)
        first = next(iter(self.problems.values()))
        count = len(self.problems)
        few = islice(self.problems.items(), MOST_LISTED)
        listed = "; ".join(f"{id_!r}: {one}" for id_, one in few)
        more = f"; and {count - MOST_LISTED:,} more" if count > MOST_LISTED else ""
        many = f"{count:,} of {total:,} filters are" if total > 1 else "a filter is"
        super().__init__(f"{many} refused; {listed}{more}", first.text, first.position)
        self.args = (self.problems, total)  # pickle passes these arguments to a new instance

    def __str__(self) -> str:
        return self.reason  # the listed errors contain their own positions


class Problem(NamedTuple):
    """One problem with a declaration or a configuration: the keys that lead to its place, and a
    sentence that describes it."""

    place: tuple[str, ...]
    sentence: str


class AttributesError(TidingsError):
    """An attribute declaration is invalid. `problems` lists all problems, and the message has one
    line for each."""

    def __init__(self, message: str = "", problems: Iterable[Problem] = ()) -> None:
        self.problems = tuple(problems) or (Problem((), message),)
        super().__init__(message or "\n".join(one.sentence for one in self.problems))


class NotificationError(TidingsError):
    """A notification does not fit the declared attributes."""


class GraphError(TidingsError):
    """A node was used with a content graph that it does not belong to, or an interest can't be
    placed in the graph: an unknown topic, a class of another tree, objects without an order."""


class EnvironmentProblem(TidingsError):
    """Something outside tidings is missing or does not work: Java, a package, a file."""
