"""Time buckets: minutes, hours, days, weeks or months, all in UTC.

In the results of a backtest, time buckets are called `stretches`. A time bucket is numbered by
counting the buckets of the same length since 1970; weeks start on Mondays.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.model import TidingsError

Array = npt.NDArray[Any]
_MINUTE = 60_000_000
_DAY = 1440 * _MINUTE
_MINUTES = {"minute": 1, "hour": 60, "day": 1440}
NAMES = (*_MINUTES, "week", "month")


class TimeBucket(msgspec.Struct, frozen=True):
    """The length of time buckets; `minutes` is 0 for weeks and months."""

    name: str
    minutes: int = 0

    @classmethod
    def parse(cls, given: str | int | TimeBucket) -> TimeBucket:
        """Parse a name, or a number of minutes."""
        if isinstance(given, TimeBucket):
            return given
        text = str(given).strip().lower()
        if text in NAMES:
            return cls(text, _MINUTES.get(text, 0))
        if not isinstance(given, bool) and text.isdecimal() and 0 < int(text) <= 1_000_000:
            known = {minutes: name for name, minutes in _MINUTES.items()}
            return cls(known.get(int(text), f"{int(text)} minutes"), int(text))
        raise TidingsError(
            f"found every={given!r}, expected {', '.join(NAMES)} or a number of minutes"
        )

    @property
    def shows_time(self) -> bool:
        """Whether buckets are shorter than a day; then labels need a time of day."""
        return 0 < self.minutes < 1440

    def numbers(self, micros: Array) -> Array:
        """The bucket number of each time; times are in µs since 1970."""
        if self.name == "month":
            return micros.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
        if self.name == "week":
            return (micros // _DAY + 3) // 7  # 1970-01-01 was a Thursday
        return micros // (self.minutes * _MINUTE)

    def starts(self, numbers: Array) -> Array:
        """The starts of buckets: datetime64[s]."""
        if self.name == "month":
            return numbers.astype("datetime64[M]").astype("datetime64[s]")
        if self.name == "week":
            return (numbers * 7 - 3).astype("datetime64[D]").astype("datetime64[s]")
        return (numbers * (self.minutes * 60)).astype("datetime64[s]")

    def label(self, time: Any) -> str:
        """A time as text: the month, or the day, with hour and minute if buckets are shorter than a
        day."""
        unit = "m" if self.shows_time else "M" if self.name == "month" else "D"
        return str(time.astype(f"datetime64[{unit}]")).replace("T", " ")
