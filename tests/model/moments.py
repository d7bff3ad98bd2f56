"""Times in UTC."""

from __future__ import annotations

import datetime as dt


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[arg-type, misc]
