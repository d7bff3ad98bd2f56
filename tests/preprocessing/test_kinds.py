"""Kinds of interest: topics and types against the plain way on random graphs, the class of an
application against its own filters, and what is refused with which message."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from tests.filters.test_revision import a_graph, lies_under
from tests.preprocessing.installed import install
from tests.repeats import rounds

from tidings.channel import Declaration
from tidings.channel.interests import ArrayInterests
from tidings.filters import Attributes
from tidings.model import FilterError, NotificationError, TidingsError, write_path
from tidings.preprocessing import Kind, KindDefinition, declare, make_kind, replace_definition
from tidings.routing.protocol import messages as m

SPORTS: dict[str, tuple[str, ...]] = {
    "sports": (), "baseball": ("sports",), "mlb": ("baseball",), "world cup": ("sports", "events"),
    "where we play": ("sports",), "events": (),
}  # fmt: skip
TOPICS = KindDefinition("topics", "topic", SPORTS, {"ballgame": "baseball"})
TYPES = KindDefinition(
    "types", "type", {"event": (), "quote": ("event",), "trade": ("quote", "deal"), "deal": ()},
    columns={"event": {"at": "timestamp"}, "quote": {"price": "double"},
             "deal": {"size": "integer"}},
)  # fmt: skip
OPEN = Attributes({"region": "string"})


def a_kind(definition: KindDefinition, attributes: Attributes | None = None) -> Kind:
    return make_kind(declare(attributes, definition), definition)


def place(interests: ArrayInterests, text: str, dialect: str) -> int:
    return interests.place(m.Ask(1, text.encode(), dialect=dialect).stored).node


def tagged(interests: ArrayInterests, event: dict[str, Any]) -> set[int]:
    """All nodes that match, by the lowest and the edges above them."""
    return above(interests, interests.tag(json.dumps(event).encode()))


def above(interests: ArrayInterests, nodes: list[int]) -> set[int]:
    """Nodes, and all nodes above them."""
    found: set[int] = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += interests.make_placed(node).parents
    return found


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_topics_are_placed_and_tagged_as_the_ontology_says(seed: int) -> None:
    """Any order of arrival, synonyms, several parents, and filters in SQL beside the topics."""
    chance = random.Random(seed)
    graph = a_graph(chance, "abcdefghij")
    names = [*graph, "also d"]
    parents = {name: tuple(above) for name, above in graph.items()}
    kind = a_kind(KindDefinition("topics", "topic", parents, {"also d": "d"}))
    interests = ArrayInterests(kind=kind)
    graph["also d"] = ["d"]
    nodes: dict[str, int] = {}
    exact: dict[str, int] = {}
    for name in chance.sample(names, len(names)):
        nodes[name] = place(interests, name, "topics")
        if chance.random() < 0.3:
            one = chance.choice(names)
            exact[one] = place(interests, f"topic = '{one}'", "sql")
        if chance.random() < 0.3:
            place(interests, f"isa(topic, '{chance.choice(names)}') AND n > 3", "sql")
    assert nodes["d"] != nodes["also d"]  # a revision may tell them apart
    for topic in names:
        expected = {nodes[one] for one in names if lies_under(graph, topic, one)}
        if nodes["d"] in expected:
            expected.add(nodes["also d"])
        if topic in exact:
            assert above(interests, [exact[topic]]) == {exact[topic], *expected}
            expected.add(exact[topic])
        matched = tagged(interests, {"topic": topic, "n": 0})
        assert matched == expected
    for one in parents:
        for other in parents:
            upper, lower = (kind.parse(name, "topics") for name in (one, other))
            assert upper.covers(lower) == lies_under(graph, other, one)


def test_a_topic_with_a_condition() -> None:
    kind = a_kind(TOPICS, OPEN)
    found = kind.parse("baseball WHERE region = 'EU'", "topics")
    assert found == kind.parse("isa(topic, 'baseball') AND region = 'EU'")
    assert found.matches({"topic": "mlb", "region": "EU"})
    assert not found.matches({"topic": "mlb", "region": "US"})
    # the word may be part of a topic
    assert kind.parse(" where we play ", "topics") == kind.parse("isa(topic, 'where we play')")
    both = kind.parse("where we play  where\nregion = 'EU'", "topics")
    assert both == kind.parse("isa(topic, 'where we play') AND region = 'EU'")
    with pytest.raises(
        FilterError, match="there is no attribute 'regio'; did you mean region"
    ) as bad:
        kind.parse("baseball WHERE regio = 'EU'", "topics")
    assert bad.value.position == len("baseball WHERE ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("basebal", "there is no topic 'basebal'; did you mean 'baseball'?"),
        (
            "balgame WHERE x > 1",
            "there is no topic 'balgame'; did you mean 'ballgame'?",
        ),
        ("", "there is no topic ''; expected one of events, sports and 4 more"),
    ],
)
def test_unknown_topics(text: str, reason: str) -> None:
    with pytest.raises(FilterError) as refused:
        a_kind(TOPICS).parse(text, "topics")
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"topic": "mbl"}, "attribute 'topic': there is no topic 'mbl'; did you mean 'mlb'?"),
        ({"n": 1}, "attribute 'topic': found no topic, expected the name of a topic"),
        ({"topic": 5}, "attribute 'topic': found int, expected the name of a topic"),
    ],
)
def test_notifications_without_a_known_topic(event: dict[str, Any], reason: str) -> None:
    interests = ArrayInterests(kind=a_kind(TOPICS))
    with pytest.raises(NotificationError) as refused:
        interests.tag(json.dumps(event).encode())
    assert str(refused.value) == reason
    assert interests.tag_many([json.dumps(event).encode()] * 200).refused


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_the_types_of_notifications(seed: int) -> None:
    """Whatever the format, a notification has the type that its attribute names; the interest in
    the type is that of the dialect, and no other filter is mistaken for it."""
    chance = random.Random(seed)
    before = a_graph(chance, "abcdef")
    attribute = chance.choice(["type", "Kind", "é"])
    first = KindDefinition("types", attribute, {n: tuple(a) for n, a in before.items()}, {"z": "a"})
    after = {one: above for one, above in before.items() if one != "f" and "f" not in above}
    second = replace_definition(
        first, KindDefinition("types", attribute, {n: tuple(a) for n, a in after.items()})
    ).definition
    for definition in (first, second):
        there = definition.parents.keys() - definition.retired.keys()
        kind = a_kind(definition)
        interests = ArrayInterests(kind=kind)
        for name in (*before, "z", "nothing", 5, None):
            event = {"n": 1, attribute: name}
            content = chance.choice([json.dumps(event).encode(), msgspec.msgpack.encode(event)])
            type_ = interests.type_of(content)
            if name == "z" and definition is first:
                assert type_ == "a"
            elif name in there:
                assert type_ == name
            elif isinstance(name, str) and name in definition.retired:
                nearest = definition.ontology.parents(name)
                assert type_ == (nearest[0] if len(nearest) == 1 else "")
            elif name != "z":
                assert type_ == ""
            if not type_:
                continue
            interest, known = interests.find_type(type_)
            placed = interests.place(interest).node
            assert known in (None, placed)
            assert place(interests, type_, "types") == placed
            assert interests.find_type(type_) == (interest, placed)
            assert interests.type_at(placed) == type_
            path = write_path((attribute,))
            narrower = place(interests, f"isa({path}, '{type_}') AND {path} > 'a'", "sql")
            assert interests.type_at(narrower) == ""
        for content in (b"", b"{", b"3", b'{"type": {"a": 1}}', b"\xff"):
            assert interests.type_of(content) == ""
    assert ArrayInterests(kind=a_kind(TOPICS)).type_of(b'{"topic": "mlb"}') == ""


def test_other_kinds_have_no_topics() -> None:
    with pytest.raises(FilterError, match="there is no dialect 'topics', expected one of"):
        Kind().parse("mlb", "topics")


# -- types -----------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_types_inherit(seed: int) -> None:
    """A type has its own attributes and those of all types above it, and no others."""
    chance = random.Random(seed)
    graph = a_graph(chance, "abcdef")
    own = {name: f"of_{name}" for name in graph}
    definition = KindDefinition(
        "types", "type", {name: tuple(above) for name, above in graph.items()},
        columns={name: {attribute: "integer"} for name, attribute in own.items()},
    )  # fmt: skip
    kind = a_kind(definition)
    interests = ArrayInterests(kind=kind)
    nodes = {name: place(interests, name, "types") for name in graph}
    for name in graph:
        for other in graph:
            inherits = lies_under(graph, name, other)
            event = {"type": name, own[other]: 7}
            if inherits:
                filter_ = kind.parse(f"{name} WHERE {own[other]} > 5", "types")
                assert filter_.matches(event)
                expected = {nodes[one] for one in graph if lies_under(graph, name, one)}
                assert tagged(interests, event) == expected
            else:
                with pytest.raises(FilterError, match=f"'{name}' has no attribute '{own[other]}'"):
                    kind.parse(f"{name} WHERE {own[other]} > 5", "types")
                with pytest.raises(NotificationError, match=f"'{name}' has no attribute"):
                    interests.tag(json.dumps(event).encode())


def test_what_a_type_has() -> None:
    kind = a_kind(TYPES, OPEN)
    trade = kind.parse("trade WHERE price > 1 AND size = 2 AND region = 'EU'", "types")
    assert trade.matches({"type": "trade", "price": 2, "size": 2, "region": "EU"})
    with pytest.raises(FilterError) as refused:
        kind.parse("quote WHERE size > 1", "types")
    assert refused.value.reason == "the type 'quote' has no attribute 'size'; it has at, price"
    with pytest.raises(FilterError, match="there is no type 'qote'; did you mean 'quote'"):
        kind.parse("qote", "types")
    with pytest.raises(TidingsError, match="'size' has the type 'string', but the type 'deal'"):
        a_kind(TYPES, Attributes({"size": "string"}))
    with pytest.raises(TidingsError, match="'type' has the type 'integer', expected string"):
        a_kind(TYPES, Attributes({"type": "integer"}))


# -- an application's class ------------------------------------------------------------------------

PORTFOLIOS = KindDefinition("application", entry_point="portfolios", version="1")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(install(tmp_path / "site")))
    monkeypatch.delitem(__import__("sys").modules, "kinds_for_tests", raising=False)
    return tmp_path


@pytest.mark.usefixtures("installed")
def test_an_applications_class_reads_interests_and_notifications() -> None:
    interests = ArrayInterests(kind=a_kind(PORTFOLIOS))
    node = place(interests, "SAP ALV", "application")
    exact = place(interests, "security IN ('ALV', 'SAP')", "sql")
    assert node != exact == place(interests, "security IN ('ALV', 'SAP')", "sql")
    assert node == place(interests, "SAP ALV", "application")
    dear = place(interests, "security = 'SAP' AND amount > 90", "sql")
    assert interests.make_placed(exact).children == (node,)  # the newer lies above the older
    assert interests.make_placed(dear).parents == (node,)
    assert tagged(interests, {"name": "sap", "price": 91}) == {node, exact, dear}
    assert tagged(interests, {"name": "sap", "price": 9}) == {node, exact}
    assert interests.text(node) == "security IN ('SAP', 'ALV')"
    for event, reason in (
        ({"name": "sap", "currency": "USD"}, "found USD, expected EUR"),
        ({}, "the preprocessor 'portfolios' raised KeyError: 'name'"),
        ({"price": "crash"}, "the preprocessor 'portfolios' raised RuntimeError: a bug"),
        (
            {"price": "unnamed"},
            "the preprocessor 'portfolios' returned a mapping with the key 7, expected names, "
            "which are strings",
        ),
    ):
        with pytest.raises(NotificationError) as refused:
            interests.tag(json.dumps(event).encode())
        assert str(refused.value) == reason
    with pytest.raises(FilterError) as bad:
        place(interests, " ", "application")
    assert bad.value.reason == "found no security, expected at least one"
    with pytest.raises(FilterError, match="the preprocessor 'portfolios' returned a bad filter"):
        place(interests, "O'Neill", "application")


@pytest.mark.usefixtures("installed")
def test_each_text_of_an_application_has_a_node_of_its_own(seed: int) -> None:
    """Against sets of securities: in any order of arrival, for two meanings of the same texts, with
    nodes that end and are placed again, and after a restart."""
    for round_ in rounds(10, 200):
        chance = random.Random(f"{seed} {round_} texts")
        renamed = [{}, {"SAPG": "SAP", "BMW3": "BMW"}, {"SAPG": "BMW"}]
        now = chance.choice(renamed)
        stored: dict[int, bytes] = {}

        def read(now: dict[str, str], last: int, stored: dict[int, bytes]) -> ArrayInterests:
            settings = {"renamed": now} if now else {}
            kind = a_kind(msgspec.structs.replace(PORTFOLIOS, settings=settings))
            return ArrayInterests(None, sorted(stored.items()), last, kind=kind)

        interests = read(now, 0, stored)
        nodes: dict[tuple[str, str], int] = {}
        names, last = ("SAP", "SAPG", "BMW", "BMW3"), 0
        for _ in range(40):
            text, dialect = (
                " ".join(chance.choices(names, k=chance.choice((1, 1, 2)))),
                "application",
            )
            if chance.random() < 0.2:
                text, dialect = f"security = '{text}'", "sql"
            interest = m.Ask(1, text.encode(), dialect=dialect).stored
            what = chance.random()
            if what < 0.7:
                node = interests.place(interest).node
                assert nodes.setdefault((text, dialect), node) == node
                assert interests.look_up(interest)[1] == node
                assert interests.equal_to(node) == [node]
                stored[node], last = interest, max(last, node)
            elif what < 0.85 and (text, dialect) in nodes:
                node = nodes.pop((text, dialect))
                last = interests.remove(node)
                del stored[node]
                assert interests.look_up(interest)[1] is None
            else:
                now = chance.choice(renamed)
                interests = read(now, last, stored)
        assert len({*nodes.values()}) == len(nodes)
        for name in names:
            expected = {
                node
                for (text, dialect), node in nodes.items()
                if now.get(name, name) in (
                    [now.get(one, one) for one in text.split()] if dialect == "application"
                    else [text.split("'")[1]]
                )
            }  # fmt: skip
            assert tagged(interests, {"name": name.lower()}) == expected


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        (KindDefinition("application", entry_point="nothing"),
         "the preprocessor 'nothing' is not installed here; found absent, broken, portfolios among "
         "the entry points 'tidings.preprocessors'"),
        (KindDefinition("application", entry_point="broken"),
         "the preprocessor 'broken' raised RuntimeError: no database"),
        (KindDefinition("application", entry_point="absent"),
         "the preprocessor 'absent' raised AttributeError: module 'kinds_for_tests' has no "
         "attribute 'Absent'"),
        (KindDefinition("application", entry_point="portfolios", version="2"),
         "found version '1' of the preprocessor 'portfolios' here, expected version '2', which the "
         "channel uses"),
        (KindDefinition("application", entry_point="portfolios", version="1", settings={"x": 1}),
         "the preprocessor 'portfolios' raised TypeError: Portfolios.__init__() got an unexpected "
         "keyword argument 'x'"),
    ],
)  # fmt: skip
def test_classes_that_cannot_be_used(definition: KindDefinition, reason: str) -> None:
    with pytest.raises(TidingsError) as refused:
        a_kind(definition)
    assert str(refused.value) == reason


# -- definitions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("definition", [KindDefinition(), TOPICS, TYPES, PORTFOLIOS])
def test_a_definition_is_read_as_it_was_written(definition: KindDefinition) -> None:
    text = definition.encode()
    assert KindDefinition.decode(text) == definition
    assert KindDefinition.decode(text).encode() == text
    with pytest.raises(TidingsError, match="the channel's preprocessor can't be read"):
        KindDefinition.decode('{"kind": "later"}')


def test_a_declaration_continues_the_one_before() -> None:
    first = Declaration("c", OPEN, TOPICS, "")
    assert Declaration("c", OPEN, TOPICS, first.text).text == first.text
    fewer = {name: above for name, above in SPORTS.items() if name != "mlb"}
    after = KindDefinition("topics", "topic", fewer)
    second = Declaration("c", OPEN, after, first.text)
    assert second.revision is not None
    assert second.revision.moved == {"mlb": ("baseball",), "ballgame": ("baseball",)}
    assert Declaration("c", OPEN, after, second.text).text == second.text
    assert second.kind.parse("mlb", "topics") == second.kind.parse("baseball", "topics")
    # another kind starts over, and so does a channel that had none
    assert replace_definition(TYPES, TOPICS).definition == TOPICS
    assert (
        Declaration("c", OPEN, KindDefinition(), first.text).text
        == Declaration("c", OPEN, KindDefinition(), "").text
    )
