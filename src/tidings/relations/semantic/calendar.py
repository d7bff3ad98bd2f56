"""Times by name: years, months and days, with holidays and seasons between them.

    2013 ─┬─ December 2013 ──────┬─ 25 December 2013 ── 8:30 on that day
          ├─ Winter 2013 ────────┤
          └─ Christmas 2013 ─────┘         Christmas 2013 is also below Christmas, of all years

A day is below its month, and below the holidays and seasons that contain it. A time within one day
is below that day; any other span is below its month or, if no month contains it, below its year. A
holiday of one day is the same as that day. All times are in UTC.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator

import msgspec

from tidings.model import AttributesError
from tidings.relations.semantic.term_values import Recurring, TimeSpan, name_key

DAY = 86_400_000_000  # microseconds
FIRST_YEAR, LAST_YEAR = 2, 9997
MOST_YEARS = 1000  # the most years whose holidays are cached
_EPOCH = dt.date(1970, 1, 1).toordinal()
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class YearlyRule(msgspec.Struct, frozen=True):
    """When a holiday or a season begins in each year, and when it ends. Exactly one of `date`,
    `easter` and `weekday` says when it begins; `days` or `until` says when it ends."""

    name: str
    date: tuple[int, int] | None = None
    easter: int | None = None
    weekday: tuple[int, int] | None = None
    """The weekday, from 0 for Monday, and which one in the month, from 1; -1 is the last one."""
    month: int = 1
    days: int = 1
    until: tuple[int, int] | None = None

    def span(self, year: int) -> TimeSpan:
        """The span of the holiday or season that begins in a year."""
        if self.date is not None:
            first = _ordinal(year, *self.date)
        elif self.easter is not None:
            first = easter_sunday(year) + self.easter
        else:
            assert self.weekday is not None
            first = _nth_weekday(year, self.month, *self.weekday)
        if self.until is None:
            return _days(first, first + self.days)
        end = _ordinal(year, *self.until)
        return _days(first, end if end > first else _ordinal(year + 1, *self.until))


class Calendar:
    """Holidays and seasons, and the tree of all times."""

    def __init__(self) -> None:
        self._rules: dict[str, YearlyRule] = {}
        self._names: dict[str, str] = {}
        self._by_year: dict[int, tuple[tuple[TimeSpan, str], ...]] = {}

    def add(self, rule: YearlyRule, also: Iterable[str] = ()) -> None:
        """Add a holiday or a season."""
        for name in (rule.name, *also):
            if name_key(name) in self._names:
                raise AttributesError(f"{rule.name}: found the name '{name}' twice, expected once")
        for name in (rule.name, *also):
            self._names[name_key(name)] = rule.name
        self._rules[rule.name] = rule
        self._by_year.clear()

    def __len__(self) -> int:
        return len(self._rules)

    def find(self, name: str) -> TimeSpan | Recurring | None:
        """The time that a name means: `Christmas`, `Christmas 2013`, `2013`, `May 2013`, `2013-05`,
        `2013-05-01`, or a moment in ISO 8601."""
        key = name_key(name)
        if key in self._names:
            return Recurring(self._names[key])
        words, _, last = key.rpartition(" ")
        if last.isdecimal() and len(last) == 4 and FIRST_YEAR <= int(last) <= LAST_YEAR:
            if words in self._names:
                return self._rules[self._names[words]].span(int(last))
            if words in MONTHS:
                return month_span(int(last), MONTHS.index(words) + 1)
            if not words:
                return year_span(int(last))
        return _read_iso(name.strip())

    def spans(self, name: Recurring, year: int) -> Iterator[TimeSpan]:
        """The spans of a holiday or a season that begin in a year, the year before or the year
        after."""
        rule = self._rules.get(name.name)
        if rule is not None:
            for one in range(max(year - 1, FIRST_YEAR), min(year + 1, LAST_YEAR) + 1):
                yield rule.span(one)

    def recurring(self) -> Iterator[Recurring]:
        return map(Recurring, self._rules)

    def named_in(self, year: int) -> tuple[tuple[TimeSpan, str], ...]:
        """The holidays and seasons that begin in a year."""
        if year not in self._by_year:
            if len(self._by_year) >= MOST_YEARS:
                self._by_year.clear()
            found = ((rule.span(year), name) for name, rule in self._rules.items())
            self._by_year[year] = tuple(found) if FIRST_YEAR <= year <= LAST_YEAR else ()
        return self._by_year[year]

    def title(self, value: TimeSpan | Recurring) -> str:
        """A time as text."""
        if isinstance(value, Recurring):
            return value.name
        first = day_of(value.start)
        named = [name for span, name in self.named_in(first.year) if span == value]
        if named:
            return f"{named[0]} {first.year}"
        if value == year_span(first.year):
            return str(first.year)
        if value == month_span(first.year, first.month):
            return f"{MONTHS[first.month - 1].capitalize()} {first.year}"
        if value.stop - value.start == DAY and value.start % DAY == 0:
            return first.isoformat()
        moment = dt.datetime.fromtimestamp(value.start / 1e6, dt.UTC)
        return moment.replace(microsecond=0, tzinfo=None).isoformat(" ")

    def parents(self, value: TimeSpan | Recurring) -> list[TimeSpan | Recurring]:
        """The times directly above a time."""
        if isinstance(value, Recurring):
            return []
        first, last = day_of(value.start), day_of(max(value.start, value.stop - 1))
        year, month = year_span(first.year), month_span(first.year, first.month)
        is_day = value == day_span(first)
        if value == year:
            return []
        recurring: list[TimeSpan | Recurring] = [
            Recurring(name) for span, name in self.named_in(first.year) if span == value
        ]
        if value == month or (recurring and not is_day):
            return [*recurring, *([year] if year.contains(value) else [])]
        if not is_day and first == last:
            return [day_span(first)]
        found: list[TimeSpan | Recurring] = [
            span
            for begun in (first.year - 1, first.year)
            for span, _ in self.named_in(begun) if span.contains(value) and span != value
        ]  # fmt: skip
        shortest = next((one for one in (month, year) if one.contains(value)), None)
        return [*recurring, *found, *([] if shortest is None else [shortest])]

    def ancestors(self, value: TimeSpan | Recurring, links: int) -> dict[TimeSpan | Recurring, int]:
        """The times above a time, up to `links` links away, each with the number of links to it."""
        found: dict[TimeSpan | Recurring, int] = {}
        level = [value]
        for distance in range(1, links + 1):
            level = [one for at in level for one in self.parents(at) if one not in found]
            found.update(dict.fromkeys(level, distance))
        return found


def year_span(year: int) -> TimeSpan:
    return _days(_ordinal(year, 1, 1), _ordinal(year + 1, 1, 1))


def month_span(year: int, month: int) -> TimeSpan:
    after = _ordinal(year + 1, 1, 1) if month == 12 else _ordinal(year, month + 1, 1)
    return _days(_ordinal(year, month, 1), after)


def day_of(moment: int) -> dt.date:
    """The day of a moment in microseconds."""
    return dt.date.fromordinal(moment // DAY + _EPOCH)


def day_span(day: dt.date) -> TimeSpan:
    return _days(day.toordinal(), day.toordinal() + 1)


def easter_sunday(year: int) -> int:
    """The ordinal of Easter Sunday, by the algorithm of Meeus, Jones and Butcher."""
    a, b, c = year % 19, year // 100, year % 100
    d, e = b // 4, b % 4
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = c // 4, c % 4
    n = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 22 * n) // 451
    month, day = divmod(h + n - 7 * m + 114, 31)
    return _ordinal(year, month, day + 1)


def _nth_weekday(year: int, month: int, weekday: int, which: int) -> int:
    if which > 0:
        first = _ordinal(year, month, 1)
        return first + (weekday - (first - 1)) % 7 + 7 * (which - 1)
    last = month_span(year, month).stop // DAY + _EPOCH - 1
    return last - ((last - 1) - weekday) % 7 + 7 * (which + 1)


def _ordinal(year: int, month: int, day: int) -> int:
    return dt.date(year, month, day).toordinal()


def _days(first: int, beyond: int) -> TimeSpan:
    return TimeSpan((first - _EPOCH) * DAY, (beyond - _EPOCH) * DAY)


def _read_iso(text: str) -> TimeSpan | None:
    if len(text) == 7 and text[4] == "-" and (text[:4] + text[5:]).isdecimal():
        year, month = int(text[:4]), int(text[5:])
        return month_span(year, month) if 1 <= month <= 12 and year >= FIRST_YEAR else None
    try:
        if len(text) == 10:
            return day_span(dt.date.fromisoformat(text))
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment_span(moment)


def moment_span(moment: dt.datetime) -> TimeSpan:
    """The span of a moment; a moment without a time zone is in UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    past = moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    at = (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds
    return TimeSpan(at, at)
