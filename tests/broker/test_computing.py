"""Filters that compute: an owner that exceeds its share loses filters, and no other owner does."""

from __future__ import annotations

import random

import msgspec
import pyarrow as pa
import pytest
from tests.filters.strategies import event as random_event, schema
from tests.matching.test_matcher import random_filters
from tests.repeats import draws, rounds

from tidings.channel.interests import ArrayInterests
from tidings.channel.interests.computing import (
    MOST_INDEXED,
    MOST_NEEDED,
    Computing,
    find_required_attribute,
)
from tidings.channel.interests.index_kinds import computes
from tidings.filters import parse
from tidings.model import NotificationError
from tidings.routing.protocol.limits import Limits
from tidings.routing.root.interests import TooMuchWork

TEXT = "ab" * 4_000
HEAVY = [f"s LIKE '%a{'_' * n}c%{'_' * n}d%'" for n in range(50, 90)]


class Many:
    """Filters of several owners."""

    def __init__(self, **limits: int) -> None:
        self.interests = ArrayInterests(limits=Limits(**limits))
        self.owners: dict[int, tuple[str, ...]] = {}

    def place(self, owner: str, *texts: str) -> list[int]:
        numbers = [self.interests.place(text.encode()).node for text in texts]
        for number in numbers:
            self.owners[number] = *self.owners.get(number, ()), owner
        return numbers

    def tag(self, content: dict[str, object]) -> tuple[list[int], dict[int, str]]:
        """The nodes, and those that are beyond a share, which are set aside."""
        text = msgspec.json.encode(content)
        try:
            return sorted(self.interests.tag(text)), {}
        except TooMuchWork:
            found = self.interests.tag_fairly(text, self.owners.__getitem__)
        self.interests.set_aside(found.over)
        return sorted(found.nodes), found.over


def test_one_filter_each_is_no_reason() -> None:
    """A publisher of one long text made 73 of a hundred subscribers lose their only filter."""
    many = Many()
    for number in range(100):
        many.place(f"honest {number}", f"s LIKE '%timeout {number}%'")
    text = "timeout 7 " + "nothing of it " * 70_000
    for _ in range(3):
        assert many.tag({"s": text}) == ([8], {})


def test_a_batch_adds_only_some_filters_to_its_index(seed: int) -> None:
    """The event loop waits meanwhile. Until all are added, notifications are matched one by one."""
    rng, count = random.Random(seed), 2 * MOST_INDEXED + 5
    computing = Computing(1.0)
    filters = {at: parse(f"length(s) > {at % 40} AND n = {at % 7}") for at in range(count)}
    for at, one in filters.items():
        computing.add(at, one)
    rows = [{"s": "x" * rng.randrange(50), "n": rng.randrange(9)} for _ in range(30)]
    batch = pa.RecordBatch.from_pylist(rows)
    assert computing.match_batch(batch, 60.0) is None
    for gone in (0, 1, count - 1):  # the last one still waits
        computing.remove(gone)
        del filters[gone]
    assert computing.match_batch(batch, 60.0) is None
    for new in (count, count + 1):
        found = computing.match_batch(batch, 60.0)
        assert found is not None
        matches = {(at, n) for at, row in enumerate(rows) for n, one in filters.items()
                   if one.matches(row)}  # fmt: skip
        assert set(zip(found[0].tolist(), found[1].tolist(), strict=True)) == matches
        filters[new] = parse("length(s) > 3")
        computing.add(new, filters[new])


def test_who_spends_most_is_not_who_has_most() -> None:
    many = Many()
    honest = many.place("honest", *(f"lower(s) = 'name {n}'" for n in range(300)))
    also = many.place("honest", f"lower(s) = '{TEXT}'")
    evil = many.place("evil", *HEAVY)
    nodes, over = many.tag({"s": TEXT, "n": 1})
    assert nodes == also
    assert set(over) <= set(evil)
    assert set(over.values()) == {"evil"}
    assert many.tag({"s": "Name 7"}) == ([honest[7]], {})


def test_what_reads_no_attribute_is_charged_too() -> None:
    """Three of these, which read nothing, had every publication refused."""
    many = Many()
    [honest] = many.place("honest", "z = 1")
    constant = f"'{'ab' * 15_000}' RLIKE '(a|b)*c(a|b){{0,20}}d'"
    evil = many.place("evil", *(f"{constant} AND n > {n}" for n in range(40)))
    nodes, over = many.tag({"z": 1, "n": 100})
    assert nodes == [honest]
    assert set(over) <= set(evil)
    assert many.tag({"z": 1}) == ([honest], {})


def test_columns_that_no_test_reaches_are_charged_as_they_cost() -> None:
    """Compiled filters compute their terms whether the other tests pass or not."""
    many = Many()
    [honest] = many.place("honest", "z = 1")
    [other] = many.place("other", "upper(s) LIKE 'X%'")
    long = "concat(s, s, s, s)"
    many.place(
        "evil", *(f"n > {n} AND upper(concat({long}, {long}, '{n}')) = 'x'" for n in range(90))
    )
    for matcher in many.interests._nodes.computing._matchers.values():
        matcher.merge()
    nodes, over = many.tag({"z": 1, "n": 0, "s": "x" * 10_000})
    assert nodes == [honest, other]
    assert set(over.values()) == {"evil"}
    nodes, over = many.tag({"z": 1, "n": 0, "s": "x" * 10_000})
    assert nodes == [honest, other]
    assert set(over.values()) <= {"evil"}  # one that just fitted may not fit again


def test_what_two_ask_for_stays_for_the_one_that_has_a_share_left() -> None:
    many = Many()
    evil = many.place("evil", *HEAVY)
    both = many.place("evil", "reverse(s) LIKE 'ba%'")
    assert many.place("honest", "reverse(s) LIKE 'ba%'") == both
    nodes, over = many.tag({"s": TEXT})
    assert nodes == both
    assert set(over) <= set(evil)


def test_many_owners_may_take_long_together() -> None:
    """It is found out once that nobody is beyond a share."""
    many = Many()
    for number in range(150):
        many.place(f"honest {number}", f"s RLIKE '(a|b){{3,9}}c{number}'")
    assert many.tag({"s": TEXT * 10}) == ([], {})
    text = msgspec.json.encode({"s": TEXT * 10})
    assert many.interests.tag(text) == []


def test_beyond_a_second_a_publication_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.channel.interests.computing.MOST", 0.01)
    many = Many()
    for number in range(150):
        many.place(f"honest {number}", f"s RLIKE '(a|b){{3,9}}c{number}'")
    with pytest.raises(TooMuchWork, match="too long"):
        many.tag({"s": TEXT * 20})


def test_the_lowest_are_found_across_what_is_aside() -> None:
    interests = ArrayInterests()
    texts = ["a = 1", "a = 1 AND s RLIKE 'x'", "a = 1 AND s RLIKE 'x' AND b = 2"]
    numbers = [interests.place(text.encode()).node for text in texts]
    content = b'{"a": 1, "b": 2, "s": "x"}'
    assert interests.tag(content) == [numbers[2]]
    interests.set_aside([numbers[1]])
    assert interests.tag(content) == [numbers[2]]
    interests.bring_back(numbers[1])
    assert sorted(interests.tag(b'{"a": 1, "s": "x"}')) == [numbers[1]]
    interests.set_aside([numbers[1]])
    interests.remove(numbers[1])
    assert interests.tag(b'{"a": 1, "s": "x"}') == [numbers[0]]


def test_content_has_a_size() -> None:
    interests = ArrayInterests(limits=Limits(content_bytes=100))
    interests.tag(b'{"a": 1}')
    with pytest.raises(NotificationError, match="found 107 bytes of attributes, expected at most"):
        interests.tag(b'{"a": "%s"}' % (b"x" * 98))


def test_one_by_one_and_all_at_once_find_the_same(seed: int) -> None:
    rng = random.Random(seed)
    terms = ["lower(s)", "upper(t)", "length(s)", "abs(n)", "concat(s, t)", "reverse(t)"]
    plain = ["n > 1", "s = 'ab'", "t IS NULL", "n IN (1, 2, 3)", "s LIKE '%a%'", "t RLIKE 'b+'"]
    texts, numbers = ["'ab'", "'AB'", "'abab'", "''"], ["2", "4", "0"]

    def condition() -> str:
        if rng.random() < 0.5:
            return rng.choice(plain)
        term = rng.choice(terms)
        values = numbers if term.startswith(("length", "abs")) else texts
        return f"{term} {rng.choice(['=', '<', '>='])} {rng.choice(values)}"

    computing = Computing(10.0)
    filters = {}
    for number in rounds(150, 400):
        joined = rng.choice([" AND ", " OR "]).join(condition() for _ in range(rng.randint(1, 3)))
        filters[number] = parse(joined)
        computing.add(number, filters[number])
    for number in rng.sample(sorted(filters), 50):
        computing.remove(number)
        del filters[number]
    for _ in range(200):
        event: dict[str, object] = {}
        for name in "st":
            if rng.random() < 0.8:
                event[name] = rng.choice(["", "ab", "AB", "abab", "b", None])
        if rng.random() < 0.8:
            event["n"] = rng.choice([-2, 0, 1, 2, 3.0, None])
        found = computing.match_each(event, 100, lambda number: (f"owner {number % 7}",))
        assert not found.over
        expected = [number for number, one in filters.items() if one.matches(event)]
        assert found.matched == expected
        assert sorted(computing.match(event, 100)) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("s LIKE '%a_b%'", "s"),
        ("lower(t.u) = 'x'", "t"),
        ("s RLIKE 'x' AND k IS NULL", "s"),
        ("s RLIKE 'x' OR s RLIKE 'y' AND n = 1", "s"),
        ("n + m > 3", "m"),
        ("n < m OR k LIKE '%_x%'", None),
        ("coalesce(s, 'x') = 'x'", None),
        ("NOT (s LIKE '%a_b%')", "s"),
        ("(s LIKE '%a_b%') IS NULL", None),
        ("s <=> t", None),
        ("cesql('EXISTS s OR t = 1')", None),
    ],
)
def test_an_attribute_that_a_filter_needs(text: str, name: str | None) -> None:
    assert find_required_attribute(parse(text).form) == name


def test_without_what_it_needs_no_filter_matches(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in draws(1, lambda: found > 100):
        of = schema(rng)
        events = [random_event(rng, of) for _ in range(60)]
        computing = Computing(100.0)
        filters = dict(enumerate(one for one in random_filters(rng, of, 300) if computes(one.form)))
        for number, one in filters.items():
            computing.add(number, one)
            name = find_required_attribute(one.form)
            found += name is not None
            for event in events:
                if name is not None and event.get(name) is None:
                    assert not one.matches(event), (one.sql(), event)
        for event in events:
            expected = {number for number, one in filters.items() if one.matches(event)}
            assert set(computing.match(event, 1)) == expected
            assert {*computing.match_each(event, 1, lambda _: ("",)).matched} == expected
    assert found > 100


def test_matchers_of_attributes_are_bounded() -> None:
    computing = Computing(1.0)
    for number in range(3 * MOST_NEEDED):
        computing.add(number, parse(f"a{number} LIKE '%x_y%'"))
    assert len(computing._matchers) <= MOST_NEEDED + 1
    for number in range(3 * MOST_NEEDED):
        assert computing.match({f"a{number}": "x-y"}, 10) == [number]
        computing.remove(number)
    assert not computing._matchers
