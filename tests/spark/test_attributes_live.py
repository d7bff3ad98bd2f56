"""Rows of files reach an agent with their attributes, subject and time. All processes are real:
`tidings pipeline run`, a rendezvous point, a router, and a program that prints what it is given."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.broker.kills.tree import Process
from tests.spark.chain import Chain
from tests.spark.conftest import MakeChain
from tests.waiting import eventually

from tidings.studies.host.ports import is_listening

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

COLUMNS = {
    "id": "integer",
    "subject": "string",
    "at": "timestamp",
    "day": "date",
    "price": "decimal(38, 18)",
    "tags": "list<string>",
    "user": "struct<city: string, born: date>",
    "lines": "list<struct<sku: string, price: decimal(10, 2)>>",
    "rates": "map<string, double>",
}
ODD = {"`geo.zone`": "string", "zip code": "integer", "größe": "double"}
USER = pa.struct([("city", pa.string()), ("born", pa.date32())])
PROGRAM = """
import sys
from tidings import Delivery, connect_blocking

with connect_blocking(sys.argv[1]) as agent, agent.subscribe(*sys.argv[2:3]) as told:
    print("ready")
    for one in told:
        if isinstance(one, Delivery):
            told = one.attributes
            print(repr((told, one.subject, one.time, one.matched, one.payload.decode())))
        else:
            print(repr(str(one)))
"""


class Printer:
    """A program with an agent, which prints what it is given."""

    def __init__(self, chain: Chain, command: Sequence[str]) -> None:
        self.process = Process(chain.folder, f"program{len(chain.programs)}", command)
        chain.programs.append(self)

    def lines(self) -> list[str]:
        assert self.process.alive(), self.process.errors()
        return self.process.errors().splitlines()

    def close(self) -> None:
        self.process.kill()

    def told(self, count: int) -> list[tuple[Any, ...]]:
        """What was printed, by the attribute `id`, once there is so much of it."""
        eventually(lambda: len(self.lines()) > count)
        known = {"datetime": dt, "Decimal": Decimal, "nan": math.nan}
        found = [eval(line, known) for line in self.lines()[1:]]
        assert not [one for one in found if isinstance(one, str)], found
        return sorted(found, key=lambda one: one[0]["id"])


def router_of(chain: Chain) -> str:
    """The address of a router, once it listens."""
    router = chain.tree.addresses["e0"]
    eventually(lambda: is_listening(int(router.rpartition(":")[2])))
    return router


def run_program(chain: Chain, filter_: str) -> Printer:
    program = chain.folder / "program.py"
    program.write_text(PROGRAM)
    made = Printer(chain, [str(program), router_of(chain), filter_])
    eventually(lambda: "ready" in made.lines())
    return made


def put_file(chain: Chain, name: str, data: bytes) -> None:
    beside = chain.folder / f".{name}"
    beside.write_bytes(data)
    beside.rename(chain.folder / "in" / name)


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc, arg-type]


def quoted(columns: dict[str, str]) -> dict[str, str]:
    return {json.dumps(name, ensure_ascii=False): kind for name, kind in columns.items()}


def test_lines_of_json(chain: MakeChain) -> None:
    """What a program is given, and what `tidings subscribe` prints."""
    one = chain(columns=quoted(COLUMNS | ODD), outbox='time = "at"')
    one.start()
    printer = run_program(one, "id > 0")
    command = ["-m", "tidings", "subscribe", "id = 4", "--json", "--router"]
    shown = Printer(one, [*command, router_of(one)])
    eventually(lambda: "id = 4" in one.nodes())
    lines = [
        {
            "id": 1, "subject": "flights.EWR", "at": "2013-01-01T05:00:00.5+01:00",
            "day": "2013-01-01", "price": "PRICE", "tags": ["a", None], "user": {"city": "Bonn"},
            "lines": [{"sku": "x", "price": 1.1}, None], "rates": {"EUR": 0.5},
            "geo.zone": "EU", "zip code": 53111, "größe": 1e300,
        },
        {"id": 2, "at": None, "user": None, "tags": [], "unknown": {"a": [1, "2013-01-01"]}},
        {"id": 3, "user": {"born": "1969-07-20", "age": 5}, "at": "1969-07-20T20:17:40Z"},
        {"id": 4, "price": 1.5, "at": "2013-01-01T00:00:00Z"},
        {"id": 0, "subject": "nobody wants it"},
    ]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    digits = "1234567890.123456789012345678"
    put_file(one, "a.json", text.replace('"PRICE"', digits).encode())
    one.run_pipeline()
    eventually(lambda: one.is_alive() and one.handed_rows() >= 5, 300)
    first, second, third, _ = printer.told(4)
    expected = {
        "id": 1, "subject": "flights.EWR", "at": utc(2013, 1, 1, 4, 0, 0, 500_000),
        "day": utc(2013, 1, 1), "price": Decimal(digits), "tags": ["a", None],
        "user": {"city": "Bonn"}, "lines": [{"sku": "x", "price": Decimal("1.10")}, None],
        "rates": {"EUR": 0.5}, "geo.zone": "EU", "zip code": 53111, "größe": 1e300,
    }  # fmt: skip
    assert first[:4] == (expected, "flights.EWR", 1357012800.5, ("id > 0",))
    assert json.loads(first[4])["day"] == "2013-01-01"
    begun = one.outbox.read_commit(0)
    assert begun is not None
    more = {"a": [1, "2013-01-01"]}
    assert second[:3] == ({"id": 2, "tags": [], "unknown": more}, "", begun.micros / 1e6)
    moon = utc(1969, 7, 20, 20, 17, 40)
    user = {"born": utc(1969, 7, 20), "age": 5}
    assert third[:3] == ({"id": 3, "user": user, "at": moon}, "", moon.timestamp())
    eventually(lambda: '"serial"' in str(shown.lines()))
    (line,) = [json.loads(line) for line in shown.lines() if line[:1] == "{"]
    row = {"id": 4, "price": 1.5, "at": "2013-01-01T00:00:00Z"}
    assert (line["attributes"], line["matched"]) == (row, ["id = 4"])
    assert line["time"] is not None


def test_parquet(chain: MakeChain) -> None:
    one = chain(columns=quoted(COLUMNS | ODD), format="parquet")
    one.start()
    printer = run_program(one, "id > 0")
    table = pa.table(
        {
            "id": [1, 2],
            "subject": ["s", None],
            "at": pa.array([utc(2013, 1, 1), None], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal("1.5"), Decimal("0.1")], pa.decimal128(38, 18)),
            "user": pa.array([{"born": dt.date(2000, 2, 29)}, None], USER),
            "größe": [float("nan"), 1.5],
            "nobody": ["declared it", "declared it"],
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    put_file(one, "a.parquet", sink.getvalue().to_pybytes())
    one.run_pipeline()
    eventually(lambda: one.is_alive() and one.handed_rows() >= 2, 300)
    first, second = printer.told(2)
    assert math.isnan(first[0].pop("größe"))
    assert first[:2] == (
        {"id": 1, "subject": "s", "at": utc(2013, 1, 1), "price": 1.5,
         "user": {"born": utc(2000, 2, 29)}},
        "s",
    )  # fmt: skip
    price = Decimal("0.100000000000000000")
    assert second[:2] == ({"id": 2, "größe": 1.5, "price": price}, "")
