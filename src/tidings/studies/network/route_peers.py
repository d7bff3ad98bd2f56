"""Starts the mosquitto and nats-server that are installed on this machine, without durability.

The clients of mosquitto and nats-server are raw sockets that speak just enough of MQTT 3.1.1 and of
the NATS protocol.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tidings.model import EnvironmentProblem
from tidings.studies.host.ports import free_ports
from tidings.studies.network.route_flow import Receiver, System

PROGRAMS = {"mosquitto": "mosquitto", "nats": "nats-server"}
TOPICS = 10_000  # the highest number of topics; all names of topics have the same length


def program(name: str) -> str | None:
    """The path of a peer's program, if it is installed."""
    return shutil.which(PROGRAMS[name], path=None) or shutil.which(
        PROGRAMS[name], path="/usr/sbin:/usr/local/sbin:/usr/local/bin"
    )


def topic(number: int) -> str:
    assert number < TOPICS
    return f"topic{number:04d}"


# -- MQTT 3.1.1 ------------------------------------------------------------------------------------


def mqtt_packet(head: int, body: bytes) -> bytes:
    """A control packet: first byte, length in groups of seven bits, body."""
    length, size = len(body), bytearray()
    while True:
        length, low = length >> 7, length & 127
        size.append(low | (128 if length else 0))
        if not length:
            return bytes((head,)) + bytes(size) + body


def mqtt_text(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(2, "big") + data


def mqtt_connect(name: str) -> bytes:
    """A CONNECT packet for a clean session without keep-alive."""
    return mqtt_packet(0x10, mqtt_text("MQTT") + bytes((4, 2, 0, 0)) + mqtt_text(name))


def mqtt_subscribe(number: int, topics: Sequence[str]) -> bytes:
    """A SUBSCRIBE packet with QoS 0 (delivery at most once)."""
    wanted = b"".join(mqtt_text(one) + b"\0" for one in topics)
    return mqtt_packet(0x82, number.to_bytes(2, "big") + wanted)


def mqtt_publish(topic: str, payload: bytes) -> bytes:
    return mqtt_packet(0x30, mqtt_text(topic) + payload)


def start_mosquitto(
    folder: Path, topics: Sequence[int], payloads: Sequence[bytes], receivers: int
) -> System:
    """Start mosquitto with receivers of all topics. `topics` contains the topic of each payload."""
    (port,) = free_ports(1)
    file = folder / "mosquitto.conf"
    file.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nlog_type error\n"
        "max_queued_messages 0\nmax_queued_bytes 0\nset_tcp_nodelay true\n"
    )
    process = start_program("mosquitto", "-c", str(file))
    names = sorted({topic(one) for one in topics})

    def join(name: str) -> socket.socket:
        link = connect_to(port)
        link.sendall(mqtt_connect(name))
        _expect(link, b"\x20\x02\x00\x00", "mosquitto")
        return link

    def receiving(number: int) -> socket.socket:
        link = join(f"receiver{number}")
        for at in range(0, len(names), 100):
            some = names[at : at + 100]
            link.sendall(mqtt_subscribe(1, some))
            _expect(link, mqtt_packet(0x90, b"\0\1" + bytes(len(some))), "mosquitto")
        return link

    frames = [
        mqtt_publish(topic(one), payload) for one, payload in zip(topics, payloads, strict=True)
    ]
    size, stamp = len(frames[0]), len(frames[0]) - len(payloads[0])
    return _system(
        "mosquitto", process, lambda: join("sender"),
        lambda number: Receiver(receiving(number), size, stamp), receivers, frames, stamp,
    )  # fmt: skip


# -- NATS ------------------------------------------------------------------------------------------

NATS_CONNECT = b"CONNECT " + json.dumps({"verbose": False, "pedantic": False}).encode() + b"\r\n"


def nats_subscribe(topic: str, number: int) -> bytes:
    return f"SUB {topic} {number}\r\n".encode()


def nats_publish(topic: str, payload: bytes) -> bytes:
    return f"PUB {topic} {len(payload)}\r\n".encode() + payload + b"\r\n"


def nats_message(topic: str, number: int, payload: bytes) -> bytes:
    """A message in the form in which a receiver gets it."""
    return f"MSG {topic} {number} {len(payload)}\r\n".encode() + payload + b"\r\n"


def start_nats(
    folder: Path, topics: Sequence[int], payloads: Sequence[bytes], receivers: int
) -> System:
    """Start nats-server with receivers of all topics. `topics` contains the topic of each
    payload."""
    (port,) = free_ports(1)
    file = folder / "nats.conf"
    file.write_text(f'listen: "127.0.0.1:{port}"\nping_interval: "1h"\nmax_pending: 256MB\n')
    process = start_program("nats", "-c", str(file))
    distinct = sorted(set(topics))
    links: list[socket.socket] = []

    def join() -> socket.socket:
        link = connect_to(port)
        wait_until(link, b"\r\n", "nats")  # INFO
        link.sendall(NATS_CONNECT + b"PING\r\n")
        wait_until(link, b"PONG\r\n", "nats")
        return link

    def receiving() -> socket.socket:
        link = join()
        # all numbers have the same length, so all messages have the same length too
        link.sendall(b"".join(nats_subscribe(topic(one), TOPICS + one) for one in distinct))
        link.sendall(b"PING\r\n")
        wait_until(link, b"PONG\r\n", "nats")
        links.append(link)
        return link

    frames = [
        nats_publish(topic(one), payload) for one, payload in zip(topics, payloads, strict=True)
    ]
    out = len(nats_message(topic(0), TOPICS, payloads[0]))
    after = len(payloads[0]) + 2
    system = _system(
        "nats", process, join,
        lambda _: Receiver(receiving(), out, out - after), receivers, frames,
        len(frames[0]) - after,
    )  # fmt: skip
    for link in links:  # the server pings each client once, two seconds after it connects
        wait_until(link, b"PING\r\n", "nats")
        link.sendall(b"PONG\r\n")
    return system


STARTERS = {"mosquitto": start_mosquitto, "nats": start_nats}


# -- processes and sockets -------------------------------------------------------------------------


def connect_to(port: int, patience: float = 10.0) -> socket.socket:
    """Connect to a process that is starting."""
    deadline = time.monotonic() + patience
    while True:
        try:
            link = socket.create_connection(("127.0.0.1", port), timeout=patience)
        except OSError as problem:
            if time.monotonic() > deadline:
                raise EnvironmentProblem(
                    f"port {port} did not accept a connection within {patience:.0f} s: {problem}"
                ) from None
            time.sleep(0.02)
        else:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return link


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Terminate a process, and kill it if it does not end in time."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def start_program(name: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a peer's program; raise EnvironmentProblem if it is not installed."""
    found = program(name)
    if found is None:
        raise EnvironmentProblem(f"{PROGRAMS[name]} is not installed")
    return subprocess.Popen(
        [found, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _system(
    name: str,
    process: subprocess.Popen[bytes],
    sender: Callable[[], socket.socket],
    receiver: Callable[[int], Receiver],
    receivers: int,
    frames: Sequence[bytes],
    stamp: int,
) -> System:
    links: list[socket.socket] = []

    def stop() -> None:
        for link in links:
            link.close()
        end_process(process)

    try:
        all_receivers = []
        for number in range(receivers):
            all_receivers.append(receiver(number))
            links.append(all_receivers[-1].socket)
        links.append(sender())
    except BaseException:
        stop()
        raise
    return System(
        name, [process.pid], links[-1], all_receivers, b"".join(frames), len(frames[0]), stamp, stop
    )


def _expect(link: socket.socket, expected: bytes, name: str) -> None:
    found = b""
    while len(found) < len(expected):
        more = link.recv(len(expected) - len(found))
        found += more
        if not more or not expected.startswith(found):
            raise EnvironmentProblem(f"{name} sent {found[:40]!r}, expected {expected[:40]!r}")


def wait_until(link: socket.socket, ending: bytes, name: str) -> None:
    """Read until the received data ends with `ending`."""
    found = b""
    while not found.endswith(ending):
        try:
            more = link.recv(1 << 16)
        except TimeoutError:
            more = b""
        found += more
        if not more:
            raise EnvironmentProblem(f"{name} sent {found[:40]!r}, expected {ending!r}")
