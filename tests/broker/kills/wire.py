"""A wire between network namespaces that loses, delays and reorders packets, or cuts some off.

python -m tests.broker.kills.wire SEED {NAMESPACE=ADDRESS}...

Each namespace gets a TUN device, whose other end is here: a packet goes to whoever has its address.
stdin says how, a line of JSON at a time; it begins as a good wire and says "ready".
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import time

import msgspec

_SET = 0x400454CA  # TUNSETIFF
_TUN, _NO_INFORMATION = 0x0001, 0x1000
MTU = 1400


class Weather(msgspec.Struct):
    """Chances, of a packet; seconds; and who is cut off from everyone."""

    loss: float = 0.0
    delay: float = 0.0
    reorder: float = 0.0
    cut: list[str] = []


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def device(namespace: str, address: str, number: int) -> int:
    """A TUN device in a namespace; its end here."""
    name = f"tw{os.getpid() % 100_000}.{number}"
    found = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    wanted = struct.pack("16sH22x", name.encode(), _TUN | _NO_INFORMATION)
    fcntl.ioctl(found, _SET, wanted)
    run("ip", "link", "set", name, "netns", namespace)
    run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", name)
    run("ip", "-n", namespace, "link", "set", name, "mtu", str(MTU), "up")
    run("ip", "-n", namespace, "link", "set", "lo", "up")
    return found


class Wire:
    def __init__(self, seed: int, places: dict[str, str]) -> None:
        self.chance = random.Random(seed)
        self.weather = Weather()
        self.names: dict[int, str] = {}
        self.ends: dict[bytes, int] = {}  # by address
        for number, (name, address) in enumerate(places.items()):
            end = device(name, address, number)
            self.names[end] = name
            self.ends[socket.inet_aton(address)] = end
        self._later: list[tuple[float, int, int, bytes]] = []
        self._count = 0

    def carry(self) -> None:
        look = selectors.DefaultSelector()
        for end in (*self.names, sys.stdin.fileno()):
            look.register(end, selectors.EVENT_READ)
        while True:
            pause = self._later[0][0] - time.monotonic() if self._later else 1.0
            for key, _ in look.select(max(pause, 0.0)):
                if key.fd == sys.stdin.fileno():
                    line = sys.stdin.buffer.readline()
                    if not line:
                        return
                    self.weather = msgspec.json.decode(line, type=Weather)
                else:
                    self._take(key.fd)
            self._give()

    def _take(self, end: int) -> None:
        weather, chance = self.weather, self.chance
        for _ in range(64):
            try:
                packet = os.read(end, 65536)
            except BlockingIOError:
                return
            to = self.ends.get(packet[16:20])
            if to is None or packet[0] >> 4 != 4:
                continue
            if weather.cut and (self.names[end] in weather.cut or self.names[to] in weather.cut):
                continue
            if chance.random() < weather.loss:
                continue
            delay = weather.delay * (5 if chance.random() < weather.reorder else 1)
            self._count += 1
            heapq.heappush(self._later, (time.monotonic() + delay, self._count, to, packet))

    def _give(self) -> None:
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            _, _, to, packet = heapq.heappop(self._later)
            try:
                os.write(to, packet)
            except OSError:
                continue  # its queue is full, or it is going: one more that is lost


def main(seed: str, *places: str) -> None:
    pairs = (one.split("=", 1) for one in places)
    wire = Wire(int(seed), {pair[0]: pair[1] for pair in pairs})
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    wire.carry()


if __name__ == "__main__":
    main(*sys.argv[1:])
