"""Filters that preprocessors have placed, at versions of before, against filters that are placed
one by one: the same tags, and the lowest nodes that match."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from tests.repeats import draws

from tidings.channel.interests import ArrayInterests, nodes as nodes_module
from tidings.filters import parse
from tidings.model import TidingsError

LETTERS = "abc"


def a_filter(chance: random.Random) -> str:
    first, second = sorted(chance.sample(range(12), 2))
    text = f"n >= {first} AND n < {second}"
    return text + (f" AND m = '{chance.choice(LETTERS)}'" if chance.random() < 0.5 else "")


def contents() -> list[bytes]:
    return [b'{"n": %d, "m": "%s"}' % (n, m.encode()) for n in range(12) for m in LETTERS]


class Made(NamedTuple):
    """A change at the root: a node that began, with its text, or one that ended."""

    node: int
    text: str | None


class Channel:
    """A root, and a preprocessor that follows it with a delay."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.root, self.far = ArrayInterests(), ArrayInterests()
        self.texts: dict[int, str] = {}
        self.log: list[Made] = []
        self.seen = 0  # how much of the log the preprocessor knows
        self.gone: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self.suggested = self.compared = 0

    def catch_up(self, many: int) -> None:
        for node, text in self.log[self.seen : self.seen + many]:
            if text is None:
                self.far.remove(node)
            else:
                self.far.follow(node, text.encode())
        self.seen = min(len(self.log), self.seen + many)

    def ask(self, text: str) -> None:
        """The root places a filter by itself."""
        self._note(self.root.place(text.encode()).node, text)

    def suggest(self, text: str) -> None:
        """The preprocessor finds the place, and the root compares newer nodes."""
        found = self.far.find_place(text.encode())
        assert found is not None
        newer = sorted({one.node for one in self.log[self.seen :] if one.node in self.texts})
        above, below = self.replace(found.above, 0), self.replace(found.below, 1)
        node = self.root.place_at(text.encode(), found.key, above, below, newer).node
        assert self.root.identity(node) == parse(text).key
        self.suggested += node not in self.texts
        self.compared += bool(newer)
        self._note(node, text)

    def replace(self, nodes: tuple[int, ...], side: int) -> list[int]:
        """What the history does: removed nodes are replaced by those around them."""
        found, todo = set[int](), [*nodes]
        while todo:
            node = todo.pop()
            if node in self.gone:
                todo += self.gone[node][side]
            else:
                found.add(node)
        return sorted(found & self.texts.keys())

    def _note(self, node: int, text: str) -> None:
        if node not in self.texts:
            self.texts[node] = text
            self.log.append(Made(node, text))

    def remove(self) -> None:
        if self.texts:
            node = self.chance.choice([*self.texts])
            placed = self.root.make_placed(node)
            self.gone[node] = placed.parents, placed.children
            self.root.remove(node)
            del self.texts[node]
            self.log.append(Made(node, None))

    def check(self) -> None:
        filters = {node: parse(text) for node, text in self.texts.items()}
        for content in contents():
            event = eval(content)
            hit = [node for node, one in filters.items() if one.matches(event)]
            lowest = [
                a for a in hit if not any(a != b and filters[a].covers(filters[b]) for b in hit)
            ]
            assert sorted(self.root.tag(content)) == sorted(lowest)


@pytest.mark.parametrize("unread", [3, 200])
def test_whatever_comes_between(seed: int, unread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_module, "MOST_UNREAD", unread)
    chance = random.Random(seed)
    count = 0
    for _ in draws(12, lambda: count > 100):
        channel = Channel(chance)
        for _ in range(60):
            what = chance.random()
            if what < 0.5:
                channel.suggest(a_filter(chance))
            elif what < 0.65:
                channel.ask(a_filter(chance))
            elif what < 0.8:
                channel.remove()
            elif what < 0.95:
                channel.catch_up(chance.randrange(12))
            else:
                channel.check()
        channel.check()
        count += channel.compared
        assert channel.suggested


def test_a_filter_is_not_read_before_somebody_needs_it() -> None:
    root, far = ArrayInterests(), ArrayInterests()
    for at in range(5):
        text = f"n > {at}".encode()
        found = far.find_place(text)
        assert found is not None
        node = root.place_at(text, found.key, found.above, found.below, ()).node
        far.follow(node, text)
    recent = root._nodes._recent[0]
    assert (len(recent.unread), len(recent)) == (5, 5)
    assert root.text(3) == "n > 2"
    assert root.look_up(b"2 < n")[1] == 3
    assert root.tag(b'{"n": 2}') == [2]
    assert not recent.unread


def test_what_must_be_placed_by_the_rendezvous_point() -> None:
    """Filters that compute, that can never match, or that are wide; another identity than the
    filter has; a filter that can't be read, which then matches nothing."""
    far = ArrayInterests()
    assert far.find_place(b"n > 1 AND n < 0") is None
    assert far.find_place(b"lower(m) = 'a'") is None
    root = ArrayInterests()
    first = root.place(b"n > 1").node
    with pytest.raises(TidingsError, match="found an identity that does not belong to the filter"):
        root.place_at(b"n > 2", bytes(16), (), (), (first,))
    node = root.place_at(b"n >", bytes(16), (), (), ()).node
    assert root.tag(b'{"n": 5}') == [first]
    root.remove(node)
    assert root.tag(b'{"n": 5}') == [first]
