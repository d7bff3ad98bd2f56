"""The table of transitions: it is complete, every state is reachable, and the docs show it."""

from __future__ import annotations

from pathlib import Path

from tidings.routing.forwarding.transitions import (
    TRANSITIONS,
    Action,
    Event,
    NodeState,
    diagram,
    next_step,
)


def test_every_state_is_reached_and_left() -> None:
    reached = {after for after, _ in TRANSITIONS.values()}
    assert reached == set(NodeState)
    assert {state for state, _ in TRANSITIONS} == set(NodeState)
    assert {event for _, event in TRANSITIONS} == set(Event)
    assert {action for _, actions in TRANSITIONS.values() for action in actions} == set(Action)


def test_what_is_not_in_the_table_changes_nothing() -> None:
    assert next_step(NodeState.ABSENT, Event.GONE) == (NodeState.ABSENT, ())
    assert next_step(NodeState.ACTIVE, Event.GONE) == (NodeState.ACTIVE, ())


def test_the_diagram_has_every_step() -> None:
    lines = diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert len(lines) == 2 + len(TRANSITIONS)
    assert "    absent --> pending: wanted / subscribe above" in lines


def test_the_page_shows_the_diagram() -> None:
    page = Path(__file__).parents[2] / "docs" / "network.md"
    assert diagram() in page.read_text()
