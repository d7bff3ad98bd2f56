"""Rank space and the batch join, on three filters and eight events.

tests/docs/test_pictures.py computes the codes, the order and the matches with tidings itself.
"""

from __future__ import annotations

from tools.pictures.shapes import Drawing, Tone

FILTERS = {
    "ana": "origin = 'EWR' AND dep_delay > 60",
    "ben": "origin = 'JFK' AND dep_delay BETWEEN 5 AND 100",
    "cy": "origin = 'LGA' AND dep_delay > 100",
}
INTERVALS = {"ana": (2, 3), "ben": (1, 2), "cy": (3, 3)}  # codes of dep_delay
PIECES = ["less, absent", "5 to 60", "to 100", "more", "texts"]  # by code
EVENTS: list[tuple[str, int | None]] = [
    ("JFK", 30),
    ("EWR", 144),
    ("LGA", 12),
    ("EWR", 2),
    ("JFK", 120),
    ("EWR", 75),
    ("LGA", None),
    ("JFK", 61),
]
ORIGINS = {"EWR": 1, "JFK": 3, "LGA": 5}  # codes of origin
BOX = "ana"  # the box whose slice is shown
SLICE = slice(3)  # of the sorted events
HIGH = 26.0  # the height of a table row


def code_of_delay(delay: int | None) -> int:
    """The code of a delay: the number of cuts before it."""
    return 0 if delay is None else (delay >= 5) + (delay > 60) + (delay > 100)


def order() -> list[int]:
    """The numbers of the events, sorted by their codes of origin."""
    return sorted(range(len(EVENTS)), key=lambda at: ORIGINS[EVENTS[at][0]])


def matches() -> list[int]:
    """The events of the slice that pass the other test."""
    low, high = INTERVALS[BOX]
    return [at for at in order()[SLICE] if low <= code_of_delay(EVENTS[at][1]) <= high]


def rank_space() -> Drawing:
    drawing = Drawing(
        880,
        604,
        "Rank space and the batch join",
        "Above, the end points of all tests of dep_delay divide its values into five pieces. The "
        "code of a value is the number of its piece, and the test of each filter is an interval of "
        "codes. Below, a batch of eight events is turned into codes and sorted by the codes of "
        "origin. The events that pass the access test of a box form one slice. The other test is "
        "applied to the whole slice at once and yields a mask.",
    )
    _draw_ranks(drawing)
    _draw_join(drawing)
    return drawing


def _draw_ranks(d: Drawing) -> None:
    d.text(24, 30, "Rank space", "head", anchor="start")
    d.text(122, 30, "of dep_delay: a value's code is the number of cuts before it", "small",
           anchor="start")  # fmt: skip
    left, width, axis = 300.0, 110.0, 92.0
    cuts = ["5", "60", "100", "end of numbers"]
    d.line((left, axis), (left + 5 * width, axis))
    for at, words in enumerate(cuts, 1):
        x = left + at * width
        d.line((x, axis - 8), (x, 238), dashed=True)
        d.text(x, axis - 20, words, "code", tone="match")
    d.text(24, axis - 20, "cuts", anchor="start", tone="match")
    d.text(24, axis + 18, "codes, and their meaning", anchor="start")
    for code, words in enumerate(PIECES):
        x = left + (code + 0.5) * width
        d.text(x, axis + 14, str(code), "code")
        d.text(x, axis + 32, words, "small")
    for at, (name, (low, high)) in enumerate(INTERVALS.items()):
        y = axis + 56 + 32 * at
        test = FILTERS[name].split(" AND ", 1)[1]
        d.text(24, y + 12, test, "code", anchor="start")
        words = f"{low}" if low == high else f"{low} to {high}"
        d.box(left + low * width + 5, y, (high - low + 1) * width - 10, 24, words, tone="match",
              first="code")  # fmt: skip


def _draw_join(d: Drawing) -> None:
    top = 276.0
    d.text(24, top, "Batch join", "head", anchor="start")
    d.text(118, top, f"with one box, {FILTERS[BOX]}", "small", anchor="start")
    first = top + 76
    _draw_table(d, first, (50, 68, 118, 128), "1. events as received", tone="input", rows=[
        (at, origin, "absent" if delay is None else str(delay))
        for at, (origin, delay) in enumerate(EVENTS)
    ])  # fmt: skip
    _draw_table(d, first, (282, 66, 348, 76), "2. as codes", rows=[
        (None, str(ORIGINS[origin]), str(code_of_delay(delay))) for origin, delay in EVENTS
    ])  # fmt: skip
    _draw_table(d, first, (498, 66, 564, 76), "3. sorted by origin", rows=[
        (at, str(ORIGINS[EVENTS[at][0]]), str(code_of_delay(EVENTS[at][1]))) for at in order()
    ], marked=SLICE)  # fmt: skip
    d.arrow((252, first + 104), (276, first + 104))
    d.arrow((430, first + 104), (468, first + 104))

    d.text(674, top + 34, "4. compared at once", anchor="start")
    for place, at in enumerate(order()[SLICE]):
        y = first + HIGH * place
        holds = at in matches()
        d.cell(690, y, 40, HIGH, "1" if holds else "0", "told" if holds else "plain")
        if holds:
            d.text(744, y + HIGH / 2, f"event {at}", anchor="start", tone="told")
    d.arrow((644, first + 1.5 * HIGH), (686, first + 1.5 * HIGH), tone="match")
    d.lines(
        674,
        first + 108,
        [
            "Access test: origin = 'EWR'",
            "is code 1, so these events",
            "form one slice.",
            "Other test: codes 2 to 3,",
            "for 64 events at a time.",
        ],
    )
    said = "The batch is sorted once for each access term; then each box finds its slice."
    d.text(24, first + 8 * HIGH + 26, said, "small", anchor="start")


def _draw_table(
    d: Drawing,
    top: float,
    columns: tuple[float, float, float, float],
    title: str,
    rows: list[tuple[int | None, str, str]],
    tone: Tone = "plain",
    marked: slice = slice(0),
) -> None:
    """A table of origin and dep_delay; `columns` are the left edge and the width of each column."""
    left, wide, right, broad = columns
    d.text(left - 26 * (rows[0][0] is not None), top - 42, title, anchor="start")
    d.text(left + wide / 2, top - 14, "origin", "small")
    d.text(right + broad / 2, top - 14, "dep_delay", "small")
    for place, (number, origin, delay) in enumerate(rows):
        y = top + HIGH * place
        if number is not None:
            d.text(left - 14, y + HIGH / 2, str(number), "small")
        shown: Tone = "match" if place in range(len(rows))[marked] else tone
        d.cell(left, y, wide, HIGH, origin, shown)
        d.cell(right, y, broad, HIGH, delay, shown)
