"""Batches that are not Arrow tables: lists of mappings, and whatever has the Arrow PyCapsule
interface."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from tidings import Matcher, NotificationError, parse

FILTERS = {
    "cheap": "price < 10",
    "city": "user.city = 'Graz'",
    "tagged": "array_contains(tags, 'x')",
    "none": "price IS NULL",
    "day": "day >= DATE '2024-02-01'",
    "odd": "`geo.zone` = 'a b'",
}


def matcher() -> Matcher:
    found = Matcher(background=False)
    found.add_many(FILTERS)
    return found


CITIES = st.sampled_from(["Graz", ""])
events = st.fixed_dictionaries(
    {},
    optional={
        "price": st.none() | st.integers(-5, 20) | st.floats(-5, 20),
        "user": st.none() | st.fixed_dictionaries({}, optional={"city": CITIES}),
        "tags": st.none() | st.lists(st.none() | st.sampled_from("xyz")),
        "day": st.none() | st.dates(datetime.date(2024, 1, 1), datetime.date(2024, 3, 1)),
        "geo.zone": st.sampled_from(["a b", "c"]),
        "more": st.none() | st.lists(st.fixed_dictionaries({"n": st.integers(0, 3)})),
    },
)  # fmt: skip


@given(st.lists(events, max_size=8))
def test_lists_match_as_single_events(given: list[dict[str, Any]]) -> None:
    found = [set(ids) for ids in matcher().match_batch(given).to_pylist()]
    assert found == [
        {id_ for id_, text in FILTERS.items() if parse(text).matches(event)} for event in given
    ]


@pytest.mark.usefixtures("engine")
def test_no_events_and_events_without_attributes() -> None:
    assert matcher().match_batch([]).to_pylist() == []
    assert matcher().match_batch([{}, {}]).to_pylist() == [["none"], ["none"]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"a": 1}, {"a": "x"}], "the attribute 'a' has values of the types int, str"),
        ([{"a": {"b": 1}}, {"a": {"b": True}}], "the attribute 'a.b' has values of the types bool"),
        ([{"a": [1]}, {"a": ["x"]}], "the attribute 'a' has values of the types int, str"),
        ([{"a": 2**70}], "the values of the attribute 'a' do not fit into one column"),
        ([{"a": 2**53 + 1}, {"a": 0.5}], "the values of the attribute 'a' do not fit into one"),
        ([{"a": "\ud800"}], "the values of the attribute 'a' do not fit into one column"),
        ([{"a": 1}, 5], "event 1: found int, expected a mapping of attributes"),
        ([{3: 1}], "found the attribute name 3, expected a string"),
        (7, "found int, expected Arrow data"),
    ],
)
def test_what_is_no_batch(given: Any, said: str) -> None:
    with pytest.raises(NotificationError, match="^" + said.replace("(", "\\(")):
        matcher().match_batch(given)


class Exported:
    """A table of another library: all that Arrow knows of it is the capsule."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class ExportedBatch:
    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


def test_the_capsule_interface() -> None:
    table = pa.table({"price": [5.0, 15.0, None]})
    expected = [["cheap"], [], ["none"]]
    found: list[Any] = [
        Exported(table),
        ExportedBatch(table.to_batches()[0]),
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
    ]
    for events in found:
        assert matcher().match_batch(events).to_pylist() == expected
