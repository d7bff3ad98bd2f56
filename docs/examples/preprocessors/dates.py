"""An application-defined preprocessor: calendar dates, from a year down to a day.

Prints:

2013 covers 2013-02, every Monday of 2013
2013-02 covers 2013-02-14
2013-02-14 goes to 2013-02-14
2013-02-04 goes to 2013-02, every Monday of 2013
2012-12-31 goes to nobody
"""

from datetime import date

import tidings

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Period:
    """Dates that begin with a text such as 2013-02: all of them, or those on one weekday."""

    def __init__(self, start: str, weekday: int | None = None) -> None:
        self.start, self.weekday = start, weekday

    def covers(self, other: "Period") -> bool:
        wider = other.start == self.start or other.start.startswith(f"{self.start}-")
        if not wider or self.weekday is None:
            return wider
        if len(other.start) == len("2013-02-14"):  # one day has one weekday
            return date.fromisoformat(other.start).weekday() == self.weekday
        return other.weekday == self.weekday

    def matches(self, notification: date) -> bool:
        right = self.weekday in (None, notification.weekday())
        return right and notification.isoformat().startswith(self.start)

    def key(self) -> tuple[str, int | None]:
        return self.start, self.weekday

    def __str__(self) -> str:
        return self.start if self.weekday is None else f"every {DAYS[self.weekday]} of {self.start}"


desk = tidings.ObjectPreprocessor()
year, month, _, _ = (
    desk.subscribe(one)
    for one in (Period("2013"), Period("2013-02"), Period("2013-02-14"), Period("2013", 0))
)
for node in (year, month):
    print(node.interest, "covers", ", ".join(str(n.interest) for n in desk.graph.children(node)))

for day in (date(2013, 2, 14), date(2013, 2, 4), date(2012, 12, 31)):
    found = [str(node.interest) for node in desk.tag(day)]
    print(day, "goes to", ", ".join(found) or "nobody")
