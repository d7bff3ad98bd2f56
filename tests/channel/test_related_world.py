"""Related interests in networks of several routers that lose, repeat and crash, against a full scan
by the formula: everybody gets what it should, once, and marked right."""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

import pytest
from tests.channel.related_world import (
    CITIES,
    Clause,
    RelatedWorld,
    TextDisk,
    Want,
    draw_event,
    draw_want,
)
from tests.repeats import rounds, runs

from tidings.routing.clients.items import Delivery
from tidings.routing.clients.subscriber import Phase
from tidings.routing.protocol import split_related

Told = dict[str, dict[bytes, float | None]]  # by subscriber: payloads with weights, None for exact


def expect(told: Told, world: RelatedWorld, on: set[str], event: dict[str, Any], what: bytes
           ) -> None:  # fmt: skip
    for name in on:
        weight = world.wants[name].gets(event)
        if weight is None or weight > 0:
            told[name][what] = weight


def judge(world: RelatedWorld, told: Told) -> Counter[str]:
    """Compare what everybody got with what everybody should get."""
    kinds: Counter[str] = Counter()
    for name, expected in told.items():
        got = [one for one in world.subscribers[name].inbox if isinstance(one, Delivery)]
        assert Counter(one.payload for one in got) == Counter([*expected]), world.wants[name]
        for one in got:
            weight = expected[one.payload]
            assert (one.related is None) == (weight is None), (world.wants[name], one)
            if one.related is not None:
                assert one.related.weight == pytest.approx(weight)
                weights = [reason.weight for reason in one.related.reasons]
                assert sum(weights) / len(weights) == pytest.approx(weight)
            kinds["exact" if weight is None else "related"] += 1
        others = {type(one).__name__ for one in world.subscribers[name].inbox} - {"Delivery"}
        assert others <= {"Interrupted", "Resumed"}, others
    return kinds


@pytest.mark.parametrize("_run", runs(1, 5))
def test_everybody_gets_what_a_full_scan_finds(_run: int, seed: int) -> None:
    chance = random.Random(seed + _run)
    found: Counter[str] = Counter()
    for _ in rounds(3, 10):
        world = RelatedWorld(chance, chance.randint(2, 5))
        told: Told = {}
        stopped: set[str] = set()
        number = 0
        some = [draw_want(chance) for _ in range(6)]
        for phase in range(3):
            for _ in range(6):  # some want the same filter by other limits
                name, want = f"s{len(told)}", chance.choice(some)
                if chance.random() < 0.5:
                    want = want._replace(least=chance.choice([None, 0.4, 0.7, 1.0]))
                told[name] = {}
                world.want(name, want)
            world.settle()
            on = set()
            for name in told.keys() - stopped:
                one = world.subscribers[name]
                if one.phase is Phase.REFUSED:  # nothing is named, so nothing can be related
                    want = world.wants[name]
                    assert want.least is not None
                    assert not any(clause.named() for clause in want.clauses)
                    stopped.add(name)
                else:
                    assert one.phase is Phase.ON, (one.phase, one.refusal)
                    on.add(name)
            world.faults.drop, world.faults.repeat = chance.choice([(0, 0), (0.1, 0.1)])
            for _ in range(12):
                event, number = draw_event(chance), number + 1
                what = b"%d" % number
                expect(told, world, on, event, what)
                world.tell(f"p{chance.randrange(2)}", event, what)
                world.run(chance.random() * 2)
                if chance.random() < 0.1:
                    world.crash(chance.choice(["root", *world.routers]))
            world.settle()
            world.faults.drop = world.faults.repeat = 0.0
            found += judge(world, told)
            for name in chance.sample(sorted(on), len(on) // 3):
                world.send(name, world.subscribers[name].stop(world.now))
                stopped.add(name)
            if phase == 1:
                world.settle(300)  # nodes that nobody wants are removed
                assert isinstance(world.disk, TextDisk)
                stored = [*world.disk.texts.values()]
                related = {split_related(one) for one in stored} - {None}
                wanted = {
                    (want.write(), want.least)
                    for want in (world.wants[name] for name in told.keys() - stopped)
                }
                assert len(related) <= len({one for one in wanted if one[1] is not None})
                texts = {text for text, _ in wanted}
                assert len(stored) - len(related) <= len(texts)
    assert found["exact"]
    assert found["related"]


def test_exact_subscribers_see_no_difference(seed: int) -> None:
    """The same subscriptions, cancellations and events, with and without somebody who wants what is
    related; those who do come and go at other times."""
    chance, found = random.Random(seed), 0
    for _ in rounds(2, 6):
        wants = [draw_want(chance)._replace(least=None) for _ in range(5)]
        wants.append(Want((Clause(city=CITIES[:3]),), None))  # something matches
        events = [draw_event(chance) for _ in range(24)]
        ends = chance.sample(range(6), 4)  # two after each third of the events
        results: list[dict[str, list[tuple[bytes, Any]]]] = []
        for least in (None, 0.3):
            world = RelatedWorld(random.Random(seed), 3)
            for at, want in enumerate(wants):
                world.want(f"s{at}", want)
                if least is not None:
                    world.want(f"near {at}", Want(want.clauses, least))
            world.settle(20)
            for at, event in enumerate(events):
                world.tell("p", event, b"%d" % at)
                if at in (7, 15):
                    world.settle(60)
                    some = ends[:2] if at == 7 else ends[2:]
                    for name in (*(f"s{one}" for one in some), f"near {some[0]}", f"near {at % 3}"):
                        one = world.subscribers.get(name)
                        if one is not None and one.phase is not Phase.STOPPED:
                            assert one.phase is Phase.ON
                            world.send(name, one.stop(world.now))
                    world.settle(20 if at == 7 else 200)  # nodes are also removed
            world.settle(60)
            results.append({
                name: sorted((item.payload, item.related) for item in one.inbox
                             if isinstance(item, Delivery))
                for name, one in world.subscribers.items() if name[0] == "s"
            })  # fmt: skip
        assert results[0] == results[1]
        found += sum(map(len, results[0].values()))
    assert found


def test_recall_and_precision_by_limit(seed: int) -> None:
    """What is delivered as related over a chain of routers, against a full scan, at each limit."""
    chance = random.Random(seed)
    world = RelatedWorld(chance, 3)
    filters: list[Want] = []
    while len(filters) < 12:
        want = draw_want(chance)
        if any(clause.named() for clause in want.clauses):
            filters.append(want)
    limits = (0.5, 0.6, 0.7, 0.8, 0.9)
    for least in limits:
        for at, want in enumerate(filters):
            world.want(f"{least} {at}", want._replace(least=least))
    world.settle(30)
    events = {b"%d" % at: draw_event(chance) for at in rounds(60, 300)}
    for what, event in events.items():
        world.tell("p", event, what)
    world.settle(60)
    for least in limits:
        expected, found = set(), set()
        for at in range(len(filters)):
            name = f"{least} {at}"
            for what, event in events.items():
                weight = world.wants[name].gets(event)
                if weight is not None and weight > 0:
                    expected.add((name, what))
            for one in world.subscribers[name].inbox:
                if isinstance(one, Delivery) and one.related is not None:
                    found.add((name, one.payload))
        right = len(expected & found)
        recall, precision = right / max(1, len(expected)), right / max(1, len(found))
        sys.stdout.write(f"{least}: {len(expected)}, recall {recall}, precision {precision}\n")
        assert expected == found
