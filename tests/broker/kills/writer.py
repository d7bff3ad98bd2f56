"""A process with publishers: each publishes as fast as acknowledgments come.

python -m tests.broker.kills.writer FOLDER TIMES NAME PACE CHANNELS {NUMBER=ADDRESS}...

CHANNELS are names with commas between them: each publisher publishes in all of them, over one link.
Every fifth payload is published in pieces, some of them with pauses between the pieces.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from tests.broker.kills.board import PUBLISH, Board
from tests.broker.kills.notes import APART, attributes_of, payload_of
from tests.waiting import until

from tidings.network.agent import AgentChannel, connect
from tidings.network.agents import encode_attributes, publishing
from tidings.routing.protocol import About, Piece
from tidings.routing.protocol.times import Times

WINDOW = 500  # that are not acknowledged
FOREVER = 1e6  # seconds: whoever started this ends it
SLOWLY, FIRST_SLOW = 100, 33  # the numbers of payloads whose pieces are published with pauses
publishing.LARGEST, publishing.PIECE_BYTES = 200, 60  # so that long payloads come in pieces


async def publish(
    board: Board, publisher: int, channels: Sequence[str], address: str, times: Times, pace: int,
    ready: Callable[[], None],
) -> None:  # fmt: skip
    async with connect(address, name=f"publisher-{publisher}", times=times) as agent:
        ready()
        await until(lambda: board.stage >= PUBLISH, FOREVER)
        async with asyncio.TaskGroup() as group:
            for which, name in enumerate(channels):
                channel = agent.channel(name)
                group.create_task(publish_in(channel, board, publisher + which * APART, pace))


async def publish_in(channel: AgentChannel, board: Board, publisher: int, pace: int) -> None:
    waiting: deque[asyncio.Future[int]] = deque()
    number = done = 0
    began = time.monotonic()
    while waiting or board.stage == PUBLISH:
        while len(waiting) < WINDOW and board.stage == PUBLISH:
            number += 1
            board.say(publisher, number)
            attributes, payload = attributes_of(publisher, number), payload_of(publisher, number)
            if number % SLOWLY == FIRST_SLOW:
                waiting.append(await publish_slowly(channel, attributes, payload))
            else:
                waiting.append(channel.publish_soon(attributes, payload))
            late = pace * (time.monotonic() - began) - number
            if late < 0:
                break
            if late > pace:  # what was not published in time is not made up for
                began += late / pace
        if not waiting:
            await asyncio.sleep(0.01)
            continue
        await waiting[0]
        while waiting and waiting[0].done():
            waiting.popleft().result()
            done += 1
        board.acknowledge(publisher, done)


async def publish_slowly(
    channel: AgentChannel, attributes: dict[str, int], payload: bytes
) -> asyncio.Future[int]:
    """Publish a payload in pieces, with pauses between them, in which others publish and readers
    go."""
    content, size = encode_attributes(attributes), publishing.PIECE_BYTES
    publisher = channel._publisher
    first, many = publisher.acknowledged + publisher.waiting + 1, -(-len(payload) // size)
    sent = []
    for at in range(many):
        about = About(content, piece=Piece(first, at, many))
        part = payload[at * size : (at + 1) * size]
        sent.append(channel._publish(content, part, about, b""))
        await asyncio.sleep(0.01)
    return asyncio.ensure_future(publishing._all_of(sent))


async def main(
    folder: str, times: str, name: str, pace: str, channels: str, *publishers: str
) -> None:
    board = Board(Path(folder) / "board")
    each = (one.split("=", 1) for one in publishers)
    read = msgspec.json.decode(times, type=Times)
    connected: list[None] = []

    def ready() -> None:
        connected.append(None)
        if len(connected) == len(publishers):
            (Path(folder) / f"{name}.ready").touch()

    async with asyncio.TaskGroup() as group:
        for number, address in each:
            group.create_task(
                publish(board, int(number), channels.split(","), address, read, int(pace), ready)
            )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
