"""Bodies of notifications: metadata and payload are decoded as they were encoded."""

from __future__ import annotations

import msgspec
from hypothesis import example, given, strategies as st

from tidings.routing.clients.subscriber import Delivery, Subscriber
from tidings.routing.protocol import (
    About,
    Envelope,
    Piece,
    body_of,
    frames,
    make_front,
    messages as m,
    open_body,
    unwrap,
    wrap,
)
from tidings.routing.protocol.contents.bodies import NOTHING
from tidings.routing.protocol.contents.envelopes import MAGIC

texts = st.text(max_size=20)
abouts = st.builds(
    About, st.none() | st.binary(max_size=30), texts, st.integers(0, 2**63 - 1),
    st.none() | st.builds(Piece, *[st.integers(0, 2**63 - 1)] * 3),
)  # fmt: skip


@given(abouts, st.binary(max_size=50) | st.binary(max_size=20).map(lambda data: MAGIC + data))
@example(NOTHING, b"")
@example(NOTHING, MAGIC)
def test_what_is_told_comes_back(about: About, payload: bytes) -> None:
    assert unwrap(wrap(about, payload)) == (about, payload)


@given(st.binary(max_size=40))
def test_a_payload_alone_is_its_own_body(payload: bytes) -> None:
    assert wrap(NOTHING, payload) == payload or payload.startswith(MAGIC)
    assert body_of(m.Publish("p", 1, 1, b"{}", payload)) == wrap(NOTHING, payload)


@given(st.binary(max_size=40))
def test_what_only_looks_like_a_body_is_a_payload(data: bytes) -> None:
    about, payload = unwrap(MAGIC + data)
    if about == NOTHING:
        assert (MAGIC + data).endswith(payload)


@given(st.binary(max_size=30), st.binary(max_size=30), abouts, st.binary(max_size=20))
@example(b"", b"", NOTHING, MAGIC)
@example(b"c", b"", NOTHING, MAGIC + b"\0\0\0\x80")
def test_an_envelope_is_told_apart(
    context: bytes, found: bytes, about: About, payload: bytes
) -> None:
    inner = wrap(about, payload)
    body = make_front(context, found) + inner
    assert open_body(body) == (Envelope(context, found), inner)
    assert unwrap(body) == (about, payload)
    frame = frames.encode(m.Notification(1, 2, (m.Mark(3, 4, (3,)),), body, "päul", 5))
    assert frames.context_at(b"x" + frame, 1) == context
    assert open_body(inner) == (Envelope(), inner)
    assert bool(context or found) or body == inner  # other channels pay nothing


@given(st.binary(max_size=40))
def test_what_only_looks_like_an_envelope_is_a_body(data: bytes) -> None:
    body = MAGIC + data[:3] + b"\x80" + data[3:]
    said, rest = open_body(body)
    frame = frames.encode(m.Notification(1, 2, (), body, "", 5))
    assert frames.context_at(frame, 0) == said.context
    assert body == make_front(*said) + rest or body.endswith(rest)


def test_old_publications_are_read() -> None:
    """A message of five fields, as benchmarks send it."""
    old = msgspec.msgpack.encode(["publish", "p", 1, 1, b"{}", b"x"])
    message = msgspec.msgpack.decode(old, type=m.Publish)
    assert body_of(message) == b"x"


def test_what_a_subscriber_is_given() -> None:
    one = Subscriber("s", "r", b"x", matched=lambda _: ("n > 0",))
    one.start(0)
    one.receive(m.Answer(1, 1, 7, 0, 0, {}), 0)
    one.receive(m.Setup(1, 7, (), (), 0, 0), 0)
    about = About(b'{"n":1}', "s", 2_500_000)
    mark = m.Mark(7, 1, (7,))
    one.receive(m.Notification(1, 1, (mark,), wrap(about, b"body"), "p", 1), 0)
    (found,) = one.inbox
    assert found == Delivery(1, 1, b"body", ("n > 0",), "s", 2.5, b'{"n":1}')
    assert isinstance(found, Delivery)
    assert found.attributes == {"n": 1}
    assert Delivery(1, 1, b"").attributes is None
