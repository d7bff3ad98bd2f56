"""Payloads that no router can read: publisher and subscribers share a key, routers see ciphertext.

    python encrypted.py          needs the package `cryptography`

A sealed payload:

    16 bytes   random id that a publisher chooses when it starts    ┐ not encrypted,
     8 bytes   number of the payload at this publisher, from 1 on   ┘ but authenticated
    12 bytes   nonce, a new random one for each payload
    the rest   AES-256-GCM of the attributes and the body

A subscriber with the key notices three things that a router could do to a payload. If the payload
was changed, it can't be decrypted. If it was delivered before, its number is known. If it was moved
to another notification, the attributes in it do not match the subscription.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import tempfile
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import tidings
from tidings import Delivery
from tidings.broker import Address, Door, RootNode, RouterNode

HEAD = struct.Struct(">16sQ")
NONCE = 12


class Forged(Exception):
    """The payload is not one that its publisher sealed for this subscription."""


class Sealer:
    """Seals the payloads of a publisher. Random nonces may repeat by chance: change the key long
    before 2**32 payloads."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self._life = os.urandom(16)
        self._number = 0

    def seal(self, attributes: dict[str, Any], body: bytes) -> bytes:
        self._number += 1
        head = HEAD.pack(self._life, self._number)
        nonce = os.urandom(NONCE)
        text = json.dumps(attributes).encode()
        inside = struct.pack(">I", len(text)) + text + body
        return head + nonce + self._cipher.encrypt(nonce, inside, head)


class Opener:
    """Opens the payloads of a subscription."""

    def __init__(self, key: bytes, interest: str) -> None:
        self._cipher = AESGCM(key)
        self._filter = tidings.parse(interest)
        self._seen: set[bytes] = set()

    def open(self, sealed: bytes) -> tuple[dict[str, Any], bytes]:
        """Return the attributes and the body; raise Forged if they were not sealed for us."""
        head, rest = sealed[: HEAD.size], sealed[HEAD.size :]
        try:
            inside = self._cipher.decrypt(rest[:NONCE], rest[NONCE:], head)
        except (InvalidTag, ValueError):
            raise Forged("it was changed, or sealed with another key") from None
        if head in self._seen:
            raise Forged("it was delivered before")
        (size,) = struct.unpack_from(">I", inside)
        attributes = json.loads(inside[4 : 4 + size])
        if not self._filter.matches(attributes):
            raise Forged("it belongs to another notification")
        self._seen.add(head)
        return attributes, inside[4 + size :]


def refused(opener: Opener, sealed: bytes) -> str:
    """The reason why a payload is refused."""
    try:
        opener.open(sealed)
    except Forged as problem:
        return str(problem)
    raise AssertionError("the payload was not refused")


def bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def main() -> None:
    folder = Path(tempfile.mkdtemp())
    root = RootNode("root", folder / "journal.db", Door())
    await root.start()
    edge = RouterNode("edge", Address("127.0.0.1", root.port), Door())
    await edge.start()

    key, interest = AESGCM.generate_key(256), "price > 90"
    body = b"we sell everything on Monday"
    dear, cheap = {"symbol": "SNE", "price": 95}, {"symbol": "SNE", "price": 5}
    sealer = Sealer(key)
    sealed, other = sealer.seal(dear, body), sealer.seal(cheap, b"nothing new")

    async with (
        tidings.connect(f"tidings://127.0.0.1:{edge.port}") as agent,
        agent.subscribe(interest) as told,
    ):
        await agent.publish(dear, sealed)
        await agent.publish(cheap, other)
        one = await anext(told)
    await edge.stop()
    await root.stop()

    assert isinstance(one, Delivery)
    opener = Opener(key, interest)
    attributes, found = opener.open(one.payload)
    assert (attributes, found) == (dear, body)
    print("the subscriber reads:", found.decode())

    # the rendezvous point has only the sealed payload on disk
    disk = bytes_in(folder)
    assert sealed in disk
    assert body not in disk
    print("the journal holds ciphertext,", len(sealed), "bytes of it")

    changed = one.payload[:-1] + bytes([one.payload[-1] ^ 1])
    renumbered = HEAD.pack(one.payload[:16], 7) + one.payload[HEAD.size :]
    for what, who, payload in (
        ("another key", Opener(AESGCM.generate_key(256), interest), one.payload),
        ("a changed payload", opener, changed),
        ("a changed number", opener, renumbered),
        ("a repeated payload", opener, one.payload),
        ("the payload of another notification", opener, other),
    ):
        print(f"{what}: refused, {refused(who, payload)}")


asyncio.run(main())
