"""Parts as pipelines hand them over, and a rendezvous point without a network to take them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tidings.channel import Part
from tidings.channel.interests import ArrayInterests
from tidings.filters import Attributes
from tidings.routing.protocol import messages as m
from tidings.routing.root import Record, Rendezvous
from tidings.store.journal import FileJournal

Row = tuple[Sequence[int], bytes]  # nodes and payload


def make_part(
    source: str,
    key: tuple[int, int],
    rows: Sequence[Row],
    life: int,
    version: int,
    *,
    last: bool = False,
) -> Part:
    """A part of a batch: `key` is the batch and the number of the part."""

    def starts(sizes: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.cumsum([0, *sizes], dtype=np.int64)

    nodes = np.array([node for tag, _ in rows for node in tag], np.int64)
    return Part(
        source, *key, last, life, version, starts([len(tag) for tag, _ in rows]), nodes,
        starts([len(payload) for _, payload in rows]), b"".join(payload for _, payload in rows),
    )  # fmt: skip


class Root:
    """A rendezvous point with its journal on the disk, of which `client` is the only neighbour."""

    def __init__(self, folder: Path, attributes: Attributes | None = None) -> None:
        self.path = folder / "journal"
        self.attributes = attributes
        self.lives = 0
        self.now = 0.0
        self.open()

    def open(self) -> None:
        self.lives += 1
        self.journal = FileJournal(self.path)
        self.journal.begin_life(1000 + self.lives)
        base = self.journal.history.base
        self.interests = ArrayInterests(self.attributes, self.journal.interests(), base)
        memory = self.journal.memory(self.interests.all_placed())
        self.machine = Rendezvous("root", self.interests, self.journal, memory)

    def restart(self) -> None:
        """As after kill -9: what is not on the disk is gone."""
        self.journal.close()
        self.open()

    @property
    def version(self) -> int:
        return self.machine.history.version

    @property
    def life(self) -> int:
        return self.machine.history.life

    def say(self, message: m.Message) -> list[m.Message]:
        """What is answered at once."""
        self.now += 0.001
        return [one for _, one in self.machine.receive("client", message, self.now)]

    def sync(self) -> list[m.Message]:
        """What is answered when everything is on the disk."""
        batch = self.journal.take()
        if batch is not None:
            self.journal.write(batch)
        sent = self.machine.mark_stored(self.machine.written, self.now)
        return [one for to, one in sent if to == "client"]

    def ask(self, message: m.Message) -> m.Message:
        """The one answer to a message."""
        (answer,) = self.say(message) or self.sync()
        return answer

    def place(self, text: str) -> int:
        answer = self.ask(m.Ask(1, text.encode(), "somebody"))
        assert isinstance(answer, m.Answer), answer
        assert not answer.refusal, answer
        return answer.node

    def drop(self, node: int) -> None:
        self.machine.nodes.unwanted.pop(node, None)
        self.machine.nodes.retire(node)

    def hand_over(self, part: Part) -> m.Taken:
        answer = self.ask(part.message())
        assert isinstance(answer, m.Taken), answer
        return answer

    def records(self) -> list[Record]:
        """Every notification in the journal that has marks."""
        found: dict[int, Record] = {}
        for node, counter in self.journal._catch_up().counters.items():
            for _, record in self.journal._lookup._records(node, 1, counter.count):
                found[record.serial] = record
        return [found[serial] for serial in sorted(found)]
