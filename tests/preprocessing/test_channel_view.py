"""The nodes of a channel in another process: its tags, corrected by a rendezvous point, against the
tags that the rendezvous point gives by itself; many at a time against one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest
from tests.broker.parts import Root
from tests.broker.run_cases import CASES, PLAIN, draw_case
from tests.broker.test_tagged_parts import an_event
from tests.broker.test_tagged_publications import fresh, waiting
from tests.channel.test_interests import random_filter
from tests.repeats import draws, runs

from tidings.filters import Attributes, parse
from tidings.model import Extra, TidingsError, write_path
from tidings.preprocessing import ChannelView, KindDefinition, channel_view, restore_attributes
from tidings.preprocessing.channel_view import Closed
from tidings.routing.clients import Follower
from tidings.routing.protocol import messages as m, unpack_tag
from tidings.snapshots.incremental_edges import IncrementalEdges


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few are tagged as a batch too, and views are compiled often."""
    monkeypatch.setattr(channel_view, "FEW", 8)
    monkeypatch.setattr(channel_view, "REBUILD_AFTER", 12)


def view_of(root: Root) -> ChannelView:
    answer = root.ask(m.Describe(1))
    assert isinstance(answer, m.Described)
    return ChannelView(answer)


def catch_up(root: Root, view: ChannelView) -> None:
    follower = Follower(m.Follow(1000, view.version, view.life))
    while not follower.is_done:
        follower.receive(root.ask(follower.question))
    assert follower.changed is not None
    view.put(follower.changed)


@pytest.mark.parametrize("run", runs(1, 60))
def test_any_interleaving_gives_the_tags_of_a_fresh_one(
    run: int, tmp_path: Path, seed: int
) -> None:
    """Several views, each as old as it happens to be; nodes come and go, the root is restarted."""
    chance = random.Random(f"{seed} {run}")
    root = Root(tmp_path)
    views = [view_of(root) for _ in range(3)]
    there: list[int] = []
    stamp = stale = 0
    for _ in draws(60, lambda: stale > 5):
        for _ in range(chance.choice([0, 1, 2, 9])):
            if len(there) > 20 or (there and chance.random() < 0.45):
                node = there.pop(chance.randrange(len(there)))
                root.drop(node)
            else:
                text = chance.choice([random_filter(chance), chance.choice(PLAIN)])
                node = root.place(text)
                there += [] if node in there else [node]
        root.sync()
        if chance.random() < 0.15:
            root.restart()
        view = chance.choice(views)
        if chance.random() < 0.5 or not view.version:
            catch_up(root, view)
        contents = [msgspec.json.encode(an_event(chance)) for _ in range(chance.choice([3, 12]))]
        tags = view.tag_many(contents)
        assert tags == [view.tag(content) for content in contents]
        expected = {}
        for content, tag in zip(contents, tags, strict=True):
            stamp += 1
            payload = b"%d" % stamp
            expected[payload] = fresh(root, content)
            assert not root.say(m.Publish("p/1", stamp, stamp, content, payload, tag=tag))
        found = {one.payload: tuple(mark.node for mark in one.marks) for one in waiting(root)}
        assert found == expected
        stale += view.version < root.version
        root.sync()
    assert stale > 5


@pytest.mark.parametrize("run", runs(2, 40))
def test_places_are_those_of_the_rendezvous_point(run: int, tmp_path: Path, seed: int) -> None:
    """What a view says to routers, against the graph of the rendezvous point, while nodes come and
    go. Views that are behind say nothing about newer nodes."""
    chance = random.Random(f"{seed} {run}")
    root = Root(tmp_path)
    view = view_of(root)
    there: list[int] = []
    compared = behind = 0
    never: set[int] = set()
    for _ in draws(40, lambda: compared > 100 and behind > 2):
        for _ in range(chance.choice([0, 1, 2, 9])):
            if len(there) > 25 or (there and chance.random() < 0.3):
                root.drop(there.pop(chance.randrange(len(there))))
            else:
                text = chance.choice([random_filter(chance), chance.choice(PLAIN)])
                node = root.place(text)
                never |= {node} if parse(text).never else set()
                there += [] if node in there else [node]
        root.sync()
        if chance.random() < 0.15:
            root.restart()
        if chance.random() < 0.7 or not view.version:
            catch_up(root, view)
        graph = root.machine.graph
        known = {node for node in graph if node <= view.version} - never
        answer = view.locate(m.Locate(0, tuple(graph)))
        found = {one.node: one for one in answer.places}
        assert known <= found.keys() <= known | set(root.machine.history.gone)
        behind += any(node > view.version for node in graph)
        for node in known:
            above = reach(node, graph.parents) & known
            below = reach(node, graph.children) & known
            assert set(found[node].above) & known == above, node
            assert set(found[node].below) & known == below, node
            compared += 1
    assert compared > 100
    assert behind > 2


def reach(node: int, step: Callable[[int], Iterable[int]]) -> set[int]:
    found: set[int] = set()
    todo = [node]
    while todo:
        new = set(step(todo.pop())) - found
        found |= new
        todo += new
    return found


@pytest.mark.parametrize("name", CASES)
def test_contents_of_every_kind(name: str, tmp_path: Path, seed: int) -> None:
    """Those that can't be read have no tag; the rest have the same as one by one."""
    chance = random.Random(seed)
    case = draw_case(name, chance)
    root = declared_root(tmp_path, case.types, case.extra)
    for text in case.texts:
        root.place(text)
    view = view_of(root)
    catch_up(root, view)
    left_out = 0
    for _ in draws(40, lambda: left_out):
        contents = [case.content(chance) for _ in range(chance.choice([5, 60]))]
        for content, tag in zip(contents, view.tag_many(contents), strict=True):
            try:
                expected = tuple(sorted(root.interests.tag(content)))
            except TidingsError:
                left_out += 1
                assert tag == b""
            else:
                found = unpack_tag(tag)
                assert found is not None
                assert root.machine.graph.lowest(found.nodes) == expected, content
    assert left_out


def test_numbers_as_texts(tmp_path: Path) -> None:
    """In a column of doubles, a whole number is still the number that was published."""
    root = Root(tmp_path)
    node = root.place("cast(x AS string) = '3'")
    view = view_of(root)
    catch_up(root, view)
    contents = [b'{"x": 3}', b'{"x": 0.5}', b'{"x": 3.0}', b'{"x": 4}'] * 5
    found = [unpack_tag(tag) for tag in view.tag_many(contents)]
    assert [one is not None and one.nodes for one in found] == [(node,), (), (), ()] * 5


def test_lists_of_several_types(tmp_path: Path) -> None:
    """A column of Arrow can't hold lists of strings and lists of integers."""
    types = {"tags": "list<string>", "ints": "list<integer>"}
    root = declared_root(tmp_path, types, "keep")
    node = root.place("array_contains(coalesce(tags, ints), 'a')")
    view = view_of(root)
    catch_up(root, view)
    found = [unpack_tag(tag) for tag in view.tag_many([b'{"tags": ["a"]}', b'{"ints": [1]}'] * 10)]
    assert [one is not None and one.nodes for one in found] == [(node,), ()] * 10


def declared_root(folder: Path, types: dict[str, str] | None, extra: Extra) -> Root:
    """A rendezvous point that describes its attributes to preprocessors."""
    if types is None:
        return Root(folder)
    root = Root(folder, Attributes(types, extra=extra))
    described = restore_attributes(types, extra, KindDefinition())
    assert described is not None
    told = {write_path((name,)): str(kind) for name, kind in described.tree.items()}
    root.machine.following._definition = msgspec.structs.replace(
        root.machine.following._definition, attributes=told, extra=extra
    )
    return root


def test_declared_attributes(tmp_path: Path) -> None:
    root = declared_root(tmp_path, {"n": "integer", "day": "date"}, "keep")
    node = root.place("day > DATE '2024-01-01'")
    view = view_of(root)
    catch_up(root, view)
    tag = unpack_tag(view.tag(b'{"day": "2024-05-01", "more": 1}'))
    assert tag is not None
    assert tag.nodes == (node,)
    with pytest.raises(TidingsError):
        view.tag(b'{"day": "yesterday"}')


def test_places(tmp_path: Path) -> None:
    root = Root(tmp_path)
    view = view_of(root)
    with pytest.raises(TidingsError, match="not known yet"):
        view.place("n > 1")
    catch_up(root, view)
    node = root.place("n > 1")
    assert view.place("n > 1").node == 0
    catch_up(root, view)
    place = view.place("1 < n")
    assert (place.node, place.version) == (node, root.version)
    root.drop(node)
    root.sync()
    catch_up(root, view)
    assert view.place("n > 1").node == 0
    with pytest.raises(TidingsError):
        view.place("n >")
    assert parse("n > 1").key == parse("1 < n").key


def test_a_view_that_is_closed_applies_no_more_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process can end at once, though hundreds of changes have come. Tags stay as they are."""
    root = Root(tmp_path)
    first = root.place("n > 1")
    root.sync()
    view = view_of(root)
    catch_up(root, view)
    before = view.tag(b'{"n": 30}')
    linked: list[int] = []
    link = IncrementalEdges._link

    def count(edges: IncrementalEdges, place: int) -> None:
        linked.append(place)
        if len(linked) == 3:
            view.close()
        link(edges, place)

    monkeypatch.setattr(IncrementalEdges, "_link", count)
    for number in range(2, 10):
        root.place(f"n > {number}")
    root.sync()
    with pytest.raises(Closed, match="the view of the channel is closed"):
        catch_up(root, view)
    assert len(linked) == 3
    assert view.tag(b'{"n": 30}') == before
    tag = unpack_tag(before)
    assert tag is not None
    assert tag.nodes == (first,)
    another = view_of(root)  # all nodes
    another.close()
    with pytest.raises(Closed):
        catch_up(root, another)
