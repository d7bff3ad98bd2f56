"""What goes on around a pipeline while it is killed: notifications come, subscriptions change."""

from __future__ import annotations

import json
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidings.filters import Attributes
from tidings.store import ChangeLog

COLUMNS = {"id": "integer", "price": "integer", "kind": "string", "place": "string"}
ATTRIBUTES = Attributes(COLUMNS)
KINDS = ("ale", "beer", "cider", "stout")
PLACES = ("Bonn", "Cork", "Delft", "Graz", "Rome")

FILE = """
name = "kills"
extra = "refuse"

[source]
kind = "files"
path = "in"
format = "json"
files_per_trigger = 2

[columns]
id = "integer"
price = "integer"
kind = "string"
place = "string"

[subscriptions]
log = "subscriptions"
rebuild_after = 40

[outbox]
path = "out"

[trigger]
every_seconds = 0.1

[spark]
master = "{master}"

[spark.settings]
"spark.sql.streaming.minBatchesToRetain" = "100000"
{settings}
"""


def draw_filter(chance: random.Random) -> str:
    """The text of a filter on the notifications of a scene."""
    price, kind, place = (
        chance.randrange(0, 100, 10),
        chance.choice(KINDS),
        chance.choice(PLACES),
    )
    return chance.choice(
        (
            f"price > {price}",
            f"price > {price} AND kind = '{kind}'",
            f"kind = '{kind}' AND price BETWEEN {price} AND {price + 20}",
            f"place IN ('{place}', 'Rome') AND NOT (price < {price})",
            f"place LIKE '{place[0]}%' OR price = {price}",
            f"kind = '{kind}' AND length(place) > 4",
        )
    )


class Daily(threading.Thread, ABC):
    """Something that is done again and again; `stop` raises what went wrong with it."""

    def __init__(self, chance: random.Random, pause: float) -> None:
        super().__init__(daemon=True)
        self.chance, self.pause = chance, pause
        self._over = threading.Event()
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._over.is_set():
                self.once()
                self._over.wait(self.chance.uniform(0, 2 * self.pause))
        except BaseException as error:
            self._error = error

    @abstractmethod
    def once(self) -> None:
        """Do it."""

    def stop(self) -> None:
        self._over.set()
        self.join()
        if self._error is not None:
            raise self._error


class Feeder(Daily):
    """Puts files of notifications into the folder, some rows of which can't be read."""

    def __init__(self, folder: Path, chance: random.Random, behind: Callable[[int], bool]) -> None:
        super().__init__(chance, 0.4)
        self.folder = folder
        self.good: dict[str, list[dict[str, Any]]] = {}
        self.bad: dict[str, list[str]] = {}
        self._behind = behind  # whether the pipeline has fewer than so many rows to catch up
        self._count = 0

    @property
    def rows(self) -> int:
        good, bad = list(self.good.values()), list(self.bad.values())
        return sum(len(rows) for rows in good) + sum(len(rows) for rows in bad)

    def once(self) -> None:
        if not self._behind(400):
            return
        name = f"{len(self.good):06d}.json"
        good, bad, lines = list[dict[str, Any]](), list[str](), list[str]()
        for _ in range(self.chance.randrange(1, 60)):
            self._count += 1
            if self.chance.random() < 0.03:
                bad.append(self._bad())
                lines.append(bad[-1])
                continue
            good.append(self._notification())
            lines.append(json.dumps(good[-1]))
        self.good[name], self.bad[name] = good, bad  # before Spark can see it
        beside = self.folder / f".{name}"
        beside.write_text("\n".join(lines) + "\n")
        beside.rename(self.folder / "in" / name)

    def _notification(self) -> dict[str, Any]:
        return {
            "id": self._count,
            "price": self.chance.randrange(100),
            "kind": self.chance.choice(KINDS),
            "place": self.chance.choice(PLACES),
        }

    def _bad(self) -> str:
        return self.chance.choice(
            (
                f'{{"id": {self._count}, "price": "dear"}}',
                f'{{"id": {self._count}, "prise": 3}}',
                f'{{"id": {self._count}',
                f"[{self._count}]",
            )
        )


class Changer(Daily):
    """Changes subscriptions; remembers what was acknowledged, and when."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        super().__init__(chance, 0.6)
        self.log = ChangeLog(folder / "subscriptions", ATTRIBUTES)
        self.now: dict[str, str] = {}
        self.states: dict[int, dict[str, str]] = {0: {}}
        self.acknowledged: list[tuple[int, int]] = []  # version, nanoseconds since 1970
        for _ in range(20):
            self.put()

    def once(self) -> None:
        roll = self.chance.random()
        if roll < 0.3 and len(self.now) > 8:
            id_ = self.chance.choice(sorted(self.now))
            del self.now[id_]
            self._note(self.log.drop(id_))
        elif roll < 0.5:
            several = {
                self._id(): draw_filter(self.chance) for _ in range(self.chance.randrange(2, 6))
            }
            self.now |= several
            self._note(self.log.put_many(several))
        else:
            self.put()

    def put(self) -> None:
        id_, text = self._id(), draw_filter(self.chance)
        self.now[id_] = text
        self._note(self.log.put(id_, text))

    def _note(self, version: int) -> None:
        self.acknowledged.append((version, time.time_ns()))
        self.states[version] = dict(self.now)

    def _id(self) -> str:
        return f"s{self.chance.randrange(40)}"
