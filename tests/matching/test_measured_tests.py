"""How often tests pass, against the events themselves. The counts stay when arrays are swapped and
when parts are merged, on disk, and on the way to a process that compiles."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.matching.test_decision_trees import check, random_tree, tree_of
from tests.matching.test_diagrams import ALIVE, diagrams_of, drawn_events, places

from tidings.filters.canonical import Test as SetTest
from tidings.matching import Matcher
from tidings.matching.diagrams.diagrams import Diagrams
from tidings.matching.diagrams.measured_tests import (
    ENOUGH,
    MOST,
    add_measured,
    name_counts,
    no_counts,
    rates_of,
)
from tidings.matching.disk import matcher_folder, read_manifest, write_manifest
from tidings.matching.disk.diagram_folder import (
    DIAGRAMS,
    FORMAT,
    pack_measured,
    unpack_measured,
)
from tidings.matching.placing import merge_filters, save_segment

OFTEN, RARE = check("s = 'a'"), check("s = 'b'")
WIDE = " AND ".join(["(s = '{}' OR t = 1)", *(f"(a{n} = 1 OR b{n} = 1)" for n in range(8))])


def skewed(number: int) -> dict[str, object]:
    """Nine of ten events have s = 'a'."""
    return {"s": "a" if number % 10 else "b", **{f"a{n}": 1 for n in range(8)}}


def order_of(diagrams: Diagrams) -> list[SetTest]:
    """The tests in the order in which they are evaluated."""
    counts = no_counts(len(diagrams.arrays.test_column))
    counts.seen[:] = 1
    return [*name_counts(diagrams.compiled, counts)]


def diagrams_in(matcher: Matcher) -> Diagrams:
    (sealed,) = matcher._state.parts
    assert sealed.diagrams is not None
    return sealed.diagrams


def skewed_matcher(events: int = 300) -> Matcher:
    matcher = Matcher(background=False)
    matcher.add_many((letter, WIDE.replace("{}", letter)) for letter in "ab")
    matcher.merge()
    for number in range(events):
        matcher.match(skewed(number))
    return matcher


def is_rare_first(diagrams: Diagrams) -> bool:
    order = order_of(diagrams)
    return order.index(RARE) < order.index(OFTEN)


def test_counts_stay_when_arrays_are_swapped(seed: int) -> None:
    rng = random.Random(seed)
    found = diagrams_of([random_tree(rng) for _ in range(20)])
    assert found.read_measured() == {}
    seen: list[dict[str, object]] = []
    for change in ("none", "link", "remove"):
        if change == "link":
            found.link()
        elif change == "remove":
            found = found.remove(np.array([1, 4]))
        assert found.total_counts()["events"] == len(seen)
        for event in drawn_events(rng, 30):
            found.match(event, ALIVE)
            seen.append(event)
        want = {
            test: (len(seen), sum(places(event)[test.term] in test.values for event in seen))
            for test in order_of(found)
        }
        assert found.read_measured() == want
    again = found.renumber(np.arange(20)[::-1])
    assert again.read_measured() == want
    again.match(seen[0], ALIVE)
    found.match(seen[0], ALIVE)
    assert again.total_counts()["events"] == len(seen) + 2


def test_an_event_that_began_before_a_swap_counts() -> None:
    found = diagrams_of([tree_of("a = 1"), tree_of("a = 1 AND b = 1")])
    stream = found.decide({"a": 1, "b": 1})
    next(stream)
    found.link()
    assert found.total_counts()["events"] == 0
    assert len(list(stream)) == 1
    assert found.total_counts()["events"] == 1
    assert found.read_measured() == {check("a = 1"): (1, 1), check("b = 1"): (1, 1)}
    assert len(list(found.decide({"a": 2}))) == 2
    assert found.read_measured() == {check("a = 1"): (2, 1), check("b = 1"): (2, 1)}


def test_new_diagrams_begin_with_the_counts_of_earlier_ones() -> None:
    matcher = skewed_matcher()
    before = diagrams_in(matcher)
    assert not is_rare_first(before)
    measured = before.read_measured()
    assert measured[OFTEN] == (300, 270)
    matcher.add("c", WIDE.replace("{}", "c"))
    matcher.merge()
    assert is_rare_first(diagrams_in(matcher))
    assert diagrams_in(matcher).read_measured() == measured
    matcher.add("d", WIDE.replace("{}", "d"))
    matcher.merge()  # no event in between
    assert is_rare_first(diagrams_in(matcher))


def test_old_events_count_less_and_less() -> None:
    tests = [OFTEN, RARE]
    trees = [tree_of("s = 'a'"), tree_of("s = 'b'")]
    measured = {OFTEN: (4 * MOST, 3 * MOST), RARE: (ENOUGH - 1, 1)}
    found = diagrams_of(trees, measured=measured).read_measured()
    assert found == {OFTEN: (MOST, 3 * MOST // 4), RARE: (ENOUGH - 1, 1)}
    assert [*rates_of(found)] == tests[:1]
    assert add_measured([found, {OFTEN: (1, 1)}, {}])[OFTEN] == (MOST + 1, 3 * MOST // 4 + 1)


@pytest.mark.parametrize("engine", ["auto", "saved", "bdd"])
def test_counts_are_saved_with_a_matcher(tmp_path: Path, engine: str) -> None:
    matcher = skewed_matcher()
    matcher.save(tmp_path / "m")
    opened = Matcher.open(tmp_path / "m", background=False, engine=engine)
    found = diagrams_in(opened)  # with "bdd", they are built again
    assert found.read_measured() == diagrams_in(matcher).read_measured()
    assert is_rare_first(found)
    opened.match(skewed(1))
    assert found.read_measured()[OFTEN] == (301, 271)


def test_diagrams_without_counts_are_read(tmp_path: Path) -> None:
    """As version 1 of the format wrote them."""
    path = tmp_path / "m"
    skewed_matcher().save(path)
    told = json.loads((path / DIAGRAMS / "manifest.json").read_text())
    for name in ("seen", "passed"):
        (path / DIAGRAMS / f"{name}.arrow").unlink()
    write_manifest(path / DIAGRAMS, FORMAT, 1, **told["notes"])
    notes = read_manifest(path, matcher_folder.FORMAT, matcher_folder.VERSION).notes
    write_manifest(path, matcher_folder.FORMAT, matcher_folder.VERSION, **notes)
    opened = Matcher.open(path, background=False, engine="saved")
    assert diagrams_in(opened).read_measured() == {}
    assert opened.match(skewed(1)) == ["a"]
    assert diagrams_in(opened).read_measured()


def test_counts_can_be_packed(seed: int) -> None:
    rng = random.Random(seed)
    found = diagrams_of([random_tree(rng) for _ in range(30)])
    for event in drawn_events(rng, 20):
        found.match(event, ALIVE)
    assert unpack_measured(pack_measured(found.read_measured())) == found.read_measured() != {}
    assert unpack_measured(b"") == {}


def test_a_segment_is_saved_with_the_counts_of_another_matcher(tmp_path: Path) -> None:
    matcher = skewed_matcher()
    texts = [WIDE.replace("{}", letter) for letter in "abc"]
    forms = [(at, matcher._parse(text).form) for at, text in enumerate(texts)]
    column = pa.chunked_array([pa.array(texts, pa.large_string())])
    for name, measured in (("plain", b""), ("measured", matcher.pack_measured())):
        segment = merge_filters(None, forms, np.arange(3), 3)
        save_segment(tmp_path / name, segment, column, measured)
        opened = Matcher.open(tmp_path / name, background=False, engine="saved")
        assert is_rare_first(diagrams_in(opened)) is (name == "measured")
        assert opened.match(skewed(1)) == [0]
