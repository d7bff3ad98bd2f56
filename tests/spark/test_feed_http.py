"""Documents from hostile servers: which redirects are followed, and how much is read."""

from __future__ import annotations

import socket
import threading

import pytest
from tests.spark.feed_server import answering, rss, serve

from tidings.spark.feeds import feed_http
from tidings.spark.feeds.feed_documents import FeedProblem, fetch
from tidings.spark.feeds.feed_http import is_public


def sends_on_to(target: str, connection: socket.socket) -> None:
    head = f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"
    connection.sendall(head.encode())


def test_redirects_are_followed() -> None:
    with serve() as server:
        server.pages["/a"] = rss("a")
        target = server.url("/a")
        with answering(lambda connection: sends_on_to(target, connection)) as address:
            document = fetch(address)

            assert document is not None
            assert document.body == rss("a")
            assert fetch(address, document.validators) is None


def test_redirects_come_to_an_end() -> None:
    asked = []

    def again(connection: socket.socket) -> None:
        asked.append(1)
        sends_on_to("/x", connection)

    with (
        answering(again) as address,
        pytest.raises(FeedProblem, match=r"fetched: the request was redirected more than 5 times$"),
    ):
        fetch(address)
    assert len(asked) == 1 + feed_http.REDIRECTS


def test_the_body_of_a_redirect_is_not_read() -> None:
    sent = []
    done = threading.Event()

    def much(connection: socket.socket) -> None:
        try:
            connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n")
            for _ in range(64):
                connection.sendall(b"x" * 1024 * 1024)
                sent.append(1)
        finally:
            done.set()

    with answering(much) as address, pytest.raises(FeedProblem, match="more than 5 times"):
        fetch(address, largest=1000)
    assert done.wait(5)
    assert len(sent) < 6 * 32  # what the sockets hold, of 6 times 64


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x", "file:///etc/passwd", "gopher:x", "//["])
def test_only_http_is_followed(target: str) -> None:
    with (
        answering(lambda connection: sends_on_to(target, connection)) as address,
        pytest.raises(FeedProblem, match="can't be fetched"),
    ):
        fetch(address)


def test_a_public_server_cannot_send_us_into_our_own_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[socket.socket] = []
    with (
        answering(asked.append, "127.0.0.2") as inner,
        answering(lambda connection: sends_on_to(inner, connection)) as address,
    ):
        with pytest.raises(FeedProblem, match="not HTTP"):
            fetch(address)  # a server in here may
        assert len(asked) == 1
        monkeypatch.setattr(feed_http, "is_public", lambda host: host == "127.0.0.1")
        with pytest.raises(FeedProblem, match=r"redirected to 127.0.0.2, which is not a public"):
            fetch(address)
        assert len(asked) == 1


def test_nor_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(lambda connection: sends_on_to("http://169.254.169.254/", connection)) as proxy:
        monkeypatch.setenv("http_proxy", proxy)
        with pytest.raises(FeedProblem, match=r"redirected to 169.254.169.254, which is not"):
            fetch("http://feeds.example/")


@pytest.mark.parametrize(
    ("host", "public"),
    [
        ("127.0.0.1", False), ("10.1.2.3", False), ("192.168.1.1", False), ("172.16.0.1", False),
        ("169.254.169.254", False), ("100.64.0.1", False), ("0.0.0.0", False), ("::1", False),
        ("fe80::1%eth0", False), ("fd00::1", False), ("::ffff:127.0.0.1", False),
        ("93.184.215.14", True), ("2606:2800:21f::1", True), ("::ffff:93.184.215.14", True),
    ],
)  # fmt: skip
def test_public_addresses(host: str, public: bool) -> None:
    assert is_public(host) == public


@pytest.mark.parametrize("address", ["http://[::1", "http://℀.com/x", "file://[x/y", "http:///x"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(FeedProblem) as caught:
        fetch(address)
    assert str(caught.value).startswith(f"the feed {address} can't be fetched: ")


def test_a_server_that_is_silent() -> None:
    with (
        answering(lambda connection: connection.recv(1)) as address,
        pytest.raises(FeedProblem, match=r"took longer than 0.1 seconds$"),
    ):
        fetch(address, timeout=0.1)
