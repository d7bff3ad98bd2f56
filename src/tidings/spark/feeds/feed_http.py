"""Fetches one document over HTTP from an untrusted server.

Redirects are dangerous: they may lead to a file, to another protocol, in circles, or to an address
inside our own network. This module follows redirects itself, because urllib would read the whole
body of a redirect, and would also follow redirects to FTP.

- Only http and https redirects are followed, at most REDIRECTS times, and only the header of a
  redirect is read.
- A public server may redirect only to public servers. The address is checked when the connection is
  made, so an attacker gains nothing from a name that resolves to another address a moment later. A
  feed whose own address is internal may redirect anywhere, because its server could serve internal
  content itself.

If there is a proxy, it makes the connection; then only numeric addresses and localhost can be
refused.

The total time is not limited here: `timeout` limits each single wait (see fetch_pool.py).
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import string
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from typing import Any, NamedTuple

REDIRECTS = 5

_CHUNK = 64 * 1024
_SENT_ON = frozenset({301, 302, 303, 307, 308})


class TooLargeError(Exception):
    """A body exceeds the accepted size."""


class HttpAnswer(NamedTuple):
    """A response; the body is empty unless the status is a success."""

    status: int
    headers: Message
    body: bytes


def get(address: str, headers: Mapping[str, str], *, timeout: float, largest: int) -> HttpAnswer:
    """Fetch the document at `address`, following redirects."""
    opener = urllib.request.OpenerDirector()
    policy = _RedirectPolicy()
    # Without handlers for errors and redirects, urllib returns every response, and reads no body.
    for handler in (urllib.request.ProxyHandler(), _Plain(policy), _Secure(policy)):
        opener.add_handler(handler)
    for _ in range(REDIRECTS + 1):
        request = urllib.request.Request(address, headers=dict(headers))
        with opener.open(request, timeout=timeout) as answer:
            where = answer.headers.get("Location")
            if answer.status not in _SENT_ON or not where:
                body = _body(answer, largest) if 200 <= answer.status < 300 else b""
                return HttpAnswer(answer.status, answer.headers, body)
        address = _redirect_target(address, where)
    raise OSError(f"the request was redirected more than {REDIRECTS} times")


def is_public(host: str) -> bool:
    """Whether a numeric address is public: neither this machine nor a private network."""
    found = ipaddress.ip_address(host.partition("%")[0])
    return (getattr(found, "ipv4_mapped", None) or found).is_global


def _redirect_target(address: str, where: str) -> str:
    target = urllib.parse.urljoin(address, where)
    if urllib.parse.urlsplit(target).scheme not in {"http", "https"}:
        raise OSError("the request was redirected to an address that is not HTTP")
    # As in urllib, the header is read as Latin-1, and may contain characters that are not allowed
    # in a URL.
    return urllib.parse.quote(target, encoding="iso-8859-1", safe=string.punctuation)


def _body(answer: Any, largest: int) -> bytes:
    body = bytearray()
    while chunk := answer.read1(_CHUNK):
        body += chunk
        if len(body) > largest:
            raise TooLargeError
    if answer.length:
        raise OSError("the connection was lost")
    return bytes(body)


class _RedirectPolicy:
    """Decides which servers may be contacted to fetch one document."""

    def __init__(self) -> None:
        # whether the first server is public; None before the first connection
        self._public: bool | None = None

    def connect(self, host: str, port: int, timeout: float | None) -> socket.socket:
        """Connect to one of the allowed addresses of `host`."""
        problem = OSError(f"{host} has no address")
        for family, kind, proto, _, place in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            try:
                self._check(host, is_public(str(place[0])))
                connection = socket.socket(family, kind, proto)
            except OSError as error:
                problem = error
                continue
            try:
                connection.settimeout(timeout)
                connection.connect(place)
            except OSError as error:
                connection.close()
                problem = error
                continue
            self._public = is_public(str(place[0])) if self._public is None else self._public
            return connection
        raise problem

    def check_proxied(self, host: str) -> None:
        """Check a host to which a proxy will connect; only the name of the host is known."""
        try:
            public = is_public(host)
        except ValueError:
            public = host != "localhost"
        self._check(host, public)
        self._public = public if self._public is None else self._public

    def _check(self, host: str, public: bool) -> None:
        if self._public and not public:
            raise OSError(f"the request was redirected to {host}, which is not a public address")

    def connection_maker(
        self,
        direct: type[_Direct],
        proxied: type[http.client.HTTPConnection],
        request: urllib.request.Request,
    ) -> Callable[..., http.client.HTTPConnection]:
        """The connection class or factory that urllib should use for a request."""
        parts = urllib.parse.urlsplit(request.full_url)
        if request.host != urllib.parse.unquote(parts.netloc):  # ProxyHandler has set the proxy
            self.check_proxied(parts.hostname or "")
            return proxied

        def make(host: str, **options: Any) -> _Direct:
            connection = direct(host, **options)
            connection.policy = self
            return connection

        return make


class _Direct(http.client.HTTPConnection):
    policy: _RedirectPolicy

    def connect(self) -> None:
        self.sock = self.policy.connect(self.host, self.port, self.timeout)


class _DirectTls(http.client.HTTPSConnection, _Direct):
    """A TLS connection: `connect` calls `_Direct.connect` and then starts TLS on the socket."""


class _Plain(urllib.request.HTTPHandler):
    def __init__(self, policy: _RedirectPolicy) -> None:
        super().__init__()
        self._policy = policy

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(
            self._policy.connection_maker(_Direct, http.client.HTTPConnection, req), req
        )


class _Secure(urllib.request.HTTPSHandler):
    def __init__(self, policy: _RedirectPolicy) -> None:
        super().__init__()
        self._policy = policy

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(
            self._policy.connection_maker(_DirectTls, http.client.HTTPSConnection, req), req
        )
