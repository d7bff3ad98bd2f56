"""The rows and the interests of the chain, drawn at random, reproducible by seed.

Interests overlap: their bounds are multiples of a large step, so many are equal or cover each
other, across dialects too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import msgspec

from tidings.filters import Attributes

COLUMNS = {
    "id": "integer",
    "made": "integer",  # when the row was given to the source, in microseconds since 1970
    "price": "integer",
    "kind": "string",
    "place": "string",
    "subject": "string",
}
ATTRIBUTES = Attributes(COLUMNS)
KINDS = ("ale", "beer", "cider", "cola", "juice", "mead", "stout", "tea")
PLACES = ("Bari", "Bonn", "Cork", "Delft", "Gent", "Graz", "Lodz", "Metz", "Oslo", "Porto", "Rome")
FIRST_PUBLISHED = 1 << 30  # rows from this id on are published; the others come from the source
STEP = 200  # the bounds of interests are multiples of this
DIALECTS = ("sql", "cesql", "cloudevents", "eventbridge")

Row = dict[str, Any]


class WrittenInterest(msgspec.Struct, frozen=True):
    """A filter in the form in which an agent writes it. The number of the filter is the same in all
    processes."""

    number: int
    dialect: str
    text: str


def draw_row(chance: random.Random, id_: int) -> Row:
    """A row without the field `made`; one row in twelve has no `place`."""
    row: Row = {"id": id_, "price": chance.randrange(1000), "kind": chance.choice(KINDS)}
    place = chance.choice((*PLACES, None))
    if place is not None:
        row["place"] = place
    return row | {"subject": f"shop-{chance.randrange(40)}"}


def draw_interests(chance: random.Random, count: int) -> list[WrittenInterest]:
    """Interests of all dialects in turn. The first interest matches every row, so that each row of
    a run is in the outbox."""
    others = range(1, count)
    drawn = [draw_interest(chance, at, DIALECTS[at % len(DIALECTS)]) for at in others]
    return [WrittenInterest(0, "sql", "id >= 0"), *drawn]


def draw_interest(chance: random.Random, number: int, dialect: str) -> WrittenInterest:
    price, kind = chance.randrange(STEP, 1000, STEP), chance.choice(KINDS)
    other, place, shop = chance.choice(KINDS), chance.choice(PLACES), chance.randrange(1, 4)
    return WrittenInterest(
        number, dialect, _DRAWN[dialect](chance, price, kind, other, place, shop)
    )


def _sql(chance: random.Random, price: int, kind: str, other: str, place: str, shop: int) -> str:
    return chance.choice(
        (
            f"price > {price} AND kind = '{kind}'",
            f"kind = '{kind}' AND price BETWEEN {price} AND {price + STEP}",
            f"place IN ('{place}', 'Rome') AND NOT (price < {price})",
            f"place LIKE '{place[0]}%' AND kind != '{other}' AND price < {price}",
            f"kind = '{kind}' AND length(place) > 4",
            f"place IS NULL AND price > {price}",
        )
    )


def _cesql(chance: random.Random, price: int, kind: str, other: str, place: str, shop: int) -> str:
    return chance.choice(
        (
            f"price > {price} AND kind = '{kind}'",
            f"kind IN ('{kind}', '{other}') AND subject LIKE 'shop-{shop}%'",
            f"EXISTS place AND place LIKE '{place[0]}%' AND price < {price}",
            f"LENGTH(subject) = 6 AND kind = '{kind}'",
        )
    )


def _cloudevents(
    chance: random.Random, price: int, kind: str, other: str, place: str, shop: int
) -> str:
    exact, prefix = {"exact": {"kind": kind}}, {"prefix": {"subject": f"shop-{shop}"}}
    return json.dumps(
        chance.choice(
            (
                {"all": [exact, prefix]},
                {"all": [exact, {"not": {"exact": {"place": place}}}]},
                {"all": [{"suffix": {"place": place[-2:]}}, {"exact": {"kind": other}}]},
                {"sql": f"kind = '{kind}' AND price > {price}"},
            )
        )
    )


def _eventbridge(
    chance: random.Random, price: int, kind: str, other: str, place: str, shop: int
) -> str:
    return json.dumps(
        chance.choice(
            (
                {"kind": [kind], "price": [{"numeric": [">", price]}]},
                {"kind": [kind, other], "subject": [{"prefix": f"shop-{shop}"}]},
                {"kind": [kind], "place": [{"exists": False}]},
                {"place": [place], "kind": [{"anything-but": [other]}]},
                {"kind": [other], "price": [{"numeric": [">=", price, "<", price + STEP]}]},
            )
        )
    )


_DRAWN: dict[str, Callable[..., str]] = {
    "sql": _sql,
    "cesql": _cesql,
    "cloudevents": _cloudevents,
    "eventbridge": _eventbridge,
}
