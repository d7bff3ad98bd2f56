"""The findings of many random filters are what comparing all pairs finds."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import tidings
from tidings.cli.common.subscription_files import FileSubscription
from tidings.cli.filters import findings
from tidings.cli.filters.findings import COVERED, DUPLICATE, examine

VALUES = st.integers(0, 4)
NAMES = st.sampled_from("abc")
TESTS = st.one_of(
    st.builds("{} = {}".format, NAMES, VALUES),
    st.builds("{} {} {}".format, NAMES, st.sampled_from(["<", ">", ">=", "!="]), VALUES),
    st.builds("{} IN ({}, {})".format, NAMES, VALUES, VALUES),
    st.builds("{} BETWEEN {} AND {}".format, NAMES, VALUES, VALUES),
    st.builds("{} IS NULL".format, NAMES),
    st.builds("{} LIKE '{}%'".format, NAMES, st.sampled_from(["x", "xy", "y"])),
    st.builds("{} < {}".format, NAMES, NAMES),
)
BOXES = st.lists(TESTS, min_size=1, max_size=3).map(" AND ".join)
TEXTS = st.lists(BOXES, min_size=1, max_size=2).map(" OR ".join)


@pytest.mark.parametrize("many", [0, 1_000])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, max_size=12))
def test_like_comparing_all_pairs(
    monkeypatch: pytest.MonkeyPatch, many: int, texts: list[str]
) -> None:
    monkeypatch.setattr(findings, "MANY", many)
    filters = [tidings.parse(text) for text in texts]
    parsed = [
        (FileSubscription(number, text, None, f"line {number}"), filters[number])
        for number, text in enumerate(texts)
    ]
    kinds = (DUPLICATE, COVERED)
    found = {f.subscription.id: f for f in examine(parsed) if f.kind in kinds}
    for number, one in enumerate(filters):
        if one.never or one.always:
            continue
        above = {
            n
            for n, other in enumerate(filters)
            if n != number and not (other.always or other.never) and other.covers(one)
        }
        same = {n for n in above if one.covers(filters[n])}
        # coverings may follow from others though `covers` does not see them
        if any(n < number for n in same):
            assert found[number].kind == DUPLICATE
        elif above - same:
            assert found[number].kind == COVERED
