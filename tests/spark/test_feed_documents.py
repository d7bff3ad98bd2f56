"""Fetching and parsing feeds, without Spark."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.feed_server import FeedServer, atom, rss, serve

from tidings.model import EnvironmentProblem
from tidings.spark.feeds.feed_documents import (
    Document,
    Entry,
    FeedProblem,
    Validators,
    fetch,
    load_feedparser,
    parse,
    split_addresses,
)

NEW_YEAR = int(dt.datetime(2013, 1, 1, 8, tzinfo=dt.UTC).timestamp())


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with serve() as server:
        yield server


def entries(text: str | bytes) -> list[Entry]:
    body = text.encode() if isinstance(text, str) else text
    return parse("http://example.org/feed", Document(body, "", Validators()))


def test_rss() -> None:
    assert entries(rss("a")) == [
        Entry(
            "http://example.org/feed",
            "a",
            "http://example.org/0",
            "a",
            None,
            None,
            ["news"],
            NEW_YEAR,
            None,
        )
    ]


def test_atom() -> None:
    (found,) = entries(atom("a"))

    assert (found.id, found.title, found.summary, found.author) == ("urn:a", "a", "about a", "Ada")
    assert (found.published, found.updated) == (NEW_YEAR, NEW_YEAR + 86_400)


def test_unicode() -> None:
    assert [each.title for each in entries(rss("Grüße 東京 🜁"))] == ["Grüße 東京 🜁"]
    latin = "<?xml version='1.0' encoding='iso-8859-1'?>" + rss("Grüße").decode()
    assert [each.title for each in entries(latin.encode("latin-1"))] == ["Grüße"]


def test_what_the_parser_stumbles_over_is_a_problem() -> None:
    text = "<rss version='2.0'><channel><item><title>a &#xD800; b</title></item></channel></rss>"

    with pytest.raises(FeedProblem, match="can't be parsed"):
        entries(text)


def test_entries_without_id_are_known_by_link_and_else_by_content() -> None:
    text = (
        "<rss version='2.0'><channel>"
        "<item><link>http://example.org/1</link><title>{}</title></item>"
        "<item><title>only {}</title></item></channel></rss>"
    )
    first, second = entries(text.format("a", "a")), entries(text.format("b", "b"))

    assert first[0].key() == second[0].key()
    assert first[1].key() != second[1].key()
    assert first[1].published is None


def test_an_entry_that_is_shown_twice_is_one() -> None:
    assert [each.title for each in entries(rss("a", "b", "a"))] == ["a", "b"]


def test_ill_formed_documents_are_taken_when_they_are_whole() -> None:
    ill_formed = rss("a", "b").replace(b"<title>a<", b"<title>a & co<")

    assert [each.title for each in entries(ill_formed)] == ["a & co", "b"]


@pytest.mark.parametrize("body", [b"", b"<html><p>hello", b"\x00\xff", rss("a", "b")[:-60]])
def test_what_is_not_a_whole_feed_is_a_problem(body: bytes) -> None:
    with pytest.raises(FeedProblem, match="is not a complete RSS or Atom document"):
        entries(body)


def test_a_body_that_names_a_file_is_not_opened(tmp_path: Path) -> None:
    private = tmp_path / "private.xml"
    private.write_bytes(rss("a secret"))

    with pytest.raises(FeedProblem, match="is not a complete RSS or Atom document"):
        entries(str(private))


def test_only_what_changed_is_fetched(server: FeedServer) -> None:
    server.pages["/a"] = rss("a")
    document = fetch(server.url("/a"))
    assert document is not None
    assert fetch(server.url("/a"), document.validators) is None

    server.pages["/a"] = rss("b")
    assert fetch(server.url("/a"), document.validators) is not None
    assert [status for _, status, _ in server.log] == [200, 304, 200]
    assert {agent for *_, agent in server.log} == {"tidings"}


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "feed of mine.xml"
    path.write_bytes(rss("a"))
    document = fetch(str(path))

    assert document == fetch(path.as_uri())
    assert document is not None
    assert fetch(str(path), document.validators) is None


def test_problems_are_sentences(server: FeedServer, tmp_path: Path) -> None:
    server.pages["/a"] = rss("a")
    with pytest.raises(FeedProblem, match="is larger than 10 bytes"):
        fetch(server.url("/a"), largest=10)
    with pytest.raises(FeedProblem, match="answered with status 404"):
        fetch(server.url("/none"))
    with pytest.raises(FeedProblem, match=r"can't be fetched: No such file or directory$"):
        fetch(str(tmp_path / "none"))
    with pytest.raises(FeedProblem, match="can't be fetched"):
        fetch("http://127.0.0.1:1/")
    with pytest.raises(FeedProblem, match="can't be fetched"):
        fetch("http://127.0.0.1:x/")


def test_addresses() -> None:
    assert split_addresses(" a\nb  a\n") == ["a", "b"]


def test_without_feedparser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "feedparser", None)

    with pytest.raises(EnvironmentProblem, match=r"tidings\[feeds\]"):
        load_feedparser()
