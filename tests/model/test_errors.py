"""The tree of errors, and where a FilterError points."""

from __future__ import annotations

import pytest

from tidings import model
from tidings.model import FilterError, LimitError, RefusedFilters, TidingsError, Undecided

KINDS = [
    model.AttributesError,
    model.EnvironmentProblem,
    model.GraphError,
    model.NotificationError,
]


@pytest.mark.parametrize("kind", [*KINDS, FilterError])
def test_all_of_them_are_caught_as_one(kind: type[TidingsError]) -> None:
    with pytest.raises(TidingsError, match="no good"):
        raise kind("no good")


@pytest.mark.parametrize("kind", KINDS)
def test_they_say_what_they_were_told(kind: type[TidingsError]) -> None:
    assert str(kind("no good")) == "no good"
    assert not issubclass(kind, FilterError)


def test_every_error_of_the_room_is_in_the_tree() -> None:
    found = [one for one in vars(model).values() if isinstance(one, type)]
    errors = {one for one in found if issubclass(one, Exception)}
    assert errors == {TidingsError, FilterError, LimitError, RefusedFilters, Undecided, *KINDS}
    others = errors - {TidingsError, LimitError, RefusedFilters}
    assert all(one.__bases__ == (TidingsError,) for one in others)
    assert LimitError.__bases__ == RefusedFilters.__bases__ == (FilterError,)


def test_a_filter_error_counts_characters_from_one() -> None:
    error = FilterError("found 'x'", "a x", 2)
    assert (error.reason, error.text, error.position) == ("found 'x'", "a x", 2)
    assert str(error) == "found 'x' (at character 3)"
    assert str(FilterError("nothing")) == "nothing (at character 1)"


@pytest.mark.parametrize(
    ("text", "position", "width", "lines"),
    [
        ("", 0, 72, ["", "^"]),
        ("a >> b", 3, 72, ["a >> b", "   ^"]),
        ("a >>", 4, 72, ["a >>", "    ^"]),  # the end of the text
        ("a\n>\tb\0", 2, 72, ["a·>·b·", "  ^"]),
        ("äöü > 1", 4, 72, ["äöü > 1", "    ^"]),
        ("abcdefghij", 0, 4, ["abcd", "^"]),
        ("abcdefghij", 2, 4, ["abcd", "  ^"]),
        ("abcdefghij", 5, 4, ["defg", "  ^"]),
        ("abcdefghij", 9, 4, ["hij", "  ^"]),
        ("abcdefghij", 10, 4, ["ij", "  ^"]),
    ],
)
def test_the_pointer(text: str, position: int, width: int, lines: list[str]) -> None:
    assert FilterError("no", text, position).pointer(width).split("\n") == lines


def test_a_long_text_is_cut_around_the_position() -> None:
    shown, caret = FilterError("no", "a" * 500 + "!" + "a" * 500, 500).pointer().split("\n")
    assert len(shown) == 72
    assert shown[caret.index("^")] == "!"
