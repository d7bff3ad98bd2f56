"""A web server on this machine whose feeds a test can change."""

from __future__ import annotations

import hashlib
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from xml.sax.saxutils import escape


class FeedServer(http.server.ThreadingHTTPServer):
    """Serves `pages` by path, with ETags; remembers the answers it gave in `log`."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, bytes] = {}
        self.status = 200
        self.log: list[tuple[str, int, str]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: FeedServer

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path)
        status = self.server.status if page is not None else 404
        etag = f'"{hashlib.sha256(page or b"").hexdigest()[:16]}"'
        if status == 200 and self.headers["If-None-Match"] == etag:
            status = 304
        body = page if status == 200 and page is not None else b""
        self.server.log.append((self.path, status, self.headers["User-Agent"]))
        self.send_response(status)
        self.send_header("ETag", etag)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name above)
        pass


@contextmanager
def serve() -> Iterator[FeedServer]:
    with FeedServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def rss(*titles: str) -> bytes:
    """An RSS document whose entries have their titles for ids."""
    items = "".join(
        f"<item><guid isPermaLink='false'>{escape(title)}</guid><title>{escape(title)}</title>"
        f"<link>http://example.org/{number}</link><category>news</category>"
        f"<pubDate>Tue, 01 Jan 2013 10:00:00 +0200</pubDate></item>"
        for number, title in enumerate(titles)
    )
    return f"<rss version='2.0'><channel><title>t</title>{items}</channel></rss>".encode()


def atom(*titles: str) -> bytes:
    """An Atom document whose entries have their titles for ids."""
    entries = "".join(
        f"<entry><id>urn:{escape(title)}</id><title>{escape(title)}</title>"
        f"<author><name>Ada</name></author><summary>about {escape(title)}</summary>"
        f"<published>2013-01-01T08:00:00Z</published><updated>2013-01-02T08:00:00Z</updated></entry>"
        for title in titles
    )
    return f"<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title>{entries}</feed>".encode()


@contextmanager
def answering(answer: Callable[[socket.socket], object], host: str = "127.0.0.1") -> Iterator[str]:
    """A server that says to each who asks whatever `answer` writes to him; its address."""
    with socket.create_server((host, 0)) as listening:

        def one(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                connection.recv(65536)
                answer(connection)

        def all_of_them() -> None:
            with suppress(OSError):  # it was closed
                while True:
                    threading.Thread(target=one, args=listening.accept()[:1], daemon=True).start()

        threading.Thread(target=all_of_them, daemon=True).start()
        yield f"http://{host}:{listening.getsockname()[1]}/"
