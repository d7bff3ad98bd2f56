"""The part of an agent's channel that publishes."""

from __future__ import annotations

import asyncio
import time
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

import msgspec

from tidings.network.agents.arrow_rows import ArrowRows, Pairs, check_pair, pairs_of
from tidings.network.agents.encoding import encode_attributes
from tidings.network.agents.refusals import Broken, Outdated, Refusal, TimedOut
from tidings.network.agents.tags.following import Following
from tidings.network.agents.tags.header import Header
from tidings.network.agents.tags.preprocessors import Preprocessors
from tidings.network.agents.tags.untagged import Untagged
from tidings.routing.clients import Publisher
from tidings.routing.forwarding import Name, Sent
from tidings.routing.protocol import About, Break, Piece, Times, frames, messages as m

LOCAL, PUBLISHER = "<agent>", "<publisher>"
CLOSED = "the agent is closed"
WINDOW = 4000  # how many publications may be sent but not acknowledged
PIECE = 1000  # how many notifications `publish_many` sends together
AHEAD = 3  # how many pieces preprocessors tag at the same time
MOST_PIECES = 8  # how many pieces of `publish_many` may be unacknowledged
Tagging = Literal["root", "local", "preprocessor"]
"""Who tags the notifications of an agent."""
_Pairs = list[tuple[bytes, bytes]]  # pairs of encoded attributes and a payload
PIECE_BYTES = 4 << 20  # the bytes of each piece of a payload that does not fit into a frame
LARGEST = frames.LARGEST - (1 << 16)
"""The most bytes that the attributes and the payload of a notification may have; the rest of a
frame is for headers. A larger payload is sent in pieces."""
LARGEST_WHOLE = 1 << 30
"""The largest size of a payload in bytes."""


async def _all_of(waiting: Sequence[asyncio.Future[int]]) -> int:
    """Wait for all answers; return the last stamp, or raise the first problem."""
    found = await asyncio.gather(*waiting, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    last = found[-1]
    assert isinstance(last, int)
    return last


def check_payload(payload: object) -> None:
    """Raise TypeError if a payload is not bytes."""
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise TypeError(f"found a payload of type {type(payload).__name__}, expected bytes")


def _check_size(content: bytes, payload: bytes) -> None:
    check_payload(payload)
    size = len(content) + len(payload)
    if size > LARGEST:
        raise Refusal(f"found a notification of {size:,} bytes, expected at most {LARGEST:,}")


def fit_tag(content: bytes, payload: bytes, tag: bytes) -> bytes:
    """The tag, or none if the notification does not fit into a frame with it: then the rendezvous
    point tags the notification by its attributes."""
    fits = len(content) + len(payload) + len(tag) <= LARGEST
    return tag if fits or not content else b""


class _Piece(msgspec.Struct):
    """Some notifications of `publish_many` that were sent together: their first and last stamp, and
    why some of them were refused. `done` completes when all of them are answered."""

    first: int
    last: int
    done: asyncio.Future[None]
    refused: dict[int, str] = {}


class _Chunks:
    """The notifications of `publish_many`, in pieces of PIECE notifications."""

    def __init__(self, given: Iterator[Any]) -> None:
        self._given = given
        self.is_over = False
        self.problem: Refusal | None = None
        """Why reading stopped before all given notifications were read; None if it did not."""

    def read(self) -> _Pairs:
        """The next notifications; empty if there are no more."""
        pairs: _Pairs = []
        try:
            for one in islice(self._given, 0 if self.is_over else PIECE):
                attributes, payload = check_pair(one)
                content = encode_attributes(attributes)
                _check_size(content, payload)
                pairs.append((content, payload))
        except Refusal as found:  # send at least the notifications before this one
            self.problem = found
        self.is_over = len(pairs) < PIECE
        return pairs


class Publishing(ABC):
    """The publishing half of one channel of an agent. Subclasses send the messages."""

    def __init__(
        self,
        name: str,
        times: Times,
        tag: Tagging,
        following: Following,
        preprocessors: Preprocessors,
        on_break: Callable[[Break], object] | None,
    ) -> None:
        self.name = name
        """The name of the agent."""
        self._times = times
        self._tagging = tag
        self._on_break = on_break
        self._following = following
        self._preprocessors = preprocessors
        self._untagged = Untagged(preprocessors.tag, self._publish_tagged)
        self._acks: dict[int, asyncio.Future[int]] = {}
        self._pieces: list[_Piece] = []
        self.is_closed = False
        self.refusal = ""
        """Why the node above does not serve the channel; empty if it does."""
        self._begin_publishing()

    def _begin_publishing(self) -> None:
        """Begin again with stamp 1, under a new publisher name."""
        self._life = uuid.uuid4().hex
        base = f"{self.name}/{self._life}"
        self._publisher = Publisher(base, LOCAL, self._times, window=WINDOW)

    @property
    def _now(self) -> float:
        return time.monotonic()

    # -- implemented by subclasses -------------------------------------------------------------

    @abstractmethod
    def overdue(self, what: str, timeout: float | None) -> TimedOut:
        """The error to raise if something took too long."""

    @abstractmethod
    def _hand_over(self, sender: Name, sent: list[Sent]) -> None:
        """Pass the messages of one of the agent's state machines to the agent's own router."""

    @abstractmethod
    def _has_room(self) -> bool:
        """Can a fast notification be sent now?"""

    # -- for applications ----------------------------------------------------------------------

    async def publish(
        self,
        attributes: Mapping[str, Any] | bytes | None = None,
        payload: bytes = b"",
        *,
        header: Header | None = None,
        subject: str = "",
        share: bool = True,
        fast: bool = False,
        timeout: float | None = None,
    ) -> int:
        """Publish a notification, wait until it is on the disk of the rendezvous point, and return
        its stamp. Subscribers get the payload and the subject, and also the attributes unless
        `share` is false. The stamps of an agent start from 1. A payload that is sent in pieces
        takes several stamps, and the last of them is returned. With `fast`, only subscribers that
        are connected get the notification. A fast notification has no stamp and no serial, and is
        not in the journal; 0 is returned at once, and a loss is not noticed. Raise Refusal if the
        notification was refused. Raise Broken, and publish nothing, if notifications that were
        acknowledged earlier have been lost. Raise TimedOut if the notification is not acknowledged
        within `timeout` seconds; the agent still tries to publish it. The attributes are a mapping,
        or bytes that are already encoded as a JSON object, a map in MessagePack, or XML.

        `header` is a header that was obtained earlier by the method `header`. With a header, the
        attributes may be left out, and are then not sent. Raise Outdated if the header was made for
        a version of the channel that is too old."""
        if header is None and attributes is None:
            raise Refusal("found neither attributes nor a header, expected one of them")
        if fast:
            if header is not None:
                raise Refusal("found a fast notification with a header, expected attributes only")
            self.publish_fast(attributes or {}, payload, subject=subject, share=share)
            return 0
        if header is not None:
            bare = attributes is None
            content = b"" if attributes is None else encode_attributes(attributes)
            shared = share and not bare
            done = self.publish_content(
                content, payload, subject=subject, share=shared, tag=header.data
            )
        else:
            done = self.publish_soon(attributes or {}, payload, subject=subject, share=share)
        try:
            async with asyncio.timeout(timeout):
                return await done
        except TimeoutError:
            raise self.overdue("the notification was not acknowledged", timeout) from None

    def publish_soon(
        self,
        attributes: Mapping[str, Any] | bytes,
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
    ) -> asyncio.Future[int]:
        """Publish a notification without waiting. The future completes when the rendezvous point
        has the notification on disk."""
        content = encode_attributes(attributes)
        return self.publish_content(content, payload, subject=subject, share=share)

    def publish_fast(
        self,
        attributes: Mapping[str, Any] | bytes,
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
    ) -> None:
        """Send a notification to connected subscribers; see `publish`. The notification is dropped
        if there is no link, or if too many bytes wait to be sent. Raise Refusal if the notification
        does not fit into a frame. An agent that tags by itself also tags fast notifications; no
        fast notification waits for the answer of a preprocessor."""
        content = encode_attributes(attributes)
        self._check(content, payload, subject)
        if len(content) + len(payload) > LARGEST:
            size = len(content) + len(payload)
            raise Refusal(
                f"found a fast notification of {size:,} bytes, expected at most {LARGEST:,}"
            )
        if not self._has_room():
            return
        tag = self._following.tag(content) if self._tagging == "local" else b""
        message = m.Publish(
            self._publisher.name, 0, 0, content, payload, share, subject,
            time.time_ns() // 1000, fast=True, tag=fit_tag(content, payload, tag),
        )  # fmt: skip
        self._hand_over(PUBLISHER, [(LOCAL, message)])

    def publish_content(
        self,
        content: bytes,
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
        tag: bytes = b"",
    ) -> asyncio.Future[int]:
        """Like `publish_soon`, but the attributes are already JSON, MessagePack or XML, and there
        may be a tag."""
        self._check(content, payload, subject)
        if self.refusal:
            raise Refusal(self.refusal)
        if self._publisher.breaks:
            raise Broken(self._publisher.breaks.popleft())
        about = About(content if share else None, subject, time.time_ns() // 1000)
        if not tag and self._tagging == "local":
            tag = self._following.tag(content)
        elif not tag and self._tagging == "preprocessor":
            return self._untagged.put(content, payload, about)
        return self._publish_tagged(content, payload, about, tag)

    def _publish_tagged(
        self, content: bytes, payload: bytes, about: About, tag: bytes
    ) -> asyncio.Future[int]:
        tag = fit_tag(content, payload, tag)
        if len(content) + len(payload) + len(tag) > LARGEST:
            return self._publish_pieces(content, payload, about, tag)
        return self._publish(content, payload, about, tag)

    def _check(self, content: bytes, payload: bytes, subject: str) -> None:
        """Raise Refusal if a notification is too large, or if the agent is closed."""
        if self.is_closed:
            raise Refusal(CLOSED)
        check_payload(payload)
        if len(subject) > m.LONGEST_SUBJECT:
            raise Refusal(
                f"found a subject of {len(subject):,} characters, expected at most "
                f"{m.LONGEST_SUBJECT:,}"
            )
        for what, size, most in (("attributes", len(content), LARGEST - PIECE_BYTES),
                                 ("a payload", len(payload), LARGEST_WHOLE)):  # fmt: skip
            if size > most:
                raise Refusal(f"found {what} of {size:,} bytes, expected at most {most:,}")

    def _publish(
        self, content: bytes, payload: bytes, about: About, tag: bytes
    ) -> asyncio.Future[int]:
        sent = self._publisher.publish(content, payload, self._now, about, tag)
        stamp = self._publisher.acknowledged + self._publisher.waiting
        done = self._acks[stamp] = asyncio.get_running_loop().create_future()
        self._hand_over(PUBLISHER, sent)
        return done

    def _publish_pieces(
        self, content: bytes, payload: bytes, about: About, tag: bytes
    ) -> asyncio.Future[int]:
        """Publish a payload in pieces. The future completes when the rendezvous point has all of
        them on disk."""
        first = self._publisher.acknowledged + self._publisher.waiting + 1
        many = -(-len(payload) // PIECE_BYTES)
        view = memoryview(payload)
        waiting = []
        for at in range(many):
            part = bytes(view[at * PIECE_BYTES : (at + 1) * PIECE_BYTES])
            told = msgspec.structs.replace(about, piece=Piece(first, at, many))
            waiting.append(self._publish(content, part, told, tag))
        return asyncio.ensure_future(_all_of(waiting))

    async def publish_many(self, notifications: Pairs | ArrowRows) -> int:
        """Publish pairs of attributes and payload in large groups, wait until the rendezvous point
        has all of them on disk, and return their number. Arrow data is accepted too: each row is a
        notification, and the column `payload`, if there is one, is the payload. If a notification
        is refused, stop publishing, wait for the answers to all that were sent, and raise
        Refusal."""
        chunks = _Chunks(pairs_of(notifications))
        tagging: deque[tuple[_Pairs, Awaitable[list[bytes]]]] = deque()
        waiting: deque[_Piece] = deque()
        count = 0  # acknowledged
        try:
            while True:
                while len(tagging) < self._ahead and (pairs := chunks.read()):
                    tagging.append((pairs, self._begin_tagging(pairs)))
                if tagging:
                    pairs, tags = tagging.popleft()
                    waiting.append(self._publish_piece(pairs, await tags))
                if not waiting:
                    if chunks.problem is not None:
                        raise Refusal(f"notification {count + 1}: {chunks.problem}")
                    return count
                if (chunks.is_over and not tagging) or len(waiting) >= MOST_PIECES:
                    piece = waiting.popleft()
                    await piece.done
                    if piece.refused:
                        stamp, reason = min(piece.refused.items())
                        at = count + stamp - piece.first + 1
                        others = len(piece.refused) - 1
                        more = f"; also refused in this call: {others:,} more" if others else ""
                        raise Refusal(f"notification {at}: {reason}{more}")
                    count += piece.last - piece.first + 1
        finally:
            for _, tags in tagging:
                if isinstance(tags, asyncio.Future):
                    tags.cancel()
            await asyncio.gather(*(one.done for one in waiting), return_exceptions=True)

    @property
    def _ahead(self) -> int:
        """How many pieces of `publish_many` are tagged at the same time. While one piece is sent, a
        preprocessor tags the next pieces; this process, if it tags by itself, tags one piece at a
        time."""
        return AHEAD if self._tagging == "preprocessor" else 1

    def _begin_tagging(self, pairs: _Pairs) -> Awaitable[list[bytes]]:
        tags = self._tag_pairs(pairs)
        return asyncio.ensure_future(tags) if self._tagging == "preprocessor" else tags

    async def _tag_pairs(self, pairs: _Pairs) -> list[bytes]:
        """The tags of notifications; an empty list if the rendezvous point tags them."""
        if self._tagging == "local":
            return self._following.tag_many([content for content, _ in pairs])
        if self._tagging == "preprocessor":
            return await self._preprocessors.tag([content for content, _ in pairs])
        return []

    def _publish_piece(self, pairs: _Pairs, tags: Sequence[bytes]) -> _Piece:
        publisher = self._publisher
        if self.is_closed or self.refusal:
            raise Refusal(CLOSED if self.is_closed else self.refusal)
        if publisher.breaks:
            raise Broken(publisher.breaks.popleft())
        sent = publisher.publish_all(pairs, self._now, time.time_ns() // 1000, tags)
        last = publisher.acknowledged + publisher.waiting
        done = asyncio.get_running_loop().create_future()
        piece = _Piece(last - len(pairs) + 1, last, done, {})
        self._pieces.append(piece)
        self._hand_over(PUBLISHER, sent)
        return piece

    # -- answers -------------------------------------------------------------------------------

    def _give_up(self, reason: str) -> None:
        """Refuse all publications that were not acknowledged, with a reason."""
        for waiting in self._acks.values():
            if not waiting.done():
                waiting.set_exception(Refusal(reason))
                waiting.exception()  # prevents a warning if nobody waits for the future
        for piece in self._pieces:
            if not piece.done.done():
                piece.done.set_exception(Refusal(reason))
                piece.done.exception()
        self._acks.clear()
        self._pieces.clear()

    def _acknowledge(self) -> None:
        while self._on_break is not None and self._publisher.breaks:
            what = self._publisher.breaks.popleft()
            asyncio.get_running_loop().call_soon(self._on_break, what)
        for one in self._publisher.refused:  # others with lower stamps may still wait
            waiting = self._acks.pop(one.stamp, None)
            if waiting is not None and not waiting.done():
                waiting.set_exception(
                    Outdated(one.reason, one.version) if one.version else Refusal(one.reason)
                )
            for piece in self._pieces:
                if piece.first <= one.stamp <= piece.last:
                    piece.refused[one.stamp] = one.reason
        self._publisher.refused.clear()
        while self._pieces and self._pieces[0].last <= self._publisher.acknowledged:
            settled = self._pieces.pop(0).done
            if not settled.done():
                settled.set_result(None)
        stamps, self._publisher.early = self._publisher.early, []
        for stamp in self._acks:
            if stamp > self._publisher.acknowledged:
                break
            stamps.append(stamp)
        for stamp in stamps:
            done = self._acks.pop(stamp, None)
            if done is not None and not done.done():
                done.set_result(stamp)
