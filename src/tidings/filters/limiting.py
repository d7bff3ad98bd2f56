"""Filters that limit others: somebody may have only what they cover."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.filters.filter import Filter, parse
from tidings.filters.language.attributes import Attributes
from tidings.model import FilterError

MOST_SHOWN = 500  # characters of a filter in a message


def refuse_outside(
    filter_: Filter, limits: Iterable[str], attributes: Attributes | None = None
) -> str:
    """Why a filter is refused to somebody who may have only what all `limits` cover, with the
    text to write instead; empty if it is covered. Covering that can't be proven is refused too."""
    for text in limits:
        try:
            limit = parse(text, attributes=attributes)
        except FilterError as problem:
            return f"the filter {text[:MOST_SHOWN]!r}, which limits what you may have: {problem}"
        if not limit.covers(filter_):
            found, shown = _shorten(filter_.sql()), _shorten(text)
            return (
                f"found a filter that is not covered by {shown}, to which your right to subscribe "
                f"is limited; write: ({found}) AND ({shown})"
            )
    return ""


def _shorten(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."
