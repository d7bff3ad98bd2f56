"""Checks the certificates of a tree's nodes before any node is started.

A node whose certificate the other nodes do not trust would start, but never connect to the node
above it. So all the TLS handshakes that the tree will need are tried here, in memory, with the same
settings.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tidings.broker.config import Tls
from tidings.broker.trees.tree_settings import Member
from tidings.model import EnvironmentProblem
from tidings.network import (
    client_context,
    load_authorities,
    load_certificate,
    sentence_of,
    server_context,
)

NAME = "{name}"  # in the paths of certificates, this is replaced with the name of a node
_ROUNDS = 10  # the most rounds of a handshake


def tls_of(tls: Tls, name: str) -> Tls:
    """The settings of TLS for one node."""
    return msgspec.structs.replace(
        tls, certificate=tls.certificate.replace(NAME, name), key=tls.key.replace(NAME, name)
    )


def with_absolute_paths(tls: Tls, folder: Path) -> Tls:
    """The settings of a file in `folder`, with absolute paths."""

    def at(path: str) -> str:
        return str((folder / path).absolute())

    authorities = None if tls.authorities is None else at(tls.authorities)
    return Tls(at(tls.certificate), at(tls.key), authorities)


def find_tls_problems(tls: Tls, members: Iterable[Member]) -> Iterator[str]:
    """The reasons why nodes can't connect to the nodes above them with their certificates. The
    rendezvous points are checked too, because `tidings up` connects to the first of them."""
    known = {one.name: one for one in members}
    for one in known.values():
        for above in one.upstreams or (one.name,):
            try:
                client = _client(tls_of(tls, one.name))
                server = _server(tls_of(tls, above))
            except EnvironmentProblem as problem:
                yield f"tls: {problem}"
                return
            host = known[above].reached
            reason = _shake_hands(client, server, host)
            if reason:
                yield f"tls: {one.name} can't connect to {above} at {host}: {reason}"
                return


def _client(tls: Tls) -> ssl.SSLContext:
    context = client_context(tls.authorities)
    load_certificate(context, tls.certificate, tls.key)
    return context


def _server(tls: Tls) -> ssl.SSLContext:
    context = server_context(tls.certificate, tls.key)
    if tls.authorities is not None:
        load_authorities(context, tls.authorities)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> str:
    """Why a client can't connect to a server; empty if it can connect."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    lower = client.wrap_bio(down, up, server_hostname=host)
    upper = server.wrap_bio(up, down, server_side=True)
    waiting = [lower, upper]
    for _ in range(_ROUNDS):
        for one in [*waiting]:
            try:
                one.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as problem:
                return sentence_of(problem)
            waiting.remove(one)
    return "the handshake does not end" if waiting else ""
