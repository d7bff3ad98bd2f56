"""Subscriptions from files: ids, subscribers and places; what is refused is in test_errors.py."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from tests.cli.conftest import Write

from tidings.cli.common.subscription_files import FileSubscription, read_subscriptions


def test_text_lines_have_their_number_as_id(write: Write) -> None:
    path = write("f.txt", "\ufeff# late\n\n  a = 1  \r\nb = 2 # not a comment here")
    assert list(read_subscriptions(path)) == [
        FileSubscription(3, "  a = 1", None, path, "line 3"),
        FileSubscription(4, "b = 2 # not a comment here", None, path, "line 4"),
    ]


def test_json_ids_keep_their_type(write: Write) -> None:
    path = write("f.jsonl", '{"id": 1, "filter": "a = 1", "more": 5}\n\n'
                 '{"id": "x", "filter": "a = 2", "subscriber": "ana"}\n')  # fmt: skip
    assert list(read_subscriptions(path)) == [
        FileSubscription(1, "a = 1", None, path, "line 1"),
        FileSubscription("x", "a = 2", "ana", path, "line 3"),
    ]


def test_csv_ids_are_text_and_lines_are_those_of_the_file(write: Write) -> None:
    path = write("f.csv", 'subscriber,id,filter\n,007,"a = 1\nAND b = 2"\n\nana,8,c = 3\n')
    assert list(read_subscriptions(path)) == [
        FileSubscription("007", "a = 1\nAND b = 2", None, path, "line 2"),
        FileSubscription("8", "c = 3", "ana", path, "line 5"),
    ]


def test_a_csv_field_may_be_long(write: Write) -> None:
    text = f"a IN ({', '.join(map(str, range(40_000)))})"
    [one] = read_subscriptions(write("f.csv", f'id,filter\n1,"{text}"\n'))
    assert one.text == text


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    parquet.write_table(pa.table({"id": [7], "filter": ["a = 1"], "subscriber": [5]}), path)
    assert list(read_subscriptions(str(path))) == [
        FileSubscription(7, "a = 1", "5", str(path), "row 1")
    ]


def test_the_spot_names_the_id_unless_it_is_the_line() -> None:
    assert FileSubscription(3, "", place="line 3").spot == "line 3"
    assert FileSubscription("x", "", place="line 3").spot == "line 3, id x"
