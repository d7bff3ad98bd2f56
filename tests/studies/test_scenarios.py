"""Scenarios: what is drawn is drawn as often as it should be, and relations are those that follow
from what matches.
"""

from __future__ import annotations

import numpy as np
import pytest

from tidings.routing.forwarding.label_graph import LabelGraph
from tidings.studies.workloads.scenarios import (
    SCENARIOS,
    Baseball,
    Scenario,
    ScenarioAttributes,
    Traffic,
)

SMALL: list[Scenario] = [Baseball(6), Traffic(7), ScenarioAttributes(3, 2)]


@pytest.mark.parametrize("scenario", SMALL, ids=lambda one: one.name)
def test_what_covers_what(scenario: Scenario, seed: int) -> None:
    """A covers B when every notification that matches B matches A."""
    chance = np.random.default_rng(seed)
    topics = np.arange(scenario.size)
    drawn = scenario.notifications(chance, 3000)
    matching = np.array([scenario.matching(one, topics) for one in drawn])
    for topic in chance.integers(0, scenario.size, 20).tolist():
        by_matches = matching[matching[:, topic]].all(axis=0)
        covers = scenario.covers(topics, np.array([topic]))
        assert covers[topic]
        assert not (covers & ~by_matches).any()
        if matching[:, topic].any() and scenario.name != "attributes":
            assert (covers == by_matches).all()


@pytest.mark.parametrize("scenario", SMALL, ids=lambda one: one.name)
def test_places_and_tags(scenario: Scenario, seed: int) -> None:
    """A graph of what it says has the coverings of the definition."""
    chance = np.random.default_rng(seed)
    graph = LabelGraph[str]()
    there = np.zeros(scenario.size, np.bool_)
    for topic in chance.permutation(scenario.size)[:25].tolist():
        graph.insert(topic, *scenario.around(topic, np.flatnonzero(there)))
        there[topic] = True
    topics = np.flatnonzero(there)
    for topic in topics.tolist():
        above = {int(one) for one in topics[scenario.covers(topics, np.array([topic]))]} - {topic}
        assert graph.ancestors(topic) == above
    for notification in scenario.notifications(chance, 50):
        matching = topics[scenario.matching(notification, topics)].tolist()
        assert tuple(sorted(scenario.tag(notification, topics))) == graph.lowest(matching)


def test_sizes() -> None:
    """Those of the dissertation, but for one: 100 teams have 4,950 pairs, which with the teams and
    with everything are 5,051 topics; it says 5,151."""
    sizes = {name: make().size for name, make in SCENARIOS.items()}
    assert sizes == {"baseball": 5051, "traffic": 1830, "attributes": 15625}


def test_how_often_what_is_drawn(seed: int) -> None:
    chance = np.random.default_rng(seed)
    baseball = Baseball()
    drawn = baseball.rank[baseball.subscriptions(chance, 100_000)]
    assert np.bincount(drawn) / 100_000 == pytest.approx([0.1, 0.4, 0.5], abs=0.01)
    attributes = ScenarioAttributes()
    drawn = attributes.rank[attributes.subscriptions(chance, 100_000)]
    assert drawn.mean() == pytest.approx(6 * 0.7, abs=0.03)
    values = np.array(attributes.notifications(chance, 10_000))
    assert (values > 0).mean() == pytest.approx(0.7, abs=0.02)
    assert set(np.unique(values)) == {0, 1, 2, 3, 4}
