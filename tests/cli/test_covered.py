"""Coverers finds what comparing all pairs finds."""

from __future__ import annotations

from hypothesis import given, strategies as st

import tidings
from tidings.cli import covered
from tidings.cli.covered import Coverers

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
FILTERS = st.lists(BOXES, min_size=1, max_size=2).map(" OR ".join).map(tidings.parse)


def sound(filters: list[tidings.Filter]) -> list[tidings.Filter]:
    unique = {one.key: one for one in filters}
    return [one for one in unique.values() if not (one.never or one.always)]


@given(st.lists(FILTERS, max_size=12).map(sound))
def test_like_comparing_all_pairs(filters: list[tidings.Filter]) -> None:
    coverers = Coverers(filters)
    for number, inner in enumerate(filters):
        found = set(coverers.of(number))
        for other, outer in enumerate(filters):
            if other in found:
                assert outer.covers(inner)
            elif other != number and outer.covers(inner):
                # What only a computed term shows is not looked for.
                assert not set(outer.form.hull) <= set(inner.form.hull)


def test_filters_in_many_buckets() -> None:
    """A filter of more value combinations than buckets is found under some of its terms."""
    many = ", ".join(map(str, range(covered.FEW)))
    texts = [
        f"a IN ({many}) AND b IN ({many}) AND c IN ({many})",
        f"b IN ({many})",
        "a = 1 AND b = 2 AND c = 3",
    ]
    coverers = Coverers([tidings.parse(text) for text in texts])
    assert set(coverers.of(0)) == {1}
    assert set(coverers.of(2)) == {0, 1}
