"""One node of a tree, and its process."""

from __future__ import annotations

import asyncio
from enum import Enum

from tidings.broker.trees.tree_settings import Member


class ProcessState(Enum):
    STARTING = "starting"
    RUNNING = "running"
    AGAIN = "again"  # the node died, and will be restarted soon
    ENDED = "ended"


class NodeProcess:
    """A node of the tree, and its process."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.state = ProcessState.STARTING
        self.port = member.listen.port
        self.again = 0.0  # when the node will be restarted
        self.starts = 0
        self.heard = False  # was there a sign of life since the last check?
        self.process: asyncio.subprocess.Process | None = None
        self.rights: tuple[object, object] = None, None  # the tokens and keys in the node's file
        self.known = asyncio.Event()  # set when the node's port is known
        self.listening = asyncio.Event()
        if self.port:
            self.known.set()

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def pid(self) -> int | None:
        running = self.process is not None and self.process.returncode is None
        return self.process.pid if self.process is not None and running else None

    def address(self, host: str | None = None) -> str:
        host = self.member.listen.host if host is None else host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
