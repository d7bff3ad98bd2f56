"""Predicates in filters, against `Filter.matches`, which calls them directly; what is refused."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.preprocessing.predicates_for_tests import functions, install
from tests.preprocessing.test_kinds import above

from tidings.channel.interests import ArrayInterests
from tidings.filters import Attributes, parse
from tidings.model import EnvironmentProblem, FilterError, Undecided
from tidings.preprocessing import (
    ChannelView,
    Decisions,
    Kind,
    KindDefinition,
    PredicateCall,
    make_kind,
    need_predicates,
    replace_definition,
)
from tidings.routing.protocol import messages as m, unpack_tag

NAMES = dict.fromkeys(("urgent", "odd", "fails"), "1.0")
DEFINITION = KindDefinition(predicates=NAMES)
CALLS: dict[str, Callable[..., Any]] = {n: functions()[n] for n in NAMES}  # type: ignore[misc]


def really(name: str, *values: Any) -> bool | None:
    """What a predicate decides: an exception is null."""
    try:
        found = CALLS[name](*values)
    except Exception:
        return None
    return found if isinstance(found, bool) else None


ORACLE = {name: lambda *values, name=name: really(name, *values) for name in NAMES}


def decide(decisions: Decisions, calls: tuple[PredicateCall, ...]) -> None:
    for call in calls:
        decisions.put(call, really(call.name, *call.arguments))


def random_test(chance: random.Random) -> str:
    n = chance.randrange(5)
    return chance.choice(
        [
            f"urgent(text, {n})",
            f"NOT urgent(text, {n})",
            "odd(n)",
            "odd(n + 1)",
            "odd(n) IS NULL",
            "coalesce(fails(n), true)",
            "fails(n)",
            "fails(length(text))",
            "odd(if(odd(n), n + 1, n))",
            f"n > {n}",
            f"text LIKE '%{chance.choice('a!')}%'",
            f"m = {n}",
            "m IS NULL",
        ]
    )


def random_text(chance: random.Random) -> str:
    tests = [random_test(chance) for _ in range(chance.choice([1, 1, 2, 3]))]
    return f" {chance.choice(['AND', 'AND', 'OR'])} ".join(tests)


def random_event(chance: random.Random) -> dict[str, object]:
    event: dict[str, object] = {"n": chance.randrange(7), "text": chance.choice(["", "a!", "!!!a"])}
    if chance.random() < 0.3:
        del event[chance.choice(["n", "text"])]
    if chance.random() < 0.5:
        event["m"] = chance.randrange(5)
    return event


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32))
def test_tags_are_those_of_calling_directly(seed: int) -> None:
    """At the rendezvous point and in a view, through changes; the numbers of nodes are unequal, so
    a call that is decided for one filter serves the others."""
    chance = random.Random(seed)
    kind = Kind(None, DEFINITION)
    interests = ArrayInterests(kind=kind)
    view = ChannelView(m.Described(1, 1, "", preprocessor=DEFINITION.encode()))
    there: dict[int, str] = {}
    version = 0
    for _ in range(6):
        changes: list[m.NodeChange] = []
        for _ in range(chance.randrange(1, 8)):
            version += 1
            if there and chance.random() < 0.25:
                node = chance.choice(sorted(there))
                version = interests.remove(node)
                del there[node]
                changes.append(m.NodeChange(version, node, None))
                continue
            text = random_text(chance)
            node = interests.place(text.encode()).node
            if node not in there:
                there[node] = text
                version = node
                changes.append(m.NodeChange(node, node, text))
        whole = not view.version
        told = [m.NodeChange(n, n, t) for n, t in sorted(there.items())] if whole else changes
        view.put(m.Changed(1, 1, 1, version, whole=whole, changes=tuple(told)))
        for _ in range(5):
            event = random_event(chance)
            content = json.dumps(event).encode()
            while missing := tuple(interests.missing_calls(content)):
                with pytest.raises(Undecided) as undecided:
                    interests.tag(content)
                assert undecided.value.calls == missing
                decide(kind.decisions, missing)
            lowest = interests.tag(content)
            expected = {n for n, t in there.items() if parse(t, functions=ORACLE).matches(event)}
            assert above(interests, lowest) == expected
            while calls := view.missing_calls([content]):
                assert view.tag_many([content]) == [b""]
                decide(view.decisions, tuple(calls))
            tag = unpack_tag(view.tag_many([content])[0])
            assert tag is not None
            assert above(interests, list(tag.nodes)) == expected
            assert interests.tag_many([content]).nodes.tolist() == sorted(lowest)


def test_only_what_a_notification_needs_is_asked() -> None:
    interests = ArrayInterests(kind=Kind(None, DEFINITION))
    for text in ("odd(n) AND region = 'EU'", "urgent(text, 1) AND n > 3", "odd(n) AND m = 1"):
        interests.place(text.encode())

    def asked(event: dict[str, object]) -> list[PredicateCall]:
        return [*interests.missing_calls(json.dumps(event).encode())]

    assert asked({"n": 5, "region": "US", "text": "a"}) == [PredicateCall("urgent", ("a", 1))]
    assert asked({"n": 1, "region": "EU", "text": "a"}) == [PredicateCall("odd", (1,))]
    assert asked({"n": 1, "region": "EU", "m": 1}) == [PredicateCall("odd", (1,))]
    assert asked({"n": None, "region": "EU"}) == []
    assert asked({"region": "US", "text": "a!"}) == []


def test_covering_assumes_nothing_but_equal_calls() -> None:
    kind = Kind(None, DEFINITION)

    def covers(one: str, other: str) -> bool:
        return kind.parse(one).covers(kind.parse(other))

    assert kind.parse("urgent(text, 3)") == kind.parse("urgent(text, 3)")
    assert covers("urgent(text, 3)", "urgent(text, 3) AND n > 2")
    assert not covers("urgent(text, 2)", "urgent(text, 3)")
    assert not covers("odd(n)", "n = 1")
    assert not kind.parse("odd(n) AND n = 2").never


def test_a_compilation_knows_the_predicates(tmp_path: Path) -> None:
    kind = Kind(None, DEFINITION)
    interests = ArrayInterests(folder=tmp_path / "interests", kind=kind)
    texts = [b"odd(n) AND m = 1", b"m = 1", b"urgent(text, 2)"]
    nodes = [interests.place(text).node for text in texts]
    compilation = interests.begin_compilation()
    compilation.run_here()
    stored = list(zip(nodes, texts, strict=True))
    again = ArrayInterests(None, stored, max(nodes), folder=tmp_path / "interests", kind=kind)
    assert again._nodes.compiled is not None
    content = b'{"n": 1, "m": 1}'
    with pytest.raises(Undecided) as undecided:
        again.tag(content)
    decide(kind.decisions, undecided.value.calls)
    assert again.tag(content) == [nodes[0]]
    off = Kind(None, DEFINITION.switch_off({"odd": "it is slow"}))
    without = ArrayInterests(None, stored, max(nodes), folder=tmp_path / "interests", kind=off)
    assert without.refused[nodes[0]].reason.startswith("the predicate 'odd' is switched off: it is")
    assert without.tag(content) == [nodes[1]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("odd(3)", "found only constants as arguments of the predicate 'odd', expected at least"),
        (
            "exists(items, i -> odd(i.n))",
            "found an element of a list as an argument of the",
        ),
        ("od(n)", "there is no function 'od'; did you mean odd or mod?"),
        ("slow(n) AND n > 1", "the predicate 'slow' is switched off: a call took longer than 5 ms"),
    ],
)
def test_calls_that_are_refused(text: str, reason: str) -> None:
    definition = KindDefinition(predicates={**NAMES, "slow": "2"}, off={})
    definition = definition.switch_off({"slow": "a call took longer than 5 ms"})
    with pytest.raises(FilterError) as refused:
        Kind(None, definition).parse(text)
    assert refused.value.reason.startswith(reason)


def test_a_predicate_stays_off_until_it_has_another_version() -> None:
    before = DEFINITION.switch_off({"odd": "it is slow"})
    assert KindDefinition.decode(before.encode()) == before
    assert before.digest == DEFINITION.digest
    assert replace_definition(before, DEFINITION).definition == before
    newer = KindDefinition(predicates={**NAMES, "odd": "1.1"})
    assert replace_definition(before, newer).definition == newer
    gone = KindDefinition(predicates={"fails": "1.0"})
    assert replace_definition(before, gone).definition == gone


def test_installed_predicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(install(tmp_path, "2.5")))
    assert need_predicates(["odd", "urgent"]) == {"odd": "2.5", "urgent": "2.5"}
    assert "installed_predicates" not in sys.modules  # only helper processes load the code
    with pytest.raises(EnvironmentProblem, match="the predicate 'od' is not installed here; found"):
        need_predicates(["od"])
    with pytest.raises(EnvironmentProblem, match="the name 'lower', which filters can't call"):
        need_predicates(["lower"])


def test_topics_with_predicates() -> None:
    definition = KindDefinition(
        "topics", "topic", {"sports": (), "football": ("sports",)}, predicates=NAMES
    )
    attributes = Attributes({"topic": definition.ontology, "n": "integer"}, extra="open")
    kind = make_kind(attributes, definition)
    decide(kind.decisions, (PredicateCall("odd", (3,)),))
    found = kind.parse("sports WHERE odd(n)", "topics")
    assert found.matches({"topic": "football", "n": 3})
    assert not found.matches({"topic": "football", "n": 4})
