"""Related nodes where something is odd: what can't be related, predicates, rights, allowances, and
tags that are older than related nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.broker.test_runs import say_runs
from tests.channel.related_world import SETTINGS, Clause, Want
from tests.channel.test_related_nodes import NEAR, RelatedRoot, told

from tidings.channel.related import ChannelRelations, PublicationMerits
from tidings.channel.related.related_chains import RelatedChains
from tidings.filters import parse
from tidings.model import FilterError
from tidings.preprocessing import Kind
from tidings.relations import Reading, RelationSettings
from tidings.relations.merit import TermReader
from tidings.routing.protocol import frames, messages as m, pack_tag, relate_dialect
from tidings.routing.root import find_runs
from tidings.routing.root.publishing import Outdated


@pytest.mark.parametrize("fails", ["coordinates", "reader"])
def test_what_cant_be_related_reaches_those_that_it_matches(
    tmp_path: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(place="city", coordinates=("lat", "lon"))
    root = RelatedRoot(tmp_path, RelationSettings(SETTINGS.semantic, reading))
    related = root.want(NEAR)
    exact = root.interests.relations.bases[related]  # type: ignore[attr-defined]
    merits = PublicationMerits(RelationSettings(SETTINGS.semantic, reading), 10_000, lambda: 0.0)
    merits.use_kind(Kind())
    if fails == "reader":
        monkeypatch.setattr(TermReader, "terms", lambda *_: 1 // 0)
    huge = b'{"city": "Chicago", "late": 90}'
    if fails == "coordinates":
        huge = b'{"lat": 1%s, "lon": 2, "late": 90}' % (b"0" * 400)
    assert merits.merit(m.Publish("p", 1, 1, huge, b"")) == 0.0
    assert root.interests.relations.context(huge) == b""  # type: ignore[attr-defined]
    rows = b"".join(
        frames.encode(m.Publish("p", at, 1, content, b"%d" % at))
        for at, content in enumerate([huge, b'{"city": "Chicago", "late": 90}'] * 20, 1)
    )
    say_runs(root, rows)
    root.sync()
    due = 20 if fails == "coordinates" else 40
    assert [nodes for _, nodes, *_ in told(root.records())] == [[exact]] * due


def test_a_run_that_cant_be_related_together_is_taken_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = RelatedRoot(tmp_path)
    related = root.want(NEAR)
    content = b'{"city": "Evanston", "late": 90}'
    for first in (1, 41):
        tag = b"" if first == 1 else pack_tag(root.life, root.version, ())
        monkeypatch.setattr(root.machine.tagger, "relate_many", lambda *_, **__: 1 // 0)
        stamps = range(first, first + 40)
        say_runs(root, b"".join(
            frames.encode(m.Publish("p", at, 1, content, b"%d" % at, tag=tag)) for at in stamps
        ))  # fmt: skip
    root.sync()
    assert [nodes for _, nodes, *_ in told(root.records())] == [[related]] * 80


def test_a_wanted_related_node_is_not_charged_as_new(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    text, dialect = b"city = 'Chicago'", relate_dialect("sql", 0.7)
    nodes = root.machine.nodes
    for number, owner in enumerate(("ann", "ben"), 1):
        answer = root.ask(m.Ask(number, text, owner, dialect=dialect))
        assert isinstance(answer, m.Answer)
        assert len(nodes.makers) == (2 if number == 1 else 0)
        paid = [account for payers in nodes.makers.values() for account, _ in payers]
        root.say(m.Subscribe(root.machine.epoch, (answer.node,)))
        assert not nodes.makers
        assert all(account.made == 0 for account in paid)
    assert isinstance(answer, m.Answer)
    exact = root.interests.relations.bases[answer.node]  # type: ignore[attr-defined]
    owners = root.machine.claims.owners
    assert {*owners(exact)} == {*owners(answer.node)} == {"client/ann", "client/ben"}
    root.journal.close()


def test_a_filter_that_calls_a_predicate_has_nothing_related() -> None:
    functions = {"odd": lambda n: n % 2 == 1}
    found = parse("city = 'Chicago' AND odd(late)", functions=functions)
    relations = ChannelRelations(SETTINGS, Kind(), 10_000)
    sentence = r"needs a filter that calls no predicate, but this filter calls odd\(late\)"
    with pytest.raises(FilterError, match=sentence):
        relations.check(found, 0.7)
    with pytest.raises(FilterError, match="predicate"):
        relations.add(2, 1, found, 0.7)
    assert not relations.bases


def test_placing_a_node_does_not_look_at_all_chains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = RelatedRoot(tmp_path)
    related = root.want(NEAR)
    exact = root.interests.relations.bases[related]  # type: ignore[attr-defined]
    monkeypatch.setattr(RelatedChains, "tops", lambda _: 1 // 0)
    lower = root.want(NEAR._replace(least=0.5))
    assert root.interests.place(NEAR.write().encode()).parents == (related,)
    assert root.interests.place(b"city = 'Paris'").parents == ()
    assert {*root.machine.graph.ancestors(exact)} == {related, lower}
    root.journal.close()


def test_a_right_limited_by_an_attribute_with_a_similar_name(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    text, dialect = b"city = 'Chicago' AND capacity = 'tags'", relate_dialect("sql", 0.7)
    answer = root.ask(m.Ask(1, text, within=("capacity = 'tags'",), dialect=dialect))
    assert isinstance(answer, m.Answer)
    assert answer.node, answer
    root.journal.close()


def test_related_nodes_do_not_make_tags_old(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    exact = root.want(NEAR._replace(least=None))
    tag = pack_tag(root.life, root.version, (exact,))
    for number in range(50):
        root.want(NEAR._replace(least=0.5 + number / 100))
    event = b'{"city": "Chicago", "late": 90}'
    assert root.machine.tagger.correcting is not None
    assert root.machine.tagger.correcting.correct(tag, event) == (exact,)
    for number in range(20):
        root.want(Want((Clause(city=("Paris",), late=number),), None))
    with pytest.raises(Outdated, match="more than 16 nodes were added"):
        root.machine.tagger.correcting.correct(tag, event)
    root.journal.close()


def test_frames_have_no_value_of_a_filter(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    root.want(Want((Clause(city=("Chicago",), day=("Christmas",), author=("Dave",)),), 0.1))
    root.publish(1, {"city": "Evanston", "day": "2013-12-26", "author": "Zoe", "late": 1})
    root.sync()
    (record,) = root.records()
    for name in (b"Chicago", b"Christmas", b"Dav"):
        assert name not in record.payload
    ((_, _, found, _),) = told([record])
    (why,) = found.values()
    assert {(one.context, one.name, one.kind) for one in why.reasons} == {
        ("place", "Evanston", "near"), ("time", "2013-12-26", "ancestor"), ("person", "", "none")
    }  # fmt: skip
    root.journal.close()


def test_a_run_that_takes_long_to_relate_gives_others_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = RelatedRoot(tmp_path)
    related = root.want(NEAR)
    monkeypatch.setattr(ChannelRelations, "begin_slice", lambda _: Watch(8).is_over)
    content = b'{"city": "Evanston", "late": 90}'
    root.say(m.Publish("p", 1, 1, content, b"1"))
    for tag in (b"", pack_tag(root.life, root.version, ())):
        first = root.machine.stamps.known["p"] + 1
        buffer = b"".join(
            frames.encode(m.Publish("p", at, 1, content, b"%d" % at, tag=tag))
            for at in range(first, first + 40)
        )
        ((_, run),) = find_runs(buffer, frames.split(buffer)[0])
        assert run is not None
        turns = []
        while not run.is_done:
            before = run.rows.done
            root.say(run)
            turns.append(run.rows.done - before)
        assert max(turns) < 16  # at the end, less than 8 are taken one by one
    root.sync()
    assert [nodes for _, nodes, *_ in told(root.records())] == [[related]] * 81
    root.journal.close()


class Watch:
    """A slice that is over after some notifications."""

    def __init__(self, left: int) -> None:
        self._left = left

    def is_over(self) -> bool:
        self._left -= 1
        return self._left <= 0
