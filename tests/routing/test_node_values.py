"""Numbers by node against a dictionary, and claims at a start against claims one by one."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np

from tidings.routing.protocol.limits import work_of
from tidings.routing.root.ownership import Claims
from tidings.routing.root.ownership.node_values import NodeValues


def test_against_a_dictionary(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        start = {chance.randrange(1, 3000): chance.randrange(1, 9) for _ in range(200)}
        start |= {chance.randrange(1, 1 << 62): chance.randrange(1, 9) for _ in range(5)}
        found, expected = NodeValues(), dict(start)
        found.load(np.array([*start], np.int64), np.array([*start.values()], np.int64))
        for _ in range(400):
            node = chance.choice([chance.randrange(3000), *list(expected)[:5]])
            value = chance.choice([0, 0, chance.randrange(1 << 40)])
            found.set(node, value)
            expected[node] = value
        for node in (*expected, 1 << 61, 5000):
            assert found.get(node) == expected.get(node, 0)
    for node in expected:
        found.set(node, 0)
    assert not found._pages


def test_a_start_against_claims_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"owner{at}" for at in range(12)]
    for _ in range(30):
        nodes = sorted(chance.sample(range(1, 2000), 150))
        sizes = {one: work_of(bytes(chance.choice([9, 90, 5000]))) for one in nodes}
        owners = {
            one: tuple(sorted(chance.sample(names, chance.choice([1, 1, 1, 2, 3]))))
            for one in nodes
            if chance.random() < 0.9
        }
        loaded, each = Claims(), Claims()
        loaded.load(np.array(nodes, np.int64), [sizes[one] for one in nodes], owners)
        for one in nodes:
            each.measure(one, sizes[one])
            each.replace(one, owners.get(one, ()))
        for _ in range(100):  # they go on in the same way
            node, name = chance.choice(nodes), chance.choice(names)
            if chance.random() < 0.5:
                assert loaded.add(node, name) == each.add(node, name)
            elif chance.random() < 0.5:
                loaded.remove(node)
                each.remove(node)
            else:
                assert loaded.replace(node, (name,)) == each.replace(node, (name,))
        assert [*map(loaded.owners, nodes)] == [*map(each.owners, nodes)]
        for name in names:
            mine, other = loaded.holding(name), each.holding(name)
            assert (mine.nodes, mine.size, mine.long) == (other.nodes, other.size, other.long)
        picked = chance.sample(nodes, 40)
        assert loaded.count(picked) == each.count(picked)
        expected = Counter(one for node in picked for one in each.owners(node) or ("",))
        assert loaded.count(picked) == expected
