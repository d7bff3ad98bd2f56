"""Fetches RSS and Atom documents, and parses their entries.

Requests are conditional (ETag, Last-Modified), and documents that are too large are refused. Any
failure is a `FeedProblem` whose message stays the same while the problem lasts, so that the problem
can be reported once.

A hostile server can make both steps take arbitrarily long: it can send one byte at a time, and
feedparser takes quadratic time for some documents. fetch_pool.py runs both steps under a deadline.

An entry is identified by its *key*: a digest of its id, or else of its link, or else of all its
fields.
"""

from __future__ import annotations

import calendar
import hashlib
import http.client
import io
import urllib.parse
import urllib.request
import xml.sax
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tidings.model import EnvironmentProblem
from tidings.spark.feeds.feed_http import TooLargeError, get

TIMEOUT = 20.0
"""Seconds that one feed may take, from the request to the last parsed entry."""

LARGEST = 4 * 1024 * 1024
"""The largest accepted size of a document; feedparser takes a second per million bytes."""

_CLOSED = (b"</rss>", b"</feed>", b"</rdf>", b"</rdf:rdf>")


class FeedProblem(EnvironmentProblem):
    """A feed can't be reached or read; other feeds are not affected."""


class Validators(msgspec.Struct, frozen=True):
    """The server's identifiers of the document version that was fetched last."""

    etag: str = ""
    modified: str = ""


class Document(NamedTuple):
    """A version of a feed, as fetched."""

    body: bytes
    content_type: str
    validators: Validators


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One entry of a feed. Times are seconds since 1970, UTC; missing fields are None."""

    feed: str
    id: str | None
    link: str | None
    title: str | None
    summary: str | None
    author: str | None
    categories: list[str]
    published: int | None
    updated: int | None

    def key(self) -> str:
        """A digest that identifies this entry within its feed."""
        if self.id is not None:
            what = f"id {self.id}".encode()
        elif self.link is not None:
            what = f"link {self.link}".encode()
        else:
            what = b"all " + msgspec.json.encode(self)
        return hashlib.blake2b(what, digest_size=16).hexdigest()


def split_addresses(text: str) -> list[str]:
    """The feeds in the option `urls`, in order and without duplicates."""
    return list(dict.fromkeys(text.split()))


def fetch(
    address: str,
    known: Validators | None = None,
    *,
    timeout: float = TIMEOUT,
    largest: int = LARGEST,
) -> Document | None:
    """Return the document at `address`, or None if the server still has the known version."""
    known = known or Validators()
    try:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme in {"http", "https"}:
            return _fetch_http(address, known, timeout, largest)
        if parts.scheme == "file":
            return _fetch_file(Path(urllib.request.url2pathname(parts.path)), known, largest)
        return _fetch_file(Path(address), known, largest)
    except FeedProblem:
        raise
    except TooLargeError as error:
        raise FeedProblem(f"the feed {address} is larger than {largest} bytes") from error
    except Exception as error:
        raise _problem(address, error, timeout) from error


def timeout_problem(address: str, timeout: float) -> FeedProblem:
    """The problem of a feed that exceeded its time limit, whether it was being fetched or
    parsed."""
    return FeedProblem(f"the feed {address} took longer than {timeout:g} seconds")


def _problem(address: str, error: Exception, timeout: float) -> FeedProblem:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    if isinstance(reason, TimeoutError):
        return timeout_problem(address, timeout)
    if isinstance(error, http.client.HTTPException) and not isinstance(
        error, http.client.InvalidURL
    ):
        return FeedProblem(f"the response of the feed {address} is not HTTP")
    if isinstance(reason, OSError) and reason.strerror:
        reason = reason.strerror
    return FeedProblem(f"the feed {address} can't be fetched: {reason}")


def parse(address: str, document: Document) -> list[Entry]:
    """The entries of a document, in order, with one entry per key.

    Many real feeds are not well-formed, but their entries are accepted. A document whose end is
    missing is refused, because its last entry may be cut off.
    """
    feedparser = load_feedparser()
    headers = {"content-type": document.content_type} if document.content_type else {}
    # The base for relative links; feedparser does not fetch it.
    headers["content-location"] = address
    try:
        # feedparser gets a file object, not bytes: if bytes name an existing file, feedparser opens
        # that file, so a server could make it read files on this machine, or an endless device.
        found = feedparser.parse(io.BytesIO(document.body), response_headers=headers)
        entries = [_entry(address, each) for each in found.entries]
    except Exception as error:  # feedparser does not document which exceptions it raises
        raise FeedProblem(f"the feed {address} can't be parsed") from error
    broken = isinstance(found.get("bozo_exception"), xml.sax.SAXException)
    ending = document.body[-1024:].lower()
    if not found.get("version") or (broken and not any(tag in ending for tag in _CLOSED)):
        raise FeedProblem(f"the feed {address} is not a complete RSS or Atom document")
    once: dict[str, Entry] = {}
    for entry in entries:
        once.setdefault(entry.key(), entry)
    return list(once.values())


def load_feedparser() -> Any:
    """Import the package feedparser, which is an extra."""
    try:
        import feedparser
    except ImportError as error:
        raise EnvironmentProblem(
            "feedparser is not installed; install tidings with the extra `tidings[feeds]`"
        ) from error
    return feedparser


def _fetch_http(address: str, known: Validators, timeout: float, largest: int) -> Document | None:
    headers = {"User-Agent": "tidings"}
    if known.etag:
        headers["If-None-Match"] = known.etag
    if known.modified:
        headers["If-Modified-Since"] = known.modified
    answer = get(address, headers, timeout=timeout, largest=largest)
    if answer.status == http.HTTPStatus.NOT_MODIFIED:
        return None
    if not 200 <= answer.status < 300:
        raise FeedProblem(f"the server of the feed {address} answered with status {answer.status}")
    return Document(
        answer.body,
        answer.headers.get("Content-Type", ""),
        Validators(answer.headers.get("ETag", ""), answer.headers.get("Last-Modified", "")),
    )


def _fetch_file(path: Path, known: Validators, largest: int) -> Document | None:
    with path.open("rb") as file:
        version = Validators(modified=str(path.stat().st_mtime_ns))
        if version == known:
            return None
        body = file.read(largest + 1)
    if len(body) > largest:
        raise TooLargeError
    return Document(body, "", version)


def _entry(address: str, found: Any) -> Entry:
    # `in` is used because `get` returns `published` for a missing `updated`, with a warning.
    def text(name: str) -> str | None:
        return _clean(found[name]) if name in found else None

    def seconds(name: str) -> int | None:
        if name not in found or found[name] is None:
            return None
        # Spark's timestamps end with the year 9999, and Python's begin with the year 1.
        return calendar.timegm(found[name]) if 1 <= found[name][0] <= 9999 else None

    return Entry(
        feed=_clean(address) or "",
        id=text("id"),
        link=text("link"),
        title=text("title"),
        summary=text("summary"),
        author=text("author"),
        categories=_texts(tag.get("term") for tag in found.get("tags", ())),
        published=seconds("published_parsed"),
        updated=seconds("updated_parsed"),
    )


def _clean(value: object) -> str | None:
    """The value as text that can be encoded as UTF-8; None if it is empty."""
    return str(value).encode("utf-8", "replace").decode() if value else None


def _texts(values: Iterable[object]) -> list[str]:
    return [text for text in map(_clean, values) if text is not None]
