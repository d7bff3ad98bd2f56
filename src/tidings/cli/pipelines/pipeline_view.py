"""Shows a running pipeline: a table that is redrawn, or a line for each batch."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from tidings.cli.common.screen import count_of, emit, facts, plain_text, say, table

if TYPE_CHECKING:
    from tidings.spark.outbox import Commit

SHOWN = 8  # batches in the table
NODES = 5  # counters below it
ALL = 0  # the key of the counter of all notifications; see numbering.py
EACH_SECOND = 4  # redraws per second
# input may exceed processing by this ratio before the pipeline counts as falling behind
SLACK = 1.1

COLUMNS = ["batch#", "version#", "rows#", "rows/s#", "matched#", "told#", "refused#", "seconds#"]


class PipelineView:
    """Shows batches and rates. The stream's thread reports batches; another thread draws."""

    def __init__(self, name: str, json: bool = False) -> None:
        self.name = name
        self.state = "starting"
        self.progress: Mapping[str, Any] = {}
        """The latest progress of the query, as Spark reports it."""
        self._json = json
        self._live = not json and sys.stdout.isatty()
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._batches: deque[tuple[Commit, float]] = deque(maxlen=SHOWN)
        self._counters: dict[int, int] = {}
        self._highest: list[tuple[int, int]] = []  # (counter, node), highest counters first
        self.batches = self.rows = self.matched = self.told = self.refused = 0

    @contextmanager
    def live(self) -> Iterator[None]:
        """Redraw the table regularly while the block runs, if stdout is a terminal."""
        if not self._live:
            yield
            return
        from rich.live import Live

        console = Console(highlight=False, markup=False)
        with Live(console=console, get_renderable=self.draw, refresh_per_second=EACH_SECOND):
            yield

    def add_batch(self, done: Commit, seconds: float) -> None:
        """Add a finished batch to the totals, and print its line."""
        with self._lock:
            self._batches.append((done, seconds))
            self._counters.update(done.counters)
            # Counters only grow, so a counter that did not change can't have overtaken another.
            # Comparing all counters would take longer than the time between two redraws.
            nodes = {node for _, node in self._highest} | done.counters.keys() - {ALL}
            self._highest = nlargest(NODES, ((self._counters[node], node) for node in nodes))
            self.batches += 1
            self.rows += done.rows
            self.matched += done.matched
            self.told += done.told
            self.refused += done.refused
        if self._json:
            emit({**_record(done), "seconds": round(seconds, 3)})
        elif not self._live:
            say(_line(done, seconds))
        sys.stdout.flush()

    def end(self, how: str) -> None:
        """Print a summary as the last line."""
        if not self._json:
            say(f"{how}: {self.summary()}")

    def summary(self) -> str:
        return (
            f"{count_of(self.batches, 'batch', 'batches')}, {count_of(self.rows, 'row')}, "
            f"{self.matched:,} matched, {self.told:,} told, {self.refused:,} refused"
        )

    def draw(self) -> RenderableType:
        """Draw the current state."""
        with self._lock:
            batches, counters = list(self._batches), self._counters_line()
        spent = time.strftime("%H:%M:%S", time.gmtime(time.monotonic() - self._began))
        title = plain_text(self.name, "bold").append(f"  {spent}  {self.state}", "not bold dim")
        parts: list[RenderableType] = [title]
        if batches:
            parts += [Text(), table(COLUMNS, [_row(*one) for one in batches]), Text()]
            rows: list[tuple[str, object]] = [("so far", self.summary()), ("lag", self._lag())]
            parts.append(facts([*rows, ("counters", counters)] if counters else rows))
        return Group(*parts)

    def _counters_line(self) -> str:
        """The highest counters, if there are any."""
        if not self._highest:
            return ""
        told = ", ".join(f"node {node} at {number:,}" for number, node in self._highest)
        others = len(self._counters) - (ALL in self._counters) - len(self._highest)
        more = f" and {others:,} more" if others else ""
        return f"notifications at {self._counters.get(ALL, 0):,}; {told}{more}"

    def _lag(self) -> Text:
        coming = _rate(self.progress, "inputRowsPerSecond")
        done = _rate(self.progress, "processedRowsPerSecond")
        if coming is None or done is None:
            return plain_text("not known yet", "dim")
        text = f"{_speed(coming)} rows/s come in, {_speed(done)} are processed"
        behind = _behind(self.progress)
        if behind is not None:
            text += f"; {count_of(behind, 'row')} behind the source"
        if coming > done * SLACK:
            return plain_text(f"{text}: falling behind", "yellow")
        return plain_text(text)


def _record(done: Commit) -> dict[str, Any]:
    names = (
        "batch", "version", "rows", "matched", "told", "refused", "extra_rows", "extra_fields",
        "counters",
    )  # fmt: skip
    return {name: getattr(done, name) for name in names}


def _row(done: Commit, seconds: float) -> list[str]:
    results = (f"{count:,}" for count in (done.matched, done.told, done.refused))
    return [
        f"{done.batch}", f"{done.version}", f"{done.rows:,}", _speed(done.rows / seconds), *results,
        f"{seconds:.2f}",
    ]  # fmt: skip


def _line(done: Commit, seconds: float) -> str:
    return (
        f"batch {done.batch}: version {done.version}, {count_of(done.rows, 'row')} in "
        f"{seconds:.2f} s ({_speed(done.rows / seconds)} rows/s), {done.matched:,} matched, "
        f"{done.told:,} told, {done.refused:,} refused"
    )


def _speed(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 or not rate else f"{rate:.1f}"


def _rate(progress: Mapping[str, Any], name: str) -> float | None:
    found = progress.get(name)
    return float(found) if isinstance(found, int | float) and math.isfinite(found) else None


def _behind(progress: Mapping[str, Any]) -> int | None:
    """The number of unread rows, if the source reports it, as Kafka does."""
    try:
        found = [one["metrics"]["maxOffsetsBehindLatest"] for one in progress["sources"]]
        return sum(int(one) for one in found)
    except (KeyError, TypeError, ValueError):
        return None
