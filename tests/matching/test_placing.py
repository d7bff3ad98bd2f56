"""Indexes of neighbours, against asking every pair of filters."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.graph.test_content_graph import random_filter
from tests.repeats import amount, runs
from tests.snapshots.test_snapshot import many_filters

from tidings import Attributes, Filter, Ontology, parse
from tidings.filters.canonical import covers_among
from tidings.filters.values import ValueSet, sets
from tidings.matching.placing import BoxIndex, FoundSlots, Sketches, ask, is_plain
from tidings.matching.placing.sketches import key_of
from tidings.matching.segments.segment_builder import build_segment

WORDS = ["", "a", "ab", "a long beginning that is the same", "a long beginning that is other", "b"]
NAMES = [*"abcdefgh", "nothing"]
ONTOLOGY = Ontology(
    {"a": (), "b": "a", "c": "a", "d": ("b", "c"), "e": "d", "f": "c", "g": (), "h": ("g", "b")}
)
TOPICS = Attributes({"t": ONTOLOGY, "u": ONTOLOGY}, extra="open")


def drawn_plainly(rng: random.Random, count: int) -> list[Filter]:
    """Filters of a few attributes, many of which cover others."""

    def test() -> str:
        name, word = rng.choice("xyz"), rng.choice(WORDS)
        low = rng.randrange(6)
        return rng.choice(
            [
                f"{name} = {low}",
                f"{name} > {low}",
                f"{name} BETWEEN {low} AND {low + 2}",
                f"{name} IN ({low}, {low + 3})",
                f"{name} != {low}",
                f"{name} IS NULL",
                f"s = '{word}'",
                f"s IN ('{word}', 'b')",
                f"s LIKE '{word[:6]}%'",
                f"s > '{word}'",
                "isabsent(x)",
                f"{name} < {low}.5",
            ]
        )

    def both() -> str:
        return " AND ".join(test() for _ in range(rng.randint(1, 3)))

    texts = [" OR ".join(both() for _ in range(rng.choice([1, 1, 1, 2, 3]))) for _ in range(count)]
    return [parse(text) for text in texts]


def of_every_kind(rng: random.Random, count: int) -> list[Filter]:
    return [one for _, one in many_filters(rng, count)[0]]


def about_topics(rng: random.Random, count: int) -> list[Filter]:
    """Tests of topics' numbers, beside tests of their names: the names decide the numbers."""

    def test() -> str:
        one, other = rng.choice(NAMES), rng.choice(NAMES)
        low = rng.randrange(4)
        return rng.choice(
            [
                f"isa(t, '{rng.choice(NAMES[:-1])}')",
                f"isa(t, '{rng.choice(NAMES[:-1])}')",
                f"NOT isa(t, '{rng.choice(NAMES[:-1])}')",
                f"isa(u, '{rng.choice(NAMES[:-1])}')",
                f"t = '{one}'",
                f"t IN ('{one}', '{other}')",
                f"t > '{one}'",
                "t IS NULL",
                f"preorder(t) > {low}",
                f"preorder(t) IS NULL AND t IN ('{one}', 'nothing')",
                f"u != '{one}'",
                f"length(t) > {low}",
                f"x BETWEEN {low} AND {low + 2}",
                f"x = {low}",
            ]
        )

    def both() -> str:
        return " AND ".join(test() for _ in range(rng.choice([1, 1, 2, 3])))

    texts = [" OR ".join(both() for _ in range(rng.choice([1, 1, 1, 2]))) for _ in range(count)]
    return [parse(text, attributes=TOPICS) for text in texts]


def from_a_graph(rng: random.Random, count: int) -> list[Filter]:
    return [random_filter(rng) for _ in range(count)]


Draw = Callable[[random.Random, int], list[Filter]]


def as_lists(both: tuple[FoundSlots, FoundSlots]) -> list[list[list[int]]]:
    return [[one.tolist() for one in found] for found in both]


@pytest.mark.parametrize("run", runs(1, 3))
@pytest.mark.parametrize("draw", [drawn_plainly, of_every_kind, from_a_graph, about_topics])
def test_neighbours_are_those_of_all_pairs(seed: int, run: int, draw: Draw) -> None:
    rng = random.Random(f"{seed} {draw.__name__} {run}")
    there = [
        one
        for one in draw(rng, amount(90, 150)) + drawn_plainly(rng, amount(30, 50))
        if is_plain(one.form)
    ]
    new = [
        one
        for one in draw(rng, amount(30, 60)) + drawn_plainly(rng, amount(12, 20))
        if not one.never
    ]
    new += rng.sample(there, 10)
    wide = " AND ".join(f"(x = {i} OR y > {i} OR z = {i})" for i in range(12))
    new += [parse("true"), parse(wide), parse(f"s = 'b' AND ({wide})"), parse("lower(s) = 'b'")]
    index = BoxIndex(build_segment(enumerate(one.form for one in there)), len(there))
    again = BoxIndex(index.segment, len(there), index.arrays)
    sketches = Sketches()
    for number, one in enumerate(there):
        sketches.add(number, one.form)
    sure = is_simple = 0
    for one in new:
        question = ask(one.form, TOPICS)
        over = {n for n, other in enumerate(there) if covers_among(other.form, one.form)}
        under = {n for n, other in enumerate(there) if covers_among(one.form, other.form)}
        for found, wanted in zip(index.find(question), (over, under), strict=True):
            assert set(found.sure.tolist()) <= wanted, one
            assert set(found.sure.tolist()) | set(found.unsure.tolist()) >= wanted, one
            sure += len(found.sure)
        assert as_lists(again.find(question)) == as_lists(index.find(question))
        assert as_lists(index.find(question)) == as_lists(index.find_general(question))
        is_simple += question.simple_box() is not None
        assert set(sketches.above(question)) >= over, one
        assert set(sketches.below(question)) >= under, one
        assert sketches.around(question) == (sketches.above(question), sketches.below(question))
    questions = [ask(one.form, TOPICS) for one in new]
    together = index.find_all(questions)
    assert [*map(as_lists, together)] == [as_lists(index.find(one)) for one in questions]
    assert sure > amount(8, 20)
    assert is_simple > amount(5, 10)


def test_neighbours_among_many_attributes(seed: int) -> None:
    """With more than 64 attributes, columns share the bits of masks, and codes may be unknown."""
    rng = random.Random(seed)

    def some(count: int) -> list[Filter]:
        names = [f"a{n:03}" for n in range(150)]
        drawn = (rng.sample(names, rng.choice([1, 2, 2, 12])) for _ in range(count))
        tests = (" AND ".join(f"{n} >= {rng.randint(0, 9)}" for n in one) for one in drawn)
        return [parse(one) for one in tests]

    there = some(1500)
    # pairs of columns with the same bit
    there += [parse(f"a{n:03} > 2 AND a{n + 64:03} > {n % 7}") for n in range(80)]
    index = BoxIndex(build_segment(enumerate(one.form for one in there)), len(there))
    new = [*some(40), *(parse(f"a{n:03} > 1") for n in range(0, 150, 3)), *there[-20:]]
    sure = 0
    for one, both in zip(new, index.find_all([ask(one.form) for one in new]), strict=True):
        over = [n for n, other in enumerate(there) if covers_among(other.form, one.form)]
        under = [n for n, other in enumerate(there) if covers_among(one.form, other.form)]
        assert as_lists(both) == [[over, []], [under, []]], one
        sure += len(over) + len(under)
    assert sure > 100


def test_indexes_look_at_few() -> None:
    """A new filter is compared with those that share its values, and not with all."""
    texts = [f"k = {n} AND m BETWEEN {n} AND {n + 5} AND s = 'a long beginning {n % 50}'"
             for n in range(2000)]  # fmt: skip
    there = [parse(text) for text in texts]
    index = BoxIndex(build_segment(enumerate(one.form for one in there)), len(there))
    sketches = Sketches()
    for number, one in enumerate(there):
        sketches.add(number, one.form)
    new = ask(parse("k = 70 AND m BETWEEN 71 AND 72 AND s = 'a long beginning 20' AND z = 1").form)
    assert index._above(new, {}).tolist() == sketches.above(new) == [70]
    new = ask(parse("k BETWEEN 70 AND 80").form)
    assert index._below(new, {}).tolist() == sketches.below(new) == [*range(70, 81)]
    new = ask(parse("k = 75 OR s = 'a long beginning 20' AND m > 1900").form)
    assert len(index._below(new, {})) <= 41
    assert set(sketches.below(new)) == {75, *range(1900 + 20, 2000, 50)}


def test_keys_keep_the_order_of_cuts(seed: int) -> None:
    rng = random.Random(seed)
    values: list[object] = [None, False, True, -1e300, 1e300, 10**400, -(10**400), 2**53, 2**53 + 1]
    values += [-5, -0.5, 0, 0.5, 5, "", "a", "\ud800", "zz", "zzzzzzzzz", "zzzzzzzzy", "é", [1]]
    values += [rng.uniform(-9, 9) for _ in range(20)]
    cuts = [cut for value in values for cut in sets.points([sets.key(value)]).cuts]
    cuts += [cut for one in (sets.NULL, sets.STRINGS, sets.TIMES, sets.IS_NAN) for cut in one.cuts]
    ordered = sorted(cuts)
    keys = [key_of(cut) for cut in ordered]
    assert keys == sorted(keys)
    assert all(0 <= key <= key_of(None) < 1 << 64 for key in keys)
    assert isinstance(sets.points([sets.key(5)]), ValueSet)
