"""A process that owns a folder until it is killed: as the driver of a pipeline, or as a rendezvous
point."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from tidings.store import ChangeLog


def own_as_driver(folder: str) -> None:
    log = ChangeLog(folder)
    while not log.own():
        time.sleep(0.01)
    print("owns", flush=True)  # noqa: T201
    time.sleep(600)


async def own_as_root(folder: str) -> None:
    from tidings.broker import Door, RootNode
    from tidings.model import EnvironmentProblem

    while True:
        try:
            root = RootNode("root", Path(folder), Door())
            break
        except EnvironmentProblem:  # another one still runs
            await asyncio.sleep(0.01)
    await root.start()
    print("owns", flush=True)  # noqa: T201
    await asyncio.sleep(600)


if __name__ == "__main__":
    if sys.argv[2] == "root":
        asyncio.run(own_as_root(sys.argv[1]))
    else:
        own_as_driver(sys.argv[1])
