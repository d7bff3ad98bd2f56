"""Notifications for which columns could easily give other tags: tags of many against tags of each,
in compiled nodes and in recent ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidings.channel.interests import ArrayInterests, computing, tagging
from tidings.filters import Attributes, parse
from tidings.model import Event, Extra, TidingsError
from tidings.preprocessing.contents import Contents

Types = dict[str, str]
Outcome = list[int] | str


@pytest.fixture(autouse=True)
def _no_limits_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, what is tagged together depends on how busy the machine is."""
    for name in ("SLICE", "COMPUTED", "TOGETHER"):
        monkeypatch.setattr(tagging, name, 1000.0)
    monkeypatch.setattr(computing, "PAUSE", 0.0)


def tag_each(interests: ArrayInterests, contents: list[bytes]) -> list[Outcome]:
    found: list[Outcome] = []
    for content in contents:
        try:
            found.append(sorted(interests.tag(content)))
        except TidingsError as problem:
            found.append(str(problem))
    return found


def tag_many(interests: ArrayInterests, contents: list[bytes]) -> list[Outcome]:
    tagged = interests.tag_many(contents)
    assert len(tagged.starts) == len(contents) + 1
    return [
        str(tagged.refused[at])
        if at in tagged.refused
        else tagged.nodes[tagged.starts[at] : tagged.starts[at + 1]].tolist()
        for at in range(len(contents))
    ]


def compare(
    types: Types | None, extra: Extra, filters: list[str], usual: list[bytes], odd: list[bytes]
) -> None:
    """Each odd notification comes among usual ones, which are then tagged again without it."""
    attributes = None if types is None else Attributes(types, extra=extra)
    for is_compiled in (False, True):
        for first in ([], usual * 120):
            interests = ArrayInterests(attributes)
            for text in filters:
                interests.place(text.encode())
            if is_compiled:
                interests.seal_recent()
            if first:
                tag_many(interests, first)
            for one in odd:
                contents = usual * 60
                for content in ([*contents, one, *contents], contents * 2):
                    assert tag_many(interests, content) == tag_each(interests, content), one


@pytest.mark.parametrize(
    ("types", "content"),
    [
        ({'`a"b`': "integer"}, b'{"a\\"b": 1}'),
        ({"`a\\b`": "integer"}, b'{"a\\\\b": 1}'),
        ({'u': 'struct<`a"b`: integer>'}, b'{"u": {"a\\"b": 1}}'),
        ({'u': 'list<struct<v: map<string, struct<`a"b`: integer>>>>'}, b'{"u": []}'),
    ],
)  # fmt: skip
def test_declared_names_with_escapes(types: Types, content: bytes) -> None:
    """Before, a channel that declares such a name could not start."""
    path = {"u": 'u.`a"b`' if "list" not in types.get("u", "") else "size(u)"}
    (name,) = types
    compare(types, "keep", [f"{path.get(name, name)} = 1"], [b"{}", content], [content])


@pytest.mark.parametrize("extra", ["open", "keep"])
@pytest.mark.parametrize("types", [None, {"n": "integer"}, {"n": "integer", "l": "list<string>"}])
def test_undeclared_names_with_escapes(types: Types | None, extra: Extra) -> None:
    """Before, such a name damaged the columns, and all later notifications were refused."""
    odd = [b'{"n": 1, "a\\"b": 1}', b'{"n": 1, "a\\\\b": 1}', b'{"n": 1, "\\u0001": 1}',
           b'{"n": 1, "\\u007f": 1}', b'{"n": 1, "": 1}', b'{"n": 1, "\\ud83d\\ude00": 1}',
           b'{"n": 1, "\\ud800": 1}', b'{"n": 1, "z": 1}']  # fmt: skip
    compare(types, extra, ["n = 1", "n + 1 = 3"], [b'{"n": 1}', b'{"n": 2}'], odd)


def test_decimals() -> None:
    """The type decimal accepts only digits of ASCII, and a decimal that is written as 1.0 is not an
    integer."""
    odd = [b'{"price": %s}' % one for one in (
        b"1", b"1.0", b"1.00", b'"1_0"', '"\uff11"'.encode(), b'"1.10"', b"1.1", b"1e0", b"1.123",
    )]  # fmt: skip
    odd += [b'{"prices": [%s]}' % one for one in (b'"1_0"', b"1.0", b"1", b"1.1", b"null")]
    compare(
        {"price": "decimal(10,2)", "prices": "list<decimal(10,2)>"}, "keep",
        ["price div 1 = 1", "price = 10", "price % 2 = 1", "price = 1.1", "price = 1",
         "array_contains(prices, 10)", "size(prices) = 1", "array_contains(prices, 1.1)"],
        [b'{"price": 2.5}', b'{"price": 1}'], odd,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["integer", "date", "boolean", "double", "string"])
def test_keys_of_maps(kind: str) -> None:
    odd = [b'{"m": {"1": "x"}}', b'{"m": {"2024-01-01": "x"}}', b'{"m": {"true": "x"}}',
           b'{"m": {"1.0": "x"}}', b'{"m": {"k": "x"}}', b'{"m": {}}', b'{"m": null}']  # fmt: skip
    filters = [f"m.`{key}` = 'x'" for key in ("1", "2024-01-01", "true", "1.0", "k")]
    compare({"m": f"map<{kind}, string>", "n": "integer"}, "keep", filters, [b'{"n": 1}'], odd)


@pytest.mark.parametrize("types", [None, {"n": "integer", "word": "string"}])
@pytest.mark.parametrize("filters", [["word = 'a'"], ["n = 1", "length(word) = 1", "word = 'a'"]])
def test_a_repeated_attribute(types: Types | None, filters: list[str]) -> None:
    """Single notifications are refused if any of the values is not UTF-8."""
    odd = [b'{"word": "\xff", "word": "a"}', b'{"word": "b", "word": "a"}', b'{"n": 2, "n": 1}',
           b'{"word": null, "word": "a"}', b'{"word": "a", "word": null}']  # fmt: skip
    compare(types, "keep" if types else "open", filters, [b'{"n": 1, "word": "b"}'], odd)


def test_a_notification_that_only_columns_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused, and the others are tagged."""
    interests = ArrayInterests()
    interests.place(b"word = 'a'")
    interests.place(b"length(word) = 1")
    contents = [b'{"word": "bb"}', b'{"word": "a"}', b'{"word": "a", "n": 1}'] * 40
    usual = tag_many(interests, contents)
    read = Contents.read

    def refuse(self: Contents, content: bytes) -> Event:
        if b"n" in content:
            raise TidingsError("no")
        return read(self, content)

    monkeypatch.setattr(Contents, "read", refuse)
    for seconds in (1000.0, -1.0):
        monkeypatch.setattr(tagging, "TOGETHER", seconds)
        assert tag_many(interests, contents) == [*usual[:2], "no"] * 40


@pytest.mark.parametrize("types", [None, {"tags": "list<string>", "ints": "list<integer>"}])
def test_lists_of_several_types(types: Types | None) -> None:
    """A column of Arrow can't hold lists of strings and lists of integers."""
    odd = [b'{"ints": [1], "tags": ["a"]}', b'{"tags": null, "ints": [1]}', b'{"tags": []}']
    filters = ["array_contains(coalesce(tags, ints), 'a')", "size(tags) = 1", "n + 1 = 2", "n = 1"]
    compare(
        types and types | {"n": "integer"}, "keep" if types else "open", filters,
        [b'{"n": 1}', b'{"ints": [1]}', b'{"tags": ["a"]}'] if types else [b'{"n": 1}'], odd,
    )  # fmt: skip


def test_a_batch_that_takes_too_long_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it was matched: a call of Arrow is not interrupted, so no filter would ever be set
    aside."""

    class Clock:
        now = 0.0

        def thread_time(self) -> float:
            Clock.now += 0.004
            return Clock.now

        def monotonic(self) -> float:
            return 0.0

    monkeypatch.setattr(computing, "PAUSE", 1.0)
    monkeypatch.setattr(computing, "time", Clock())
    filters = computing.Computing(0.01)
    filters.add(1, parse("upper(word) = 'A'"))
    batch = pa.RecordBatch.from_pydict({"word": ["a"] * 20})
    for seconds in (0.02, 0.005):  # the second time, it takes too long
        found = filters.match_batch(batch, seconds)
        assert found is not None
        assert found[1].tolist() == [1] * 20
    assert filters.match_batch(batch, 1000.0) is None


@pytest.mark.parametrize(
    ("types", "text", "numbers", "together"),
    [
        (None, "length(word) = 1", (b"3", b"0.5"), True),  # x is not computed with
        (None, "cast(x AS string) = '3'", (b"3", b"0.5"), False),
        (None, "cast(x AS string) = '3'", (b"3", b"4"), True),
        (None, "cast(x AS string) = '3'", (b"3.0", b"0.5"), True),
        ({"x": "double"}, "x * 2 = 6", (b"3", b"0.5"), True),
        ({"x": "double", "l": "list<string>"}, "x * 2 = 6", (b"3", b"0.5"), True),
    ],
)
def test_whole_numbers_among_doubles(
    types: Types | None, text: str, numbers: tuple[bytes, bytes], together: bool
) -> None:
    """In a column of doubles, an undeclared 3 is 3.0, which is another text. Other filters that
    compute are not affected."""
    interests = ArrayInterests(None if types is None else Attributes(types | {"word": "string"}))
    interests.place(text.encode())
    interests.place(b"x > 2")
    contents = [b'{"word": "a", "x": %s}' % number for number in numbers] * 60
    for _ in range(2):  # the second time, all attributes are known
        assert tag_many(interests, contents) == tag_each(interests, contents)
    assert (interests._nodes.computing._together is not None) == together


def test_filters_that_compute_are_forgotten() -> None:
    filters = computing.Computing(0.01)
    for number, text in enumerate(("x * 2 = 6 AND y = 1", "x + z = 4", "x % 7 = 3")):
        filters.add(number, parse(text))
    for number in range(3):
        assert filters.compute_with(["y", "x"])
        assert filters.compute_with(["z"]) == (number < 2)
        assert not filters.compute_with(["y"])
        filters.remove(number)
    assert not filters.compute_with(["x", "z"])
