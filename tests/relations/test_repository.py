"""Merit and the repository: exact subscribers get what they would get without it, and related ones
what a full scan by the same formula finds."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Hashable
from typing import Any

import pytest
from tests.relations.drawing import draw_terms
from tests.repeats import runs

from tidings.filters import Filter, parse
from tidings.filters.values import key
from tidings.model import ABSENT, AttributesError, FilterError, TidingsError
from tidings.relations import (
    ClusterStore,
    Entry,
    Frame,
    Limit,
    Reading,
    Repository,
    SemanticStore,
    StoreSettings,
    Term,
    Weights,
    load_relations,
)
from tidings.relations.clusters import relate
from tidings.relations.merit import Postings, best_nodes, choose_hops, frame_plans, score_hops
from tidings.relations.merit.frame_plans import UNPLANNED, Sightings

READING = Reading(place="city", coordinates=("lat", "lon"), time="day", tag="topic", person="who")
CITIES = ["Chicago", "Evanston", "Milwaukee", "Illinois", "Boston", "Paris", "atlantis"]
DAYS = ["2013-12-22", "2013-12-24", "2013-12-25", "Christmas", "December 2013", "2014-01-02"]
TOPICS = ["delay", "lateness", "flight", "rose", "flower", "snow", "blizzard", "unheard"]
PEOPLE = ["Anna", "Annie", "Ben", "Dave", "zoe"]
HOPS = "BCD"


@pytest.fixture(scope="module")
def semantic() -> SemanticStore:
    return load_relations(language=None)


def draw_filter(rng: random.Random) -> str:
    tests = []
    for name, values in (("city", CITIES), ("day", DAYS), ("topic", TOPICS), ("who", PEOPLE)):
        if rng.random() < 0.45:
            kind = rng.random()
            one, two = rng.sample(values, 2)
            if kind < 0.7:
                tests.append(f"{name} = '{one}'")
            elif kind < 0.85:
                tests.append(f"{name} IN ('{one}', '{two}')")
            elif kind < 0.93:
                tests.append(f"{name} != '{one}'")
            else:
                tests.append(f"{name} IS NULL")
    if not tests or rng.random() < 0.25:
        tests.append(f"late > {rng.choice([0, 30, 60])}")
    text = " AND ".join(tests)
    return f"({text}) OR {draw_filter(rng)}" if rng.random() < 0.1 else text


def draw_event(rng: random.Random) -> dict[str, Any]:
    event: dict[str, Any] = {"late": rng.choice([-5, 10, 45, 90])}
    if rng.random() < 0.7:
        event["city"] = rng.choice([*CITIES, 7, None])
    if rng.random() < 0.2:
        event |= {"lat": 42.0 + rng.random(), "lon": -87.8}
    if rng.random() < 0.6:
        event["day"] = rng.choice([*DAYS, dt.date(2013, 12, 23), "someday"])
    if rng.random() < 0.7:
        event["topic"] = rng.choice(TOPICS)
    if rng.random() < 0.4:
        event["who"] = rng.choice(PEOPLE)
    return event


class Model:
    """Subscriptions in a list."""

    def __init__(self) -> None:
        self.held: dict[Hashable, tuple[Filter, set[Hashable], float | None]] = {}

    def exact(self, event: dict[str, Any]) -> dict[Hashable, set[Hashable]]:
        found: dict[Hashable, set[Hashable]] = {}
        for id_, (filter_, hops, _) in self.held.items():
            for hop in hops if filter_.matches(event) else ():
                found.setdefault(hop, set()).add(id_)
        return found

    def draw_counts(self, rng: random.Random, repository: Repository) -> None:
        """A hop needs an id, or no longer needs it."""
        plain = [id_ for id_, (_, _, least) in self.held.items() if least is None]
        if plain:
            id_, hop, count = rng.choice(plain), rng.choice(HOPS), rng.choice([0, 1, 5])
            repository.set_count(id_, hop, count)
            hops = self.held[id_][1]
            (hops.add if count else hops.discard)(hop)

    def related(
        self, semantic: SemanticStore, weights: Weights, event: dict[str, Any], terms: list[Term]
    ) -> dict[Hashable, float]:
        """By the formula: the mean of the best weights, if the other tests hold."""
        found: dict[Hashable, float] = {}
        names = {"city": "place", "day": "time", "topic": "tag", "who": "person"}
        for id_, (filter_, _, least) in self.held.items():
            if least is None or filter_.matches(event):
                continue
            for box in filter_.form.boxes or ():
                means, fits = [], True
                for name, allowed in box.items():
                    held = allowed.points(64) or ()
                    points = [one[1] for one in held if one[0] == 4]
                    points = points if len(points) == len(held) else []  # null is not a name
                    context: Any = names.get(name)
                    wanted = [semantic.term(context, one) for one in points] if context else []
                    if wanted and None not in wanted:
                        means.append(
                            max((relate(semantic, weights, term, want)
                                 for term in terms for want in wanted if want is not None),
                                default=0.0)
                        )  # fmt: skip
                    else:
                        fits = fits and key(event.get(name, ABSENT)) in allowed
                mean = sum(means) / len(means) if means else 0.0
                if fits and mean >= least - 1e-9:
                    found[id_] = max(mean, found.get(id_, 0.0))
        return found


def check_frames(frames: tuple[Frame, ...], want: dict[Hashable, set[Hashable]]) -> None:
    """Each id that matches is named once, and each hop that needs the payload gets it once."""
    got: dict[Hashable, list[Hashable]] = {}
    payloads: dict[Hashable, int] = {}
    for frame in frames:
        got.setdefault(frame.hop, []).extend(frame.ids)
        payloads[frame.hop] = payloads.get(frame.hop, 0) + frame.payload
    assert {hop: sorted(ids, key=repr) for hop, ids in got.items() if ids} == {
        hop: sorted(ids, key=repr) for hop, ids in want.items()
    }
    assert all(count == 1 for count in payloads.values())


def make(semantic: SemanticStore, rng: random.Random) -> Repository:
    limits = [Limit(), Limit(0.5), Limit(2.0), Limit(hops=1), Limit(hops=2)]
    settings = StoreSettings(rng.choice([1, 2]), rng.choice([3, 50, 1000]), rng.choice([20, 1e9]))
    weights = rng.choice([Weights(), Weights(near_km=300, near_days=3, descendant=0.5)])
    return Repository(semantic, READING, weights=weights, settings=settings,
                      limit=rng.choice(limits), plan_all=rng.random() < 0.5)  # fmt: skip


@pytest.mark.parametrize("run", runs(6, 60))
def test_random_traffic_against_a_list(run: int, seed: int, semantic: SemanticStore) -> None:
    rng = random.Random(f"{seed} {run}")
    repository, model = make(semantic, rng), Model()
    for now in range(220):
        step = rng.random()
        if step < 0.2:
            text, hop = draw_filter(rng), rng.choice(HOPS)
            least = rng.choice([None, None, 0.4, 0.7, 1.0])
            filter_ = parse(text)
            try:
                repository.subscribe(now, filter_, hop, least)
            except FilterError as problem:
                assert "needs a test on a context" in str(problem)  # noqa: PT017
                least = None
                repository.subscribe(now, filter_, hop)
            model.held[now] = filter_, {hop}, least
        elif step < 0.3 and model.held:
            gone = rng.choice(sorted(model.held, key=repr))
            del model.held[gone]
            repository.cancel(gone)
        elif step < 0.33:
            model.draw_counts(rng, repository)
        elif step < 0.4:
            repository.work(rng.choice([1, 5, 1000]))
        elif step < 0.43:
            repository.age(now)
        elif step < 0.45:
            repository.store.elements.tidy()
        else:
            event = draw_event(rng)
            proposal = repository.propose(event, now)
            want = model.exact(event)
            frames = proposal.frames + repository.complete(proposal, now)
            check_frames(frames, want)
            found = {one.id: one.weight for frame in frames for one in frame.related}
            terms = list(repository.reader.terms(event))
            assert found == pytest.approx(model.related(semantic, repository.weights, event, terms))
            scores = score_hops(repository.store.find(terms), repository.weights.best)
            if proposal.plan is UNPLANNED:  # values that were neither forwarded nor seen before
                assert not repository.plan_all
                assert repository.propose(event, now).plan is not UNPLANNED
            else:
                assert {one.hop: one.merit for one in proposal.frames} == pytest.approx(
                    choose_hops(scores, repository.limit)
                )
    assert len(repository.exact) == len(model.held)
    for id_ in list(model.held):
        repository.cancel(id_)
    assert len(repository.store) == len(repository.related) == 0
    assert repository.exact.held_answers() == 0
    assert not repository._held
    assert not repository._holders
    assert not repository._forwarded
    assert not repository._values_of_node


def test_random_traffic_uses_all_paths(seed: int, semantic: SemanticStore) -> None:
    """Otherwise the test above would show little."""
    rng = random.Random(seed)
    repository = Repository(semantic, READING)
    for number in range(60):
        try:
            repository.subscribe(number, draw_filter(rng), rng.choice(HOPS), 0.5)
        except FilterError:
            repository.subscribe(number, draw_filter(rng), rng.choice(HOPS))
    counts = {"skipped": 0, "early": 0, "related": 0, "labels only": 0}
    for now in range(300):
        event = draw_event(rng)
        proposal = repository.propose(event, now)
        later = repository.complete(proposal, now)
        counts["skipped"] += bool(proposal.answered.ids())
        counts["early"] += bool(proposal.frames)
        counts["related"] += any(frame.related for frame in later)
        counts["labels only"] += any(not frame.payload for frame in later)
        repository.work()
    assert min(counts.values()) >= 10, counts


@pytest.mark.parametrize("run", runs(2, 20))
def test_subscriptions_change_between_the_two_steps(
    run: int, seed: int, semantic: SemanticStore
) -> None:
    rng = random.Random(f"{seed} {run}")
    repository, model = make(semantic, rng), Model()
    for now in range(200):
        event = draw_event(rng)
        proposal = repository.propose(event, now)
        sent = {(frame.hop, id_) for frame in proposal.frames for id_ in frame.ids}
        if rng.random() < 0.3 and model.held:
            gone = rng.choice(sorted(model.held, key=repr))
            del model.held[gone]
            repository.cancel(gone)
        if rng.random() < 0.5:
            filter_, hop = parse(draw_filter(rng)), rng.choice(HOPS)
            repository.subscribe(now, filter_, hop)
            model.held[now] = filter_, {hop}, None
        if rng.random() < 0.2:
            model.draw_counts(rng, repository)
        later = [(frame.hop, id_) for frame in repository.complete(proposal, now)
                 for id_ in frame.ids]  # fmt: skip
        want = {(hop, id_) for hop, ids in model.exact(event).items() for id_ in ids}
        assert want <= sent | set(later)
        assert set(later) <= want
        assert len(later) == len(set(later) - sent)
        if rng.random() < 0.5:
            repository.work()


# -- merit ---------------------------------------------------------------------------------------


def test_only_the_best_nodes_of_a_hop_count(semantic: SemanticStore) -> None:
    store = ClusterStore(semantic)
    for number in range(30):
        store.learn([Term("tag", "rose"), Term("person", f"p{number}")], "B", [number], 0)
    store.learn([Term("tag", "rose")], "C", [99], 0)
    hits = store.find([Term("tag", "rose"), Term("person", "p7")])
    assert score_hops(hits, 10) == {"B": 11.0, "C": 1.0}
    assert [hit.merit for hit in best_nodes(hits, 3)] == [2.0, 1.0, 1.0]


@pytest.mark.parametrize("run", runs(3, 40))
def test_merits_in_arrays_against_merits_of_hits(
    run: int, seed: int, semantic: SemanticStore
) -> None:
    rng = random.Random(f"{seed} {run}")
    weights = Weights(best=rng.choice([1, 3, 10]), links=rng.choice([1, 2]))
    store = ClusterStore(semantic, weights, StoreSettings(most=rng.choice([10, 500])))
    dropped: list[Term] = []
    postings = Postings(store, dropped.append)
    asked = [draw_terms(rng, semantic) for _ in range(12)]
    for now in range(200):
        step = rng.random()
        if step < 0.35:
            ids = rng.sample(range(60), rng.randint(1, 3))
            store.learn(draw_terms(rng, semantic), rng.randrange(20), ids, now)
        elif step < 0.45:
            store.cancel(rng.randrange(60))
        elif step < 0.5:
            store.elements.tidy()
        else:
            terms = rng.choice(asked) if rng.random() < 0.7 else draw_terms(rng, semantic)
            terms = list(dict.fromkeys(terms))
            want = score_hops(store.find(terms), weights.best)
            assert postings.score(terms) == pytest.approx(want)
            same = {node for term in terms for node in postings.of(term).same}
            assert same == {node for node in store if set(node.terms) & set(terms)}
    assert dropped
    postings.forget()
    assert not postings._looking


def test_plans_are_kept_until_they_change(semantic: SemanticStore) -> None:
    repository = Repository(semantic, Reading(tag="topic"))
    repository.subscribe(1, "topic = 'rose'", "B")
    repository.subscribe(2, "topic = 'delay'", "B")

    def plan(topic: str) -> Any:
        repository.propose({"topic": topic}, 0)
        return repository.plans.by_values[topic,]

    for topic in ("rose", "delay"):
        repository.route({"topic": topic}, 0)
    repository.work()
    rose, delay, lily = plan("rose"), plan("delay"), plan("lily")
    assert rose.frames == (Frame("B", (1,), True, 1.0),)
    assert lily.frames == ()
    repository.subscribe(3, "topic = 'rose'", "C")  # an answer that is held has changed
    assert plan("rose") is not rose
    assert plan("delay") is delay
    repository.subscribe(4, "topic = 'flower'", "C")
    repository.route({"topic": "flower"}, 1)
    repository.work()  # a new element, above rose and lily
    assert {frame.hop for frame in plan("lily").frames} == {"C"}
    assert plan("delay") is delay
    repository.cancel(2)
    assert plan("delay").frames == ()
    repository.set_limit(Limit(9.0))
    assert plan("lily").frames == ()


def test_long_values_are_not_remembered(semantic: SemanticStore) -> None:
    repository = Repository(semantic, Reading(tag="topic", person="who"))
    repository.subscribe(1, f"topic = '{'x' * 500}'", "B")
    for now in range(3):
        frames = repository.route({"topic": "x" * 500, "who": ["a", "b"]}, now)
        assert [id_ for frame in frames for id_ in frame.ids] == [1]
        repository.work()
    assert not repository.plans.by_values
    [node] = repository.store
    assert node.uses == 3


def test_limits() -> None:
    scores: dict[Hashable, float] = {"B": 2.0, "C": 1.0, "D": 1.0, "E": 0.3}
    assert choose_hops(scores, Limit(1.0)) == {"B": 2.0, "C": 1.0, "D": 1.0}
    assert choose_hops(scores, Limit(hops=1)) == {"B": 2.0}
    assert choose_hops(scores, Limit(hops=2)) == {"B": 2.0, "C": 1.0, "D": 1.0}  # C and D are equal
    assert choose_hops({}, Limit(hops=2)) == {}
    with pytest.raises(AttributesError, match=r"found the limit 0, expected a number above 0"):
        Limit(0)
    with pytest.raises(AttributesError, match=r"found 0 hops to be served"):
        Limit(hops=0)


def test_near_hits_prove_nothing_and_skip_nothing(semantic: SemanticStore) -> None:
    repository = Repository(semantic, READING)
    repository.subscribe(1, "city = 'Chicago'", "B")
    repository.subscribe(2, "city = 'Evanston'", "C")
    repository.route({"city": "Chicago"}, 0)
    repository.work()
    proposal = repository.propose({"city": "Evanston"}, 1)
    assert proposal.answered.ids() == []
    assert [(frame.hop, frame.ids) for frame in repository.complete(proposal, 1)] == [("C", (2,))]


def test_what_is_decided_is_delivered_below_the_limit(semantic: SemanticStore) -> None:
    repository = Repository(semantic, READING, limit=Limit(5.0))
    repository.subscribe(1, "topic = 'rose'", "B")
    for now in range(2):
        proposal = repository.propose({"topic": "rose"}, now)
        assert proposal.frames == ()
        assert repository.complete(proposal, now) == (Frame("B", (1,), True),)
        repository.work()
    assert repository.propose({"topic": "rose"}, 2).answered.ids() == [1]


def test_a_hop_that_was_served_gets_other_ids_without_the_payload(semantic: SemanticStore) -> None:
    repository = Repository(semantic, READING)
    repository.subscribe(1, "topic = 'rose'", "B")
    repository.subscribe(2, "topic = 'rose' AND late > 30", "B")
    repository.route({"topic": "rose", "late": 0}, 0)
    repository.work()
    first, second = repository.route({"topic": "rose", "late": 45}, 1)
    assert (first.ids, first.payload, first.merit) == ((1,), True, 1.0)
    assert (second.ids, second.payload, second.merit) == ((2,), False, None)


def test_a_new_subscription_joins_the_answers_that_are_held(semantic: SemanticStore) -> None:
    repository = Repository(semantic, READING)
    repository.subscribe(1, "topic = 'rose'", "B")
    repository.route({"topic": "rose"}, 0)
    repository.work()
    repository.subscribe(2, "topic = 'rose'", "C")
    repository.subscribe(3, "topic IN ('rose', 'lily')", "C")
    repository.subscribe(4, "topic != 'rose'", "C")
    repository.subscribe(5, "topic LIKE 'ro%'", "C")
    assert sorted(repository.propose({"topic": "rose"}, 1).answered.ids(), key=repr) == [1, 2, 3, 5]


# -- related -------------------------------------------------------------------------------------


def test_delays_near_chicago_around_christmas(semantic: SemanticStore) -> None:
    repository = Repository(semantic, READING)
    text = "city = 'Chicago' AND day = 'Christmas' AND late > 60"
    repository.subscribe("me", text, "B", related=0.7)
    repository.subscribe("exact only", text, "B")

    def find(**event: Any) -> list[tuple[Hashable, float]]:
        frames = repository.route(event, 0)
        assert not any(frame.ids for frame in frames)
        return [(one.id, round(one.weight, 2)) for frame in frames for one in frame.related]

    assert find(city="Chicago", day="2013-12-25", late=90) == [("me", 1.0)]
    assert find(city="Evanston", day="2013-12-25", late=90) == [("me", 0.9)]
    assert find(city="Chicago", day="2013-12-22", late=90) == [("me", 0.79)]
    assert find(city="Evanston", day="2013-12-22", late=90) == []  # (0.81 + 0.57) / 2
    assert find(city="Chicago", day="2013-12-25", late=10) == []
    assert find(city="Boston", day="2013-12-25", late=90) == []
    [frame] = repository.route({"city": "Chicago", "day": "2013-12-25", "late": 90}, 0)
    assert [(context, edge.reason) for context, edge in frame.related[0].reasons] == [
        ("place", "exact"), ("time", "ancestor"),
    ]  # fmt: skip


def test_tags_in_lists(semantic: SemanticStore) -> None:
    repository = Repository(semantic, Reading(tag="tags"))
    repository.subscribe(1, "array_contains(tags, 'flower')", "B", related=0.7)
    [frame] = repository.route({"tags": ["house", "rose"]}, 0)
    assert frame.related[0].reasons == (("tag", (1.0, "ancestor")),)
    [frame] = repository.route({"tags": ["flower"]}, 0)
    assert frame.ids == (1,)
    assert frame.related == ()


@pytest.mark.parametrize("least", [0, -1, 1.1])
def test_related_is_a_share(least: float, semantic: SemanticStore) -> None:
    expected = r"found related=.*, expected a number above 0 and at most 1"
    with pytest.raises(TidingsError, match=expected):
        Repository(semantic, READING).subscribe(1, "topic = 'rose'", "B", related=least)


def test_filters_that_name_no_value_are_refused(semantic: SemanticStore) -> None:
    repository = Repository(semantic, READING)
    with pytest.raises(FilterError, match=r"needs a test on a context \(city, day, topic, who\)"):
        repository.subscribe(1, "late > 5", "B", related=0.7)
    wide = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(15))
    with pytest.raises(FilterError, match=r"needs a filter with fewer alternatives"):
        repository.subscribe(1, wide, "B", related=0.7)
    assert 1 not in repository.exact
    repository.subscribe(1, "topic = 'rose'", "B")
    with pytest.raises(TidingsError, match=r"the id 1 is already in use"):
        repository.subscribe(1, "topic = 'rose'", "B", related=0.5)
    with pytest.raises(TidingsError, match=r"found the id 2, expected the id of a subscription"):
        repository.cancel(2)


# -- readings and dictionaries -------------------------------------------------------------------


def test_terms_of_an_event() -> None:
    semantic = load_relations()
    reading = Reading("city", ("lat", "lon", "alt"), "at", "tags", "title", "who")
    reader = Repository(semantic, reading).reader
    event = {"city": "nowhere", "lat": 1, "lon": 2.5, "alt": 30, "at": dt.date(2013, 12, 25),
             "tags": ["rose", "Roses", 3], "title": "A blizzard", "who": "Dave"}  # fmt: skip
    terms = reader.terms(event)
    assert [term.context for term in terms] == ["place", "time", "tag", "person", "place", "tag"]
    assert [str(term.value) for term in terms if term.context in ("tag", "person")] == [
        "rose", "David", "blizzard",
    ]  # fmt: skip
    assert [term.context for term in reader.terms({**event, "city": "Paris"})].count("place") == 1
    assert reader.terms({}) == ()


def test_readings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(AttributesError, match=r"found no attribute of a context"):
        Reading()
    with pytest.raises(AttributesError, match=r"found 1 attributes of coordinates"):
        Reading(coordinates=("lat",))


def test_the_dictionary_is_asked_once_about_what_is_near_nothing() -> None:
    semantic = load_relations(language=None)
    asked: list[str] = []

    def dictionary(context: str, name: str, /) -> Entry | None:
        asked.append(name)
        return Entry("dahlia", ("flower",)) if name == "dahlia" else None

    repository = Repository(semantic, READING, dictionary=dictionary)
    for number, topic in enumerate(["dahlia", "thing", "rose", "flower"]):
        repository.subscribe(number, f"topic = '{topic}'", "BCDE"[number])
    for now, topic in enumerate(["rose", "dahlia", "thing", "thing", "dahlia"]):
        repository.route({"topic": topic}, now)
        repository.work()
    assert asked == ["dahlia", "thing"]
    assert {hit.node.hop for hit in repository.best({"topic": "flower"}, 5)} == {"B", "D"}


def test_nodes_have_counts_at_hops(semantic: SemanticStore) -> None:
    repository = Repository(semantic, READING, settings=StoreSettings(least=10))
    repository.subscribe("node", "topic = 'rose'", "B")
    repository.set_count("node", "B", 9)
    repository.set_count("node", "C", 10)
    for now in range(2):
        frames = repository.route({"topic": "rose"}, now)
        assert {frame.hop: frame.ids for frame in frames} == {"B": ("node",), "C": ("node",)}
        repository.work()
    assert [node.hop for node in repository.store] == ["C"]  # at B, too few subscribe
    repository.set_count("node", "C", 0)
    assert len(repository.store) == 0
    assert [frame.hop for frame in repository.route({"topic": "rose"}, 2)] == ["B"]
    with pytest.raises(TidingsError, match=r"found -1 subscriptions, expected at least 0"):
        repository.set_count("node", "B", -1)
    with pytest.raises(TidingsError, match=r"found the id 'none', expected the id"):
        repository.set_count("none", "B", 1)
    repository.subscribe("me", "topic = 'rose'", "B", related=0.5)
    with pytest.raises(TidingsError, match=r"a second hop for 'me', expected exactly one"):
        repository.set_count("me", "C", 1)


def test_work_is_done_later_and_in_pieces(semantic: SemanticStore) -> None:
    repository = Repository(semantic, READING)
    repository.subscribe(1, "topic IS NOT NULL", "B")
    for now, topic in enumerate(TOPICS):
        repository.route({"topic": topic}, now)
    assert repository.pending == len(TOPICS)
    assert len(repository.store) == 0
    assert repository.work(3) == len(TOPICS) - 3
    assert len(repository.store) == 2  # delay and lateness are one tag
    repository.work()
    repository.route({"topic": "rose"}, 99)
    assert repository.pending == 0  # it is known already


def test_values_are_planned_when_they_come_again_or_were_forwarded(
    semantic: SemanticStore,
) -> None:
    repository = Repository(semantic, Reading(tag="topic"), plan_all=False)
    repository.subscribe(1, "topic = 'rose'", "B")
    rose, lily = {"topic": "rose"}, {"topic": "lily"}
    assert repository.propose(rose, 0).plan is UNPLANNED
    assert [frame.ids for frame in repository.route(rose, 0)] == [(1,)]
    repository.work()
    repository._sightings = Sightings()  # it was forwarded, so it need not be seen again
    assert [frame.merit for frame in repository.propose(rose, 1).frames] == [1.0]
    assert repository.propose(lily, 2).plan is UNPLANNED
    assert repository.propose(lily, 3).plan is not UNPLANNED
    assert repository.propose({"topic": ["rose"] * 300}, 4).plan is not UNPLANNED
    repository.cancel(1)
    assert not repository._forwarded


def test_sightings_forget_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_plans, "MOST", 3)
    seen = Sightings()
    assert [seen.is_first((n,)) for n in range(5)] == [True] * 5
    assert not seen.is_first((0,))
    assert [seen.is_first((n,)) for n in range(5, 8)] == [True] * 3
    assert seen.is_first((0,))
