"""Output: for people, tables on stdout and progress on stderr; for programs, JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from tidings.cli.common.command_errors import clean_text

Item = TypeVar("Item")

MOST_ROWS = 20  # rows of a table that are shown without --all
STEP = 256  # the number of items between two updates of the progress bar


def show(*parts: RenderableType, whole: bool = False) -> None:
    """Print tables or text for people, without automatic highlighting.

    Tables are fitted to the terminal. With `whole`, they are printed at full width: it is better if
    lines wrap than if numbers are cut.
    """
    console = Console(highlight=False, markup=False)
    for part in parts:
        wide = console
        if whole and isinstance(part, Table):
            needed = Measurement.get(console, console.options.update(max_width=1000), part).maximum
            if needed > console.width:
                wide = Console(highlight=False, markup=False, width=needed)
        wide.print(part)


def say(text: str) -> None:
    """Print a line without wrapping it, because a program may read it."""
    print(clean_text(text))


_encode = msgspec.json.Encoder(decimal_format="number").encode


def emit(record: Any) -> None:
    """Print one JSON line."""
    sys.stdout.buffer.write(_encode(record) + b"\n")


def plain_text(value: object, style: str = "") -> Text:
    """User data as literal text, without markup or escape sequences."""
    return Text(clean_text(str(value)), style, overflow="fold")


def table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """Build a table; columns whose names end in # hold numbers."""
    made = Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False)
    for name in columns:
        made.add_column(
            name.rstrip("#"),
            justify="right" if name.endswith("#") else "left",
            overflow="fold",
            no_wrap=name.endswith("#"),
        )
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else plain_text(cell) for cell in row))
    return made


def facts(rows: Iterable[tuple[str, object]]) -> Table:
    """Build a list of names and values."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(name, value if isinstance(value, Text) else plain_text(value))
    return made


def count_of(count: int, noun: str, nouns: str = "") -> str:
    """`1 event`, `12,000 events`."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def relative_path(path: str) -> str:
    """A path; relative to the current folder if the path lies below it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def show_rest(count: int, noun: str) -> None:
    """Print how many rows were left out, if any."""
    if count:
        show(plain_text(f"and {count_of(count, noun)} (--all shows them)", "dim"), "")


def _bar(*columns: Any) -> Any:
    """A progress bar on stderr: a description, the completed and the total number, and
    `columns`."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    first = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30)
    return Progress(
        *first, MofNCompleteColumn(), *columns, console=Console(stderr=True), transient=True,
        redirect_stdout=False,
    )  # fmt: skip


def track(items: Iterable[Item], label: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items, with a progress bar if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.progress import TimeElapsedColumn, TimeRemainingColumn

    with _bar(TimeElapsedColumn() if total is None else TimeRemainingColumn()) as bar:
        task = bar.add_task(label, total=total)
        for count, item in enumerate(items, 1):
            yield item
            if count % STEP == 0:
                bar.update(task, completed=count)


@contextmanager
def report_steps() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current step if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = [TimeElapsedColumn(), TextColumn("{task.description}", markup=False)]
    # The step is drawn only when it changes: a spinner's thread would disturb measurements.
    bar = Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False,
        auto_refresh=False,
    )  # fmt: skip
    with bar:
        task = bar.add_task("starting")
        yield lambda text: bar.update(task, description=text, refresh=True)


@contextmanager
def live_picture(picture: Callable[[], RenderableType]) -> Iterator[Callable[[Any], None]]:
    """Keep a picture on the screen up to date if stderr is a terminal, and erase it at the end.
    Yield a function that replaces the picture with another."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.live import Live

    shown = [picture]

    def take(other: Callable[[], RenderableType]) -> None:
        shown[0] = other

    def now() -> RenderableType:
        return shown[0]()

    screen = Live(
        get_renderable=now, console=Console(stderr=True), transient=True,
        refresh_per_second=4, redirect_stdout=False,
    )  # fmt: skip
    with screen:
        yield take


@contextmanager
def tasks_bar(label: str) -> Iterator[Callable[[int, int, int], None] | None]:
    """A progress bar of tasks that also counts rows; None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn

    rows = TextColumn("tasks, {task.fields[rows]:,} rows")
    with _bar(rows, TimeElapsedColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task(label, total=None, rows=0)
        yield lambda done, tasks, rows: bar.update(
            task, completed=done, total=tasks or None, rows=rows
        )


@contextmanager
def tasks_of_jobs(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar of tasks; yield a function that updates it. The number of tasks may grow."""
    from rich.progress import TextColumn, TimeElapsedColumn

    with _bar(TextColumn("tasks"), TimeElapsedColumn()) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, tasks: bar.update(task, completed=done, total=tasks)
