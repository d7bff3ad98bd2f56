"""What a subscriber with an ordinary token can try."""

from __future__ import annotations

import random

from tests.broker.hostile import filters
from tests.broker.hostile.attack import GUEST, MALLORY, Attack, Ports, Subscriber

from tidings.routing.protocol import messages as m

ALL = 28_700  # filters that match everything: more than fit into the header of a notification


class Everything(Attack):
    """Thousands of filters that match everything and don't cover each other, as a subscriber with
    a name and as a guest."""

    pause = 0.5
    at_once = 25

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.ways = [(ports.edge, MALLORY, Subscriber()), (ports.root, GUEST, Subscriber())]
        self.number = 0

    def strike(self) -> None:
        for port, token, subscriber in self.ways:
            if token == GUEST and self.number % (5 * self.at_once):
                continue  # one of them goes all the way in ten minutes
            link = self.link(port, token, subscriber.hear)
            for number in range(self.number, self.number + self.at_once):
                link.ask(filters.everything(number % ALL))
            self.counts["filters"] += self.at_once
            subscriber.subscribe(link)
        self.number += self.at_once


class Backtracking(Attack):
    """Regular expressions that take for ever, and texts that are almost found by them."""

    pause = 3.0

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.subscriber = Subscriber()
        self.number = 0

    def strike(self) -> None:
        link = self.link(self.ports.edge, GUEST, self.subscriber.hear, "s")
        link.ask(filters.backtracking(self.number))
        self.subscriber.subscribe(link)
        self.counts["filters"] += 1
        size = self.chance.choice((28, 30, 40, 1000, 100_000))
        self.publish({"s": "a" * size + "!"})
        self.number += 1


class Cesql(Attack):
    """CloudEvents SQL of 12 kB."""

    pause = 4.0

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.subscriber = Subscriber()
        self.number = 0

    def strike(self) -> None:
        link = self.link(self.chance.choice(self.ports), GUEST, self.subscriber.hear)
        link.ask(filters.cesql(self.number))
        self.counts["filters"] += 1
        self.subscriber.subscribe(link)
        self.publish({f"a{n}": n for n in range(100)} | {f"b{n}": 1 for n in range(12)})
        self.number += 1


class Large(Attack):
    """Filters of every kind up to the limit of bytes, and one byte beyond it; now and then a text
    of 1 MB for them."""

    pause = 4.0

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.subscriber = Subscriber()
        self.number = 0

    def strike(self) -> None:
        link = self.link(self.ports.edge, GUEST, self.subscriber.hear, "s")
        self.number += 1
        number = self.number
        link.ask(filters.any_of(self.chance, number))
        for other in range(10):
            link.ask(filters.like(number * 10 + other))
        self.counts["filters"] += 11
        if number % 5 == 0:
            link.ask(f"f{number} = '" + "x" * (filters.LARGEST - len(f"f{number} = ''")) + "'")
            link.ask("f = '" + "x" * filters.LARGEST + "'")
            self.counts["filters"] += 2
        self.subscriber.subscribe(link)
        if number % 3 == 0:
            self.publish({"s": "a" * 1_000_000})
            self.publish({"s": "".join(map(str, range(150_000)))})


class Churn(Attack):
    """Subscriptions that come and go, others each time."""

    pause = 1.0

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.found: list[int] = []
        self.number = 0

    def hear(self, message: m.Message) -> None:
        if isinstance(message, m.Answer) and message.node:
            self.found.append(message.node)

    def strike(self) -> None:
        link = self.link(self.chance.choice(self.ports[:2]), GUEST, self.hear)
        for _ in range(5):
            self.number += 1
            link.ask(f"c = {self.number} OR pair = 'ours' AND n > {self.number}")
        if len(self.found) > 20 and link.epoch:
            link.say(m.Subscribe(link.epoch, tuple(self.found)))
            link.say(m.Unsubscribe(link.epoch, tuple(self.found[:15])))
            self.found = self.found[15:]
        if len(self.found) > 200:
            self.found.clear()
        self.counts["subscriptions"] += 5


class Questions(Attack):
    """Questions for numbers and nodes that are not there, and sets that are always said to be
    other ones."""

    pause = 2.0

    def number(self) -> int:
        return self.chance.choice((0, 1, 7, 10**6, 2**40, 2**62, self.chance.randrange(50_000)))

    def strike(self) -> None:
        link = self.link(self.chance.choice(self.ports))
        epoch, number = link.epoch, self.number
        ranges = [m.Range(number(), number(), 2**62) for _ in range(self.chance.choice((1, 1000)))]
        nodes = tuple(number() for _ in range(self.chance.choice((3, 1000))))
        link.say(
            m.Recover(epoch, number(), tuple(ranges)),
            m.Recover(epoch, number(), (m.Range(number(), 1, 5000),)),
            m.Count(epoch, number(), number(), 0),
            m.Subscribe(epoch, nodes),
            m.Unsubscribe(epoch, nodes[:5]),
            m.Resubscribe(epoch, m.Digest(number(), number())),
            m.Wanted(epoch, nodes),
            m.Redraw(epoch),
        )
        self.counts["questions"] += 8
