"""`tidings publish` with files in XML, MessagePack and Arrow: subscribers get what was in them."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from tests.broker.processes import Process
from tests.cli.conftest import Run

from tidings.network import BlockingSubscription, connect_blocking
from tidings.routing.clients import Delivery

pytestmark = pytest.mark.usefixtures("forked")
ROOT = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
[columns]
price = "double"
at = "timestamp"
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    one = Process(tmp_path_factory.mktemp("root"), "root", ROOT)
    yield f"tidings://127.0.0.1:{one.port}"
    assert one.stop() == 0


@pytest.fixture
def told(there: str) -> Iterator[BlockingSubscription]:
    with connect_blocking(there) as agent, agent.subscribe("price > 90") as one:
        yield one


def next_ones(told: BlockingSubscription, count: int) -> list[Delivery]:
    found: list[Delivery] = []
    while len(found) < count:
        one = told.next(30)
        assert one is not None, found
        if isinstance(one, Delivery):
            found.append(one)
    return found


def table() -> pa.Table:
    times = [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3)]
    return pa.table({"price": [95.0, 10.0, 96.5], "at": times, "who": ["ana", "bo", None]})


def stream_of(rows: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=1)
    return out.getvalue()


def test_xml_is_sent_as_it_is(
    run: Run, there: str, told: BlockingSubscription, tmp_path: Path
) -> None:
    """So a value without a type takes the type that the channel declares."""
    first, second = (
        "<quote>\n  <price>95</price>\n</quote>",
        "<q><price>96</price><n>\u00e9</n></q>",
    )
    file = tmp_path / "quotes.xml"
    file.write_text(f"\ufeff{first}\n<q><price>1</price></q>\n{second}\n")
    assert run("publish", "--events", str(file), "--router", there).out == "published 3\n"
    found = next_ones(told, 2)
    assert [one.payload.decode() for one in found] == [first, second]
    assert found[1].attributes == {"price": "96", "n": "\u00e9"}
    piped = run("publish", "--events", "-", "--format", "xml", "--router", there, stdin=second)
    assert piped.out == "published 1\n"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("<!DOCTYPE n [<!ENTITY a 'b'>]>\n<n><x>&a;</x></n>",
         "quotes.xml: XML, line 2: found a document type declaration, expected elements only; "
         "entities that it declares are not supported"),
        ("<n><x>&eacute;</x></n>",
         "quotes.xml, the notification at line 2: XML, line 1: found an entity that XML itself "
         "does not define, expected &amp;"),
        ("<n>", "quotes.xml: this is not valid XML: no element found: line 3"),
        ("<n><x lang='de'/></n>",
         "quotes.xml, the notification at line 2: XML, line 1: element x: found the attribute"),
    ],
    ids=["own", "unknown", "cut", "wrong"],
)  # fmt: skip
def test_xml_that_is_refused(run: Run, there: str, tmp_path: Path, bad: str, reason: str) -> None:
    """What comes before it is published."""
    (tmp_path / "quotes.xml").write_text(f"<n><price>1</price></n>\n{bad}\n")
    done = run("publish", "--events", str(tmp_path / "quotes.xml"), "--router", there)
    assert done.code == 2
    assert done.err.startswith("error: after publishing 1: ")
    assert reason in done.err
    assert "Traceback" not in done.err


def test_maps_in_messagepack(
    run: Run, there: str, told: BlockingSubscription, tmp_path: Path
) -> None:
    rows = [{"price": 95.5, "at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}, {"price": 1}]
    file = tmp_path / "quotes.msgpack"
    file.write_bytes(b"".join(map(msgspec.msgpack.encode, [*rows, {"price": 97}])))
    assert run("publish", "--events", str(file), "--router", there).out == "published 3\n"
    one, two = next_ones(told, 2)
    assert one.attributes == rows[0]
    assert one.payload == b'{"price":95.5,"at":"2026-01-01T00:00:00Z"}'
    assert two.attributes == {"price": 97}
    for rest, reason in (
        (b"\x81\xa1", "event 3: the MessagePack value that begins at byte"),
        (b"\x01", "event 3: found a value of another type, expected a map in MessagePack"),
        (b"\x81\xa1a\xc4\x01x", "event 3: attribute a: found bytes, expected a JSON value"),
    ):
        broken = tmp_path / "broken.msgpack"
        broken.write_bytes(file.read_bytes() + rest)
        done = run("publish", "--events", str(broken), "--router", there)
        assert (done.code, f"after publishing 3: {broken}, {reason}" in done.err) == (2, True)
        next_ones(told, 2)


def test_arrow(run: Run, there: str, told: BlockingSubscription, tmp_path: Path) -> None:
    """Streams, by name and from stdin, and files; and a folder with both."""
    (tmp_path / "1.arrows").write_bytes(stream_of(table()))
    with pa.ipc.new_file(tmp_path / "2.arrow", table().schema) as writer:
        writer.write_table(table())
    assert run("publish", "--events", str(tmp_path), "--router", there).out == "published 6\n"
    piped = run("publish", "--events", "-", "--format", "arrow", "--router", there,
                stdin=stream_of(table()))  # fmt: skip
    assert piped.out == "published 3\n"
    for one, two in [next_ones(told, 2) for _ in range(3)]:
        assert one.attributes == table().to_pylist()[0]
        assert two.attributes == {"price": 96.5, "at": table()["at"][2].as_py()}
    (tmp_path / "3.arrow").write_bytes(b"no arrow")
    done = run("publish", "--events", str(tmp_path / "3.arrow"), "--router", there)
    assert (done.code, "3.arrow: this can't be read as Arrow: " in done.err) == (2, True)


def test_other_commands_do_not_know_these_formats(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "quotes.xml"
    file.write_text("<n><price>1</price></n>")
    done = run("match", "--filters", "-", "--events", str(file), stdin="price > 0")
    assert done.code == 2
    assert "found the extension '.xml', expected one of .json, .jsonl, .ndjson, .csv" in done.err
    known = "expected one of json, csv, parquet, xml, msgpack, arrow"
    assert known in run("publish", "--events", str(file), "--format", "yaml").err
