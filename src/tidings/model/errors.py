"""Everything that can go wrong, as one tree.

    TidingsError
    |-- FilterError         a filter's text is refused: where, what was found, what was expected
    |-- AttributesError     a declaration of attributes makes no sense
    |-- NotificationError   a notification does not fit the declared attributes
    |-- GraphError          a node of another graph, an interest that has no place in this one
    `-- EnvironmentProblem  something outside is missing: Java, a package, a file

The message of each is one sentence that a person can act on.
"""

from __future__ import annotations


class TidingsError(Exception):
    """The root: catch this to catch all of them."""


class FilterError(TidingsError):
    """A filter that was refused when it was parsed.

    `text` is the whole filter, `position` the offset of the first character that could not be
    taken (0 for the first), `reason` what was found there and what was expected.
    """

    def __init__(self, reason: str, text: str = "", position: int = 0) -> None:
        self.reason = reason
        self.text = text
        self.position = position
        super().__init__(f"{reason} (at character {position + 1})")

    def pointer(self, width: int = 72) -> str:
        """Two lines: the part of the text around the position, and a caret under it."""
        start = max(0, self.position - width // 2)
        piece = self.text[start : start + width]
        shown = "".join(c if c.isprintable() else "·" for c in piece)
        return f"{shown}\n{' ' * (self.position - start)}^"


class LimitError(FilterError):
    """A valid filter beyond a limit: a regular expression that needs backtracking, a pattern or a
    list that is too large, too much work to find its place. Limits may become stricter in a later
    release; a stored filter that then exceeds one is set aside, not deleted."""


class AttributesError(TidingsError):
    """A declaration of attributes that makes no sense."""


class NotificationError(TidingsError):
    """A notification that does not fit the declared attributes."""


class GraphError(TidingsError):
    """A node that does not belong to the content graph it was used with, or an interest that can
    have no place in it: an unknown topic, a class of another tree, objects that are in no order."""


class EnvironmentProblem(TidingsError):
    """Something outside tidings is missing or does not work: Java, a package, a file."""
