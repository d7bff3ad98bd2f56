"""Filters that limit the right to subscribe: a client may use only filters that these limits
cover."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.filters.filter import Filter, parse
from tidings.filters.language.attributes import Attributes
from tidings.model import FilterError

MOST_SHOWN = 500  # the most characters of a filter in a message


def refuse_outside(
    filter_: Filter, limits: Iterable[str], attributes: Attributes | None = None
) -> str:
    """The reason to refuse a filter, with the text to write instead; empty if every one of the
    `limits` covers the filter. A filter is also refused if the covering can't be proven."""
    for text in limits:
        try:
            limit = parse(text, attributes=attributes)
        except FilterError as problem:
            return (
                f"the filter {text[:MOST_SHOWN]!r}, which limits your right to subscribe, is not "
                f"valid: {problem}"
            )
        if not limit.covers(filter_):
            found, shown = _shorten(filter_.sql()), _shorten(text)
            return (
                f"found a filter that is not covered by {shown}, which limits your right to "
                f"subscribe; write: ({found}) AND ({shown})"
            )
    return ""


def _shorten(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."
