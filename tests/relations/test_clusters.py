"""The clustering relation store, against a store that scans everything."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.relations.drawing import draw_place, draw_term, draw_terms, draw_time
from tests.repeats import runs

from tidings.relations import (
    ClusterStore,
    Place,
    SemanticStore,
    StoreSettings,
    Term,
    TimeSpan,
    Weights,
)
from tidings.relations.clusters import FullScan, cluster as cluster_module
from tidings.relations.clusters.centres import Centres
from tidings.relations.clusters.cluster import Clusters, PlaceClusters, TimeClusters
from tidings.relations.clusters.curve import BITS, _cover, curve_place, ranges_around
from tidings.relations.clusters.grouping import STEP, choose_centres, choose_slowly, sweep
from tidings.relations.relation_files import load_relations
from tidings.relations.semantic import DAY, place_distance


@pytest.fixture(scope="module")
def semantic() -> SemanticStore:
    return load_relations(language=None)


# -- the curve and the index ---------------------------------------------------------------------


def test_the_curve_takes_bits_in_turn() -> None:
    low, high = Place("", -90.0, -180.0, -12_000.0), Place("", 90.0, 180.0, 100_000.0)
    assert curve_place(low) == 0
    assert curve_place(high) == (1 << 3 * BITS) - 1
    assert curve_place(Place("", 0.0, -180.0, -12_000.0)) == 1 << 3 * BITS - 1


@pytest.mark.parametrize("run", runs(2, 20))
def test_ranges_around_a_place_have_all_that_is_near(
    run: int, seed: int, semantic: SemanticStore
) -> None:
    rng = random.Random(f"{seed} {run}")
    for _ in range(150):
        centre, other = (draw_place(rng, semantic) for _ in range(2))
        if not centre.located or not other.located:
            continue
        km, height = rng.choice([1.0, 30.0, 150.0, 2000.0, 12_000.0]), rng.choice([0.0, 1.0, 10.0])
        ranges = ranges_around(centre, km, height)
        assert all(one[1] < two[0] for one, two in itertools.pairwise(ranges))
        inside = any(first <= curve_place(other) <= last for first, last in ranges)
        if place_distance(centre, other, height) < km:
            assert inside
        assert any(first <= curve_place(centre) <= last for first, last in ranges)


def test_few_ranges_leave_most_of_the_globe_out() -> None:
    chicago = Place("", 41.878, -87.630, 181.0)
    ranges = ranges_around(chicago, 150, 10)
    assert sum(last - first + 1 for first, last in ranges) < (1 << 3 * BITS) / 1000
    assert not any(
        first <= curve_place(Place("", 48.857, 2.352, 35.0)) <= last for first, last in ranges
    )


def test_a_box_of_cells_is_covered_exactly_where_few_ranges_do() -> None:
    cell = 1 << BITS - 2
    ranges = _cover((cell, 0, 0), (2 * cell - 1, 2 * cell - 1, 2 * cell - 1))
    assert sum(last - first + 1 for first, last in ranges) == 4 * cell**3


def test_centres_against_a_list(seed: int) -> None:
    rng = random.Random(seed)
    index, held = Centres(), set[tuple[float, int]]()
    for step in range(400):
        if held and rng.random() < 0.4:
            gone = rng.choice(sorted(held))
            held.remove(gone)
            index.remove(*gone)
        else:
            new = (rng.randrange(50), step)
            held.add(new)
            index.add(*new)
        first = rng.randrange(50)
        last = first + rng.randrange(9)
        found = sorted(index.within([(first, last)]))
        assert found == sorted(number for place, number in held if first <= place <= last)
        assert len(index) == len(held)
    with pytest.raises(KeyError):
        index.remove(99, 99)


# -- few clusters --------------------------------------------------------------------------------


def fewest(positions: list[int], radius: int) -> int:
    """The fewest clusters, by trying every set of artificial centres."""
    options = sorted({one + radius for one in positions})
    for count in range(1, len(positions) + 1):
        for centres in itertools.combinations(options, count):
            if all(any(abs(one - at) <= radius for at in centres) for one in positions):
                return count
    return 0


def test_the_sweep_finds_the_fewest_clusters(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        positions = [rng.randrange(40) for _ in range(rng.randint(1, 8))]
        radius = rng.randrange(8)
        centres = sweep(positions, radius)
        assert all(any(abs(one - at) <= radius for at in centres) for one in positions)
        assert len(centres) == fewest(positions, radius)


def test_the_greedy_choice_covers_all_and_is_near_the_fewest(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        points = list({rng.randrange(60) for _ in range(rng.randint(1, 9))})
        groups = choose_centres(points, lambda at: [one for one in points if abs(one - at) <= 5])
        assert sorted(one for _, members in groups for one in members) == sorted(points)
        assert all(abs(centre - one) <= 5 for centre, members in groups for one in members)
        best = next(
            count
            for count in range(1, 10)
            for chosen in itertools.combinations(points, count)
            if all(any(abs(one - at) <= 5 for at in chosen) for one in points)
        )
        # a greedy cover has at most H(n) times the fewest sets
        assert len(groups) <= best * sum(1 / n for n in range(1, len(points) + 1))


def test_the_slow_choice_is_the_plain_greedy_one(seed: int) -> None:
    """Whatever the bounds are, the item with the most free items around it is chosen, the first of
    several."""
    rng = random.Random(seed)
    for _ in range(100):
        points = list({rng.randrange(200) for _ in range(rng.randint(1, 60))})
        rng.shuffle(points)
        radius = rng.randrange(12)
        free, expected = set(points), []
        while free:
            near = {one: [at for at in points if abs(at - one) <= radius and at in free]
                    for one in points}  # fmt: skip
            best = max(points, key=lambda one: len(near[one]))
            expected.append((best, sorted(near[best])))
            free -= {*near[best]}

        def around(one: int) -> Iterator[int | None]:
            for at in points:
                if abs(at - one) <= radius:
                    yield at
                if rng.random() < 0.1:
                    yield None

        loose = [len(points), rng.randrange(20)]
        steps = choose_slowly(
            points,
            lambda one: sum(abs(at - one) <= radius for at in points) + rng.choice(loose),
            around,
        )
        found = [(centre, sorted(members)) for centre, members in filter(None, steps)]
        assert found == expected


@pytest.mark.parametrize("run", runs(2, 12))
def test_values_come_and_go_while_clusters_are_tidied(
    run: int, seed: int, semantic: SemanticStore
) -> None:
    """At every step, queries find what is near; at the end, nothing was lost, and no step has
    computed many distances."""
    rng = random.Random(f"{seed} {run}")
    times = [draw_time(rng, semantic) for _ in range(300)]
    places = [draw_place(rng, semantic) for _ in range(300)]
    every: list[tuple[Clusters[Any], list[Any]]] = [
        (TimeClusters(2), [one for one in times if isinstance(one, TimeSpan)]),
        (PlaceClusters(50, 10), [one for one in places if one.located]),
    ]
    for clusters, drawn in every:
        held = set(drawn[:200])
        for one in held:
            clusters.add(one)
        assert clusters.is_untidy
        measured = 0
        distance = clusters.distance

        def measure(one: Any, other: Any) -> float:
            nonlocal measured
            measured += 1
            return distance(one, other)

        tidying = clusters.tidy_slowly()
        while True:
            measured = 0
            clusters.distance = measure  # type: ignore[method-assign]
            is_over = next(tidying, tidying) is tidying
            clusters.distance = distance  # type: ignore[method-assign]
            assert measured <= 4 * STEP
            if is_over:
                break
            if rng.random() < 0.2:
                one = rng.choice(drawn)
                (clusters.remove if one in held else clusters.add)(one)
                held ^= {one}
                near = {other for other, _ in clusters.near(one, 5)}
                assert near == {other for other in held if distance(one, other) < 5}
        assert sorted(map(repr, held)) == sorted(
            repr(one) for cluster in clusters for one in cluster.members
        )
        assert all(cluster.members for cluster in clusters)
        for cluster in clusters:
            away = [distance(cluster.centre, one) for one in cluster.members]
            assert max(away) <= clusters.radius + 1
        tidy = copy.deepcopy(clusters)
        tidy.tidy()
        assert not tidy.is_untidy
        if isinstance(clusters, TimeClusters):
            assert len(tidy) <= len(clusters)
        for one in [*held]:
            clusters.remove(one)
        assert len(clusters) == len(clusters._index) == 0


def test_tidying_is_given_up_if_too_much_changes(
    monkeypatch: pytest.MonkeyPatch, semantic: SemanticStore
) -> None:
    monkeypatch.setattr(cluster_module, "MOST_MEANWHILE", 10)
    times = TimeClusters(2)
    days = [TimeSpan(day * DAY, day * DAY) for day in range(300)]
    for day in days[:100]:
        times.add(day)
    before = len(times)
    first = times.tidy_slowly()
    next(first)
    for day in days[100:111]:
        times.add(day)
    assert not [*first]
    assert len(times) >= before
    assert times.is_untidy
    older, newer = times.tidy_slowly(), times.tidy_slowly()
    next(older)
    next(newer)
    assert len([*older]) <= 1
    assert [*newer]
    assert len(times) == len(sweep((one.middle for one in days[:111]), 2 * DAY))


@pytest.mark.parametrize("run", runs(2, 12))
def test_clusters_as_values_come_and_go(run: int, seed: int, semantic: SemanticStore) -> None:
    rng = random.Random(f"{seed} {run}")
    times, places = TimeClusters(2), PlaceClusters(50, 10)
    held_times, held_places = set[TimeSpan](), set[Place]()
    for step in range(300):
        time, place = draw_time(rng, semantic), draw_place(rng, semantic)
        if isinstance(time, TimeSpan):
            times.add(time)
            held_times.add(time)
        if place.located:
            places.add(place)
            held_places.add(place)
        if rng.random() < 0.6 and held_times:
            gone = rng.choice(sorted(held_times, key=repr))
            held_times.remove(gone)
            times.remove(gone)
        if rng.random() < 0.6 and held_places:
            left = rng.choice(sorted(held_places, key=repr))
            held_places.remove(left)
            places.remove(left)
        if step % 97 == 96:
            times.tidy()
            places.tidy()
            assert len(times) == len(sweep((one.middle for one in held_times), 2 * DAY))
        assert sorted((one for cluster in times for one in cluster.members), key=repr) == sorted(
            held_times, key=repr
        )
        for cluster in places:
            assert cluster.members
            assert all(place_distance(cluster.centre, one, 10) <= 50 for one in cluster.members)
        if isinstance(time, TimeSpan):
            found = {one for one, _ in times.near(time, 7 * DAY)}
            assert found == {one for one in held_times if abs(one.middle - time.middle) < 7 * DAY}
        if place.located:
            near = {one for one, _ in places.near(place, 100)}
            assert near == {one for one in held_places if place_distance(one, place, 10) < 100}


def test_heights_are_apart(semantic: SemanticStore) -> None:
    """The example of the seed: below the sea, and above 4000 m."""
    store = ClusterStore(semantic)
    for at, altitude in enumerate((-400.0, -380.0, 4100.0, 4200.0)):
        store.learn([Term("place", Place("", 31.0, 35.0 + at / 1e4, altitude))], "B", [at], 0)
    store.elements.tidy()
    found = [sorted(one.altitude for one in members if isinstance(one, Place))
             for _, members in store.elements.clusters("place")]  # fmt: skip
    assert len(found) == 2
    assert sorted(found) == [[-400.0, -380.0], [4100.0, 4200.0]]


# -- the store -----------------------------------------------------------------------------------


def merits(store: ClusterStore, terms: list[Term]) -> dict[tuple[frozenset[Term], object], float]:
    hits = store.find(terms)
    assert [hit.merit for hit in hits] == sorted((hit.merit for hit in hits), reverse=True)
    return {(frozenset(hit.node.terms), hit.node.hop): hit.merit for hit in hits}


@pytest.mark.parametrize("run", runs(4, 60))
def test_random_histories_against_the_full_scan(
    run: int, seed: int, semantic: SemanticStore
) -> None:
    rng = random.Random(f"{seed} {run}")
    weights = rng.choice([Weights(), Weights(descendant=0.0, links=1), Weights(near_km=400)])
    least, most, keep = rng.choice([1, 2]), rng.choice([5, 30, 1000]), rng.choice([50.0, 1e9])
    store = ClusterStore(semantic, weights, StoreSettings(least, most, keep))
    scan = FullScan(semantic, weights, least, most, keep)
    asked: list[list[Term]] = [draw_terms(rng, semantic)]
    for now in range(250):
        step = rng.random()
        terms = rng.choice(asked) if rng.random() < 0.3 else draw_terms(rng, semantic)
        asked.append(terms)
        if step < 0.6:
            hop, ids = rng.choice("BCD"), rng.sample(range(40), rng.randint(0, 4))
            store.learn(terms, hop, ids, now)
            scan.learn(terms, hop, ids, now)
        elif step < 0.75:
            gone = rng.randrange(40)
            store.cancel(gone)
            scan.cancel(gone)
        elif step < 0.8:
            store.age(now)
            scan.age(now)
        elif step < 0.83:
            store.elements.tidy()
        else:
            assert merits(store, terms) == pytest.approx(scan.find(terms))
            used = {node.number: node for term in terms for node in store.nodes_at(term).values()}
            store.use(used.values(), now)
            scan.use(terms, now)
        assert len(store) == len(scan.records)
    have = {(frozenset(node.terms), node.hop): (node.ids, node.uses, node.last) for node in store}
    want = {(frozenset(one["terms"]), one["hop"]): (one["ids"], one["uses"], one["last"])
            for one in scan.records}  # fmt: skip
    assert have == want
    assert {term for node in store for term in node.terms} == set(store.elements)
    for gone in range(40):
        store.cancel(gone)
    assert len(store) == len(store.elements) == 0
    assert not list(store.elements.clusters("place"))
    assert store.elements._below == {}
    assert store._by_id == store._by_term == {}


def test_ancestors_descendants_and_near_values(semantic: SemanticStore) -> None:
    """The examples of the seed: China, Shanghai and its districts."""
    store = ClusterStore(semantic)

    def place(name: str) -> Term:
        found = semantic.term("place", name)
        assert found is not None
        return found

    store.learn([place("China")], "B", [1], 0)
    store.learn([place("Huangpu District")], "C", [2], 0)
    hits = {hit.node.hop: hit for hit in store.find([place("Shanghai")])}
    assert hits["B"].merit == 1.0
    assert hits["B"].edges[0][2].reason == "ancestor"
    assert hits["C"].merit > 0.9  # it is near, which is more than to be a descendant
    assert {hit.node.hop for hit in store.find([place("Beijing")])} == {"B"}
    found = {hit.node.hop: hit.edges[0][2] for hit in store.find([place("China")])}
    assert found["B"].reason == "exact"
    assert found["C"] == (0.7, "descendant")


def test_contexts_are_fused_into_one_graph(semantic: SemanticStore) -> None:
    store = ClusterStore(semantic)
    both = [semantic.term("place", "Chicago"), semantic.term("time", "2013-12-25")]
    terms = [term for term in both if term is not None]
    store.learn(terms, "B", [1], 0)
    store.learn(terms[:1], "C", [2], 0)
    assert [(hit.node.hop, hit.merit) for hit in store.find(terms)] == [("B", 2.0), ("C", 1.0)]


def test_a_centre_has_the_hop_of_the_majority(semantic: SemanticStore) -> None:
    store = ClusterStore(semantic)
    for at, hop in enumerate("BBC"):
        store.learn([Term("place", Place("", 41.9, -87.6 + at / 100))], hop, [at], 0)
    [(_, members)] = store.elements.clusters("place")
    assert store.majority_hop("place", members) == "B"
    assert store.majority_hop("place", members[:0]) is None
    store.learn([Term("place", Place("", 41.9, -87.6))], "C", [9], 0)
    assert store.majority_hop("place", members) is None


def test_terms_that_a_dictionary_places_later_are_filed_anew() -> None:
    semantic = load_relations(language=None)
    store = ClusterStore(semantic)
    dahlia = Term("tag", "dahlia")
    store.learn([dahlia], "B", [1], 0)
    assert store.find([Term("tag", "flower")]) == []
    semantic.tags.add("dahlia", ["flower"])
    store.elements.refile(dahlia)
    assert [hit.merit for hit in store.find([Term("tag", "flower")])] == [0.7]
    store.cancel(1)
    assert store.elements._below == {}


def test_drawn_terms_are_often_related(seed: int, semantic: SemanticStore) -> None:
    """Otherwise the random histories above would show little."""
    rng = random.Random(seed)
    store = ClusterStore(semantic)
    for at in range(200):
        store.learn(draw_terms(rng, semantic), "B", [at], 0)
    reasons = {
        edge.reason
        for _ in range(200)
        for hit in store.find([draw_term(rng, semantic)])
        for _, _, edge in hit.edges
    }
    assert {"exact", "near", "ancestor", "descendant", "family", "friend"} <= reasons
