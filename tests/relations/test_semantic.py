"""The semantic relation store: names to values, trees, people, text, and growth."""

from __future__ import annotations

import datetime as dt
import math
import random
import sys
from typing import Any

import pytest

from tidings.model import AttributesError, EnvironmentProblem
from tidings.relations import (
    Entry,
    Place,
    Recurring,
    SemanticStore,
    TableDictionary,
    Term,
    Thesaurus,
    TimeSpan,
    Weights,
    Words,
    load_relations,
)
from tidings.relations.semantic import DAY, Context, NameTree, day_of, day_span, place_distance


@pytest.fixture(scope="module")
def store() -> SemanticStore:
    return load_relations()


def days(store: SemanticStore, name: str) -> list[str]:
    """The days of a named span."""
    span = store.calendar.find(name)
    assert isinstance(span, TimeSpan)
    return [day_of(at).isoformat() for at in range(span.start, span.stop, DAY)]


# -- names to values -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("Christmas 2013", "2013-12-24", "2013-12-26"),
        ("xmas 2020", "2020-12-24", "2020-12-26"),
        ("Labor Day 2008", "2008-05-01", "2008-05-01"),
        ("Thanksgiving 2013", "2013-11-28", "2013-12-01"),
        ("Memorial Day 2021", "2021-05-31", "2021-05-31"),
        ("Good Friday 2024", "2024-03-29", "2024-03-29"),
        ("Pentecost 2025", "2025-06-08", "2025-06-09"),
        ("Winter 2013", "2013-12-21", "2014-03-19"),
        ("May 2008", "2008-05-01", "2008-05-31"),
        ("2012", "2012-01-01", "2012-12-31"),
        ("2012-02", "2012-02-01", "2012-02-29"),
        ("2012-02-29", "2012-02-29", "2012-02-29"),
    ],
)
def test_a_name_of_a_time_is_a_span(store: SemanticStore, name: str, first: str, last: str) -> None:
    found = days(store, name)
    assert (found[0], found[-1]) == (first, last)


def test_easter_agrees_with_published_dates(store: SemanticStore) -> None:
    published = {1961: "04-02", 1999: "04-04", 2000: "04-23", 2008: "03-23", 2019: "04-21",
                 2038: "04-25", 2076: "04-19"}  # fmt: skip
    for year, day in published.items():
        assert f"{year}-{day}" == days(store, f"Easter {year}")[2]


def test_a_holiday_without_a_year_recurs(store: SemanticStore) -> None:
    assert store.term("time", "christmas") == Term("time", Recurring("Christmas"))


@pytest.mark.parametrize("text", ["", "someday", "2013-13", "2013-02-30", "0000", "12:30"])
def test_a_text_that_is_no_time_is_no_term(store: SemanticStore, text: str) -> None:
    assert store.term("time", text) is None


def test_a_place_has_other_names_and_coordinates(store: SemanticStore) -> None:
    found = store.term("place", "  shang   HAI ")
    assert found == store.term("place", "Shanghai")
    assert found is not None
    assert found.value == Place("Shanghai", 31.230, 121.474, 4.0)
    assert store.term("place", (41.9, -87.6)) == Term("place", Place("", 41.9, -87.6))


@pytest.mark.parametrize(
    "given",
    [
        "",
        (91, 0),
        (1,),
        (True, 2),
        None,
        3,
        ("a", "b"),
        (10**400, 0),
        (0, math.nan),
        (0, -math.inf),
    ],
)
def test_what_is_no_place_is_no_term(store: SemanticStore, given: Any) -> None:
    assert store.term("place", given) is None


def test_nicknames_lead_to_the_person(store: SemanticStore) -> None:
    assert store.term("person", "dave") == Term("person", "David")
    assert store.term("person", "Zoe") == Term("person", "zoe")


# -- trees ---------------------------------------------------------------------------------------


def test_the_example_of_the_seed_shanghai_is_in_china(store: SemanticStore) -> None:
    huangpu = store.places.find("Huangpu District")
    assert huangpu is not None
    above = {place.name: links for place, links in store.places.ancestors(huangpu, 2).items()}
    assert above == {"Shanghai": 1, "China": 2}
    china = store.places.find("China")
    assert china is not None
    below = {place.name for place, links in store.places.descendants(china, 2).items()}
    assert {"Shanghai", "Huangpu District", "Hongkou District"} <= below


def test_a_day_is_in_its_month_its_year_and_its_holidays(store: SemanticStore) -> None:
    day = day_span(dt.date(2013, 12, 25))
    found = {store.calendar.title(one): at for one, at in store.calendar.ancestors(day, 2).items()}
    assert found == {"Christmas 2013": 1, "Winter 2013": 1, "December 2013": 1, "Christmas": 2,
                     "Winter": 2, "2013": 2}  # fmt: skip


def test_january_is_in_the_winter_that_began_the_year_before(store: SemanticStore) -> None:
    above = store.calendar.ancestors(day_span(dt.date(2014, 1, 15)), 1)
    assert {store.calendar.title(one) for one in above} == {"Winter 2013", "January 2014"}


def test_a_holiday_of_one_day_is_also_a_day_of_its_month(store: SemanticStore) -> None:
    above = store.calendar.ancestors(day_span(dt.date(2013, 7, 4)), 1)
    assert {store.calendar.title(one) for one in above} == {
        "Independence Day", "Summer 2013", "July 2013",
    }  # fmt: skip


def test_trees_against_a_walk_along_all_paths(seed: int) -> None:
    rng = random.Random(seed)
    tree = NameTree()
    parents: dict[str, list[str]] = {}
    for number in range(60):
        above = rng.sample(sorted(parents), min(len(parents), rng.randrange(3)))
        parents[f"n{number}"] = above
        tree.add(f"n{number}", above)

    def shortest(below: str, above: str) -> int | None:
        if below == above:
            return 0
        ways = [way for one in parents[below] if (way := shortest(one, above)) is not None]
        return min(ways) + 1 if ways else None

    for _ in range(200):
        one, other = rng.choices(sorted(parents), k=2)
        want = shortest(one, other)
        assert tree.path_length(one, other) == want
        for links in (1, 2, 5):
            within = want is not None and 0 < want <= links
            assert (other in tree.ancestors(one, links)) == within
            assert (one in tree.descendants(other, links)) == within


def test_a_tree_refuses_unknown_parents_and_names_twice() -> None:
    tree = NameTree()
    tree.add("plant")
    with pytest.raises(AttributesError, match=r"rose: found the parent 'flower', expected"):
        tree.add("rose", ["flower"])
    with pytest.raises(AttributesError, match=r"tree: found the name 'PLANT' twice"):
        tree.add("tree", ["plant"], ["PLANT"])
    assert len(tree) == 1


def test_altitude_counts(store: SemanticStore) -> None:
    low, high = Place("", 31.2, 35.4, -400), Place("", 31.2, 35.4, 4100)
    assert place_distance(low, high, 10) == pytest.approx(45)
    assert place_distance(low, high, 0) == 0
    chicago, evanston = store.places.find("Chicago"), store.places.find("Evanston")
    assert chicago is not None
    assert evanston is not None
    assert place_distance(chicago, evanston, 10) == pytest.approx(19.2, abs=0.2)


# -- what a term looks for -----------------------------------------------------------------------


def test_only_direct_links_between_people_count(store: SemanticStore) -> None:
    found = store.expand(Term("person", "Anna"), Weights())
    assert {name: edge.reason for name, edge in found.items()} == {
        "Anna": "exact", "Ben": "family", "Carla": "friend", "David": "classmate",
    }  # fmt: skip
    assert found["Ben"].weight == 0.8
    assert "Elif" not in found  # the friend of a classmate


def test_days_near_a_holiday(store: SemanticStore) -> None:
    def edge(day: int) -> Any:
        term = Term("time", day_span(dt.date(2013, 12, day)))
        return store.expand(term, Weights()).get(Recurring("Christmas"))

    assert edge(24) == edge(26) == (1.0, "ancestor")
    assert edge(22).reason == "near"
    assert edge(22).weight == pytest.approx(4 / 7)
    assert edge(18) is None


@pytest.mark.parametrize("settings", [{"ancestor": 1.5}, {"near_km": 0}, {"best": 0}])
def test_weights_that_make_no_sense_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(AttributesError, match=r"found .*, expected"):
        Weights(**settings)  # type: ignore[arg-type]


# -- text ----------------------------------------------------------------------------------------


def test_tags_of_a_text(store: SemanticStore) -> None:
    text = "The flights were delayed by a heavy blizzard; typhoons don't reach the LAKES."
    tags = store.tags.tags_of_text(text)
    assert tags[:4] == ["flight", "delay", "heavi", "blizzard"]
    assert {"hurricane", "lake"} <= set(tags)
    assert not {"the", "were", "a"} & set(tags)


def test_names_of_several_words_are_found_in_text() -> None:
    thesaurus = Thesaurus(Words())
    thesaurus.add("balloon")
    thesaurus.add("air balloon", ["balloon"])
    assert thesaurus.tags_of_text("an air balloon") == ["air balloon", "air", "balloon"]


def test_without_a_language_tags_stay_as_they_are() -> None:
    store = load_relations(language=None)
    assert store.term("tag", "Roses") == Term("tag", "roses")
    assert store.term("tag", "blossom") == Term("tag", "flower")


def test_missing_packages_and_unknown_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentProblem, match=r"found the language 'klingon', expected one of"):
        Words("klingon")
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'tidings\[relations\]'"):
        Words("dutch")


# -- growth --------------------------------------------------------------------------------------


def test_a_table_grows_the_tree_of_places() -> None:
    store = load_relations()
    table = TableDictionary(
        "place",
        [
            Entry("Schaumburg", ("Cook County",), ("Schaumburg IL",), 41.989, -88.101, 244),
            Entry("Cook County", ("Illinois",)),
        ],
    )
    asked: list[str] = []

    def dictionary(context: Context, name: str, /) -> Entry | None:
        asked.append(name)
        return table(context, name)

    assert store.grow("place", "Atlantis", dictionary) is None
    found = store.grow("place", "schaumburg il", dictionary)
    assert asked == ["Atlantis", "schaumburg il", "Cook County"]
    assert found == store.term("place", "Schaumburg")
    assert found is not None
    above = store.ancestors(found, 3)
    assert [place.name for place in above] == ["Cook County", "Illinois", "United States"]


def test_a_callable_grows_tags_and_people() -> None:
    store = load_relations()
    known = {
        ("tag", "dahlia"): Entry("dahlia", ("flower",)),
        ("tag", "loop"): Entry("loop", ("loop",)),
        ("person", "Ines"): Entry("Ines", (), ("Nessie",), links=(("Anna", "friend"),)),
    }

    def dictionary(context: Context, name: str, /) -> Entry | None:
        return known.get((context, name))

    assert store.grow("tag", "dahlia", dictionary) == Term("tag", "dahlia")
    assert store.tags.tree.path_length("dahlia", "plant") == 2
    assert store.grow("person", "Ines", dictionary) == Term("person", "Ines")
    assert store.people.links_of("Anna")["Ines"] == "friend"
    assert store.term("person", "nessie") == Term("person", "Ines")
    assert store.grow("tag", "loop", dictionary) is not None  # an entry inside itself is a root
    assert store.tags.tree.parents("loop") == ()


def test_an_answer_that_does_not_fit_changes_nothing() -> None:
    store = load_relations()
    places = len(store.places)
    bad = Entry("Nowhere", (), (), 123.0, 0.0)
    assert store.grow("place", "Nowhere", lambda _context, _name: bad) is None
    assert len(store.places) == places
