"""RSS and Atom documents: fetching one, and the entries in it.

Fetching is polite: it asks only for what changed (ETag, Last-Modified), and takes no document
beyond a size. Whatever goes wrong is a `FeedProblem` whose sentence stays the same while the
problem does, so that it can be reported once.

Neither is bounded in time against a server that means harm: it can send a letter now and then, and
feedparser takes quadratic time over some texts. feed_looks.py does both under a deadline.

An entry is known by its *key*: a digest of its id, else of its link, else of all it says.
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
"""Seconds that one feed may take, from the first byte asked for to the last entry read."""

LARGEST = 4 * 1024 * 1024
"""Bytes of the largest document that is taken; feedparser needs a second for each million."""

_CLOSED = (b"</rss>", b"</feed>", b"</rdf>", b"</rdf:rdf>")


class FeedProblem(EnvironmentProblem):
    """A feed that cannot be reached or read; the others are not affected."""


class Validators(msgspec.Struct, frozen=True):
    """What a server gave to recognise the version of a document that we have."""

    etag: str = ""
    modified: str = ""


class Document(NamedTuple):
    """A version of a feed, as it was fetched."""

    body: bytes
    content_type: str
    validators: Validators


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One entry of a feed. Times are seconds since 1970, UTC; what a feed leaves out is None."""

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
        """What tells this entry from the others of its feed."""
        if self.id is not None:
            what = f"id {self.id}".encode()
        elif self.link is not None:
            what = f"link {self.link}".encode()
        else:
            what = b"all " + msgspec.json.encode(self)
        return hashlib.blake2b(what, digest_size=16).hexdigest()


def split_addresses(text: str) -> list[str]:
    """The feeds named in the option `urls`: each once, in order."""
    return list(dict.fromkeys(text.split()))


def fetch(
    address: str,
    known: Validators | None = None,
    *,
    timeout: float = TIMEOUT,
    largest: int = LARGEST,
) -> Document | None:
    """Return the document at `address`, or None when it is the version that is known."""
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
        raise FeedProblem(f"The feed {address} is larger than {largest} bytes.") from error
    except Exception as error:
        raise _problem(address, error, timeout) from error


def timeout_problem(address: str, timeout: float) -> FeedProblem:
    """The problem of a feed that is not done in time, wherever it was stopped."""
    return FeedProblem(f"The feed {address} took longer than {timeout:g} seconds.")


def _problem(address: str, error: Exception, timeout: float) -> FeedProblem:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    if isinstance(reason, TimeoutError):
        return timeout_problem(address, timeout)
    if isinstance(error, http.client.HTTPException) and not isinstance(
        error, http.client.InvalidURL
    ):
        return FeedProblem(f"The feed {address} was sent in a way that is not HTTP.")
    if isinstance(reason, OSError) and reason.strerror:
        reason = reason.strerror
    return FeedProblem(f"The feed {address} cannot be fetched: {reason}.")


def parse(address: str, document: Document) -> list[Entry]:
    """The entries of a document, in its order, each key once.

    Many feeds in use are not well-formed, and their entries are taken all the same. But not when
    the end of the document is missing: the last entry may be half of itself then.
    """
    feedparser = load_feedparser()
    headers = {"content-type": document.content_type} if document.content_type else {}
    # A base for relative links; feedparser does not fetch it.
    headers["content-location"] = address
    try:
        # A file object, for feedparser takes bytes for the name of a file where there is one: a
        # server could have files of this machine read, or a device that never ends.
        found = feedparser.parse(io.BytesIO(document.body), response_headers=headers)
        entries = [_entry(address, each) for each in found.entries]
    except Exception as error:  # its loose parser has no list of what it raises
        raise FeedProblem(f"The feed {address} cannot be parsed.") from error
    broken = isinstance(found.get("bozo_exception"), xml.sax.SAXException)
    ending = document.body[-1024:].lower()
    if not found.get("version") or (broken and not any(tag in ending for tag in _CLOSED)):
        raise FeedProblem(f"The feed {address} is not a complete RSS or Atom document.")
    once: dict[str, Entry] = {}
    for entry in entries:
        once.setdefault(entry.key(), entry)
    return list(once.values())


def load_feedparser() -> Any:
    """The package feedparser; it is an extra."""
    try:
        import feedparser
    except ImportError as error:
        raise EnvironmentProblem(
            "feedparser is not installed: install tidings with its extra, `tidings[feeds]`."
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
        raise FeedProblem(f"The feed {address} was refused with status {answer.status}.")
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
    # `in` and not `get`: feedparser answers a missing `updated` with `published`, and warns.
    def text(name: str) -> str | None:
        return _clean(found[name]) if name in found else None

    def seconds(name: str) -> int | None:
        if name not in found or found[name] is None:
            return None
        # Spark's timestamps end with the year 9999, and Python's begin with 1.
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
    """Text that can be written as UTF-8 whatever it holds; None when there is none."""
    return str(value).encode("utf-8", "replace").decode() if value else None


def _texts(values: Iterable[object]) -> list[str]:
    return [text for text in map(_clean, values) if text is not None]
