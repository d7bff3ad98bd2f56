"""Three services with topics to subscribe to: their subscriptions, notifications and coverings.

    baseball     one team, the games between two teams, or everything; a notification is a game
                                                                        everything > team > game
    traffic      a stretch of a highway; a notification is also a stretch, and matches those that
                 it overlaps                                            long stretch > part of it
    attributes   a value or anything for each attribute; a notification has some of the attributes
                                                                        fewer values > more values

The scenarios come from studies 1 and 2 of the dissertation that this network follows; the sizes are
those of study 2. Topics are numbered from 0. All operations work on arrays, so a million
subscriptions take little time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Topics = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Scenario(ABC):
    """A service with all its topics."""

    name: str
    size: int
    """The number of topics."""
    rank: npt.NDArray[np.int64]
    """A number for each topic; topics that cover it have lower numbers."""

    @abstractmethod
    def subscriptions(self, chance: np.random.Generator, count: int) -> Topics:
        """Draw the topics of subscriptions."""

    @abstractmethod
    def notifications(self, chance: np.random.Generator, count: int) -> list[tuple[int, ...]]:
        """Draw notifications."""

    @abstractmethod
    def matching(self, notification: tuple[int, ...], topics: Topics) -> Mask:
        """For each topic, whether the notification matches it."""

    @abstractmethod
    def covers(self, uppers: Topics, lowers: Topics) -> Mask:
        """For each pair, whether the upper topic covers the lower one; one of the two arrays has
        only one topic, which is in all pairs."""

    def tag(self, notification: tuple[int, ...], topics: Topics) -> list[int]:
        """The lowest topics that a notification matches."""
        return self._least(topics[self.matching(notification, topics)])

    def around(self, topic: int, topics: Topics) -> tuple[list[int], list[int]]:
        """The parents and children of a new topic among existing ones."""
        one = np.array([topic])
        above = topics[self.covers(topics, one)]
        below = topics[self.covers(one, topics)]
        return self._least(above), self._greatest(below)

    def _least(self, topics: Topics) -> list[int]:
        left = topics[np.argsort(-self.rank[topics], kind="stable")]
        return _pick_extremes(left, self.covers)

    def _greatest(self, topics: Topics) -> list[int]:
        left = topics[np.argsort(self.rank[topics], kind="stable")]
        return _pick_extremes(left, lambda rest, one: self.covers(one, rest))


def _pick_extremes(left: Topics, beaten: Callable[[Topics, Topics], Mask]) -> list[int]:
    kept = []
    while left.size:
        kept.append(int(left[0]))
        left = left[1:][~beaten(left[1:], left[:1])]
    return kept


class Baseball(Scenario):
    """Topic 0 covers everything; the teams follow, and then the games between two teams."""

    name = "baseball"
    # the shares of subscriptions to one team, and to the games between two teams
    ONE, TWO = 0.4, 0.5

    def __init__(self, teams: int = 100) -> None:
        self.teams = teams
        first, second = np.triu_indices(teams, 1)
        self.size = 1 + teams + len(first)
        self._first = np.concatenate([[-1], np.arange(teams), first])
        self._second = np.concatenate([[-1], np.full(teams, -1), second])
        self.rank = np.concatenate([[0], np.full(teams, 1), np.full(len(first), 2)])
        self._game = np.zeros((teams, teams), np.int64)
        self._game[first, second] = self._game[second, first] = 1 + teams + np.arange(len(first))

    def subscriptions(self, chance: np.random.Generator, count: int) -> Topics:
        first, second = self._pairs(chance, count)
        kind = chance.random(count)
        games = self._game[first, second]
        return np.where(kind < self.ONE, 1 + first, np.where(kind < self.ONE + self.TWO, games, 0))

    def notifications(self, chance: np.random.Generator, count: int) -> list[tuple[int, ...]]:
        first, second = self._pairs(chance, count)
        return list(zip(first.tolist(), second.tolist(), strict=True))

    def matching(self, notification: tuple[int, ...], topics: Topics) -> Mask:
        return self.covers(topics, self._game[notification].reshape(1))

    def covers(self, uppers: Topics, lowers: Topics) -> Mask:
        first, second = self._first[uppers], self._second[uppers]
        one, two = self._first[lowers], self._second[lowers]
        team = (second < 0) & ((first == one) | (first == two))
        found: Mask = (first < 0) | team | ((first == one) & (second == two))
        return found

    def _pairs(self, chance: np.random.Generator, count: int) -> tuple[Topics, Topics]:
        first = chance.integers(0, self.teams, count)
        return first, (first + chance.integers(1, self.teams, count)) % self.teams


class Traffic(Scenario):
    """Sections of a highway from one exit to another, or to the same exit."""

    name = "traffic"

    def __init__(self, exits: int = 60) -> None:
        self._low, self._high = np.triu_indices(exits)
        self.size = len(self._low)
        self.rank = self._low - self._high

    def subscriptions(self, chance: np.random.Generator, count: int) -> Topics:
        return chance.integers(0, self.size, count)

    def notifications(self, chance: np.random.Generator, count: int) -> list[tuple[int, ...]]:
        drawn = chance.integers(0, self.size, count)
        return list(zip(self._low[drawn].tolist(), self._high[drawn].tolist(), strict=True))

    def matching(self, notification: tuple[int, ...], topics: Topics) -> Mask:
        low, high = notification
        return (self._low[topics] <= high) & (self._high[topics] >= low)

    def covers(self, uppers: Topics, lowers: Topics) -> Mask:
        found: Mask = self._low[uppers] <= self._low[lowers]
        return found & (self._high[uppers] >= self._high[lowers])


class ScenarioAttributes(Scenario):
    """A topic is a number whose digits are the values of the attributes; 0 means any value."""

    name = "attributes"
    ANYTHING, PRESENT = 0.3, 0.7

    def __init__(self, attributes: int = 6, values: int = 4) -> None:
        self._values = values
        self._places = (values + 1) ** np.arange(attributes)
        self.size = (values + 1) ** attributes
        self._digits = np.arange(self.size)[:, None] // self._places % (values + 1)
        self.rank = (self._digits > 0).sum(axis=1)

    def subscriptions(self, chance: np.random.Generator, count: int) -> Topics:
        digits = self._draw(chance, count, 1 - self.ANYTHING)
        found: Topics = digits @ self._places
        return found

    def notifications(self, chance: np.random.Generator, count: int) -> list[tuple[int, ...]]:
        return [tuple(row) for row in self._draw(chance, count, self.PRESENT).tolist()]

    def matching(self, notification: tuple[int, ...], topics: Topics) -> Mask:
        return self.covers(topics, np.array(notification) @ self._places.reshape(-1, 1))

    def covers(self, uppers: Topics, lowers: Topics) -> Mask:
        upper = self._digits[uppers]
        found: Mask = ((upper == 0) | (upper == self._digits[lowers])).all(axis=1)
        return found

    def _draw(self, chance: np.random.Generator, count: int, given: float) -> Topics:
        shape = count, len(self._places)
        values = chance.integers(1, self._values + 1, shape)
        return np.where(chance.random(shape) < given, values, 0)


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "baseball": Baseball, "traffic": Traffic, "attributes": ScenarioAttributes,
}  # fmt: skip
