"""Draws a backtest: text charts for a terminal, and a PNG with matplotlib.

If there are more time buckets than columns, a column shows its busiest bucket, because a mean would
hide short peaks.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tidings.model import EnvironmentProblem, TidingsError
from tidings.spark.backtests.time_buckets import TimeBucket

Array = npt.NDArray[Any]

HEIGHT = 8  # the height of a chart, in lines
NARROW = 20  # a chart has at least this many columns
NOISIEST = 10  # at most this many filters get a row of their own in a picture
MOST_BARS = 2000  # a picture has at most this many bars
_BLOCKS = " ▁▂▃▄▅▆▇█"
_BLUE, _RED, _GREY = "#2f6f9f", "#c2452d", "#666666"


class Result(Protocol):
    """The part of Backtest's interface that the plots need. This module can't import Backtest,
    because backtest_result.py imports this module."""

    every: TimeBucket
    ids: list[Any]
    rows: int
    stretches: Array

    def __len__(self) -> int: ...

    def __getitem__(self, id_: Any) -> Any: ...

    def counts(self, id_: Any) -> Array: ...

    def fired_in_all(self) -> Array: ...

    def never_fired(self) -> list[Any]: ...

    def noisiest(self, most: int | None = None) -> list[Any]: ...

    def text(self, id_: Any) -> str: ...

    def total(self, id_: Any) -> int: ...


def columns(counts: Array, starts: Array, every: TimeBucket, width: int) -> tuple[Array, int]:
    """Return the maximum of each column, and the number of time buckets per column."""
    if not len(starts):
        return np.zeros(0, np.int64), 1
    numbers = every.numbers(starts.astype("datetime64[us]").astype(np.int64))
    at = numbers - numbers[0]
    per = -(-int(at[-1] + 1) // width)
    values = np.zeros(int(at[-1]) // per + 1, np.int64)
    np.maximum.at(values, at // per, counts)
    return values, per


def sparkline(counts: Array, starts: Array, every: TimeBucket, width: int) -> str:
    """Draw a one-line chart; a column in which a filter fired is never blank."""
    values, _ = columns(counts, starts, every, width)
    most = int(values.max(initial=0)) or 1
    return "".join(_BLOCKS[-(-int(value) * 8 // most)] for value in values)


def chart(counts: Array, starts: Array, every: TimeBucket, width: int) -> str:
    """A chart of several lines, with the scale on the left and times below."""
    if not len(starts):
        return "no row has a time, so there is nothing to plot"
    most = int(counts.max(initial=0))
    margin = len(f"{most:,}")
    values, per = columns(counts, starts, every, max(NARROW, width - margin - 2))
    eighths = -(-values * HEIGHT * 8 // (most or 1))
    lines = []
    for line in range(HEIGHT, 0, -1):
        filled = np.clip(eighths - (line - 1) * 8, 0, 8)
        scale = f"{most:,}" if line == HEIGHT else ""
        lines.append(f"{scale:>{margin}} ┤" + "".join(_BLOCKS[one] for one in filled.tolist()))
    lines.append(f"{0:>{margin}} └" + "─" * len(values))
    lines.append(" " * (margin + 2) + _ends(starts, every, len(values)))
    each = f"{per} × {every.name}" if per > 1 else every.name
    busiest = f"; it shows the busiest {every.name}" if per > 1 else ""
    lines.append(" " * (margin + 2) + f"one column: {each}{busiest}")
    return "\n".join(line.rstrip() for line in lines)


def _ends(starts: Array, every: TimeBucket, width: int) -> str:
    first, last = every.label(starts[0]), every.label(starts[-1])
    if first == last:
        return first
    gap = width - len(first) - len(last)
    return f"{first}{' ' * gap}{last}" if gap > 1 else f"{first} to {last}"


def load_matplotlib() -> Any:
    """Import matplotlib, which is an optional dependency."""
    try:
        for name in ("backends.backend_agg", "dates", "figure", "ticker"):
            import_module(f"matplotlib.{name}")
        return import_module("matplotlib")
    except ImportError as error:
        raise EnvironmentProblem(
            "pictures need matplotlib, which is not installed; run `pip install 'tidings[plot]'`"
        ) from error


def draw(result: Result, path: Path, title: str | None) -> None:
    """Draw a backtest into a PNG file."""
    matplotlib = load_matplotlib()
    several = len(result) > 1
    rows = result.noisiest(NOISIEST) if several else []
    figure = matplotlib.figure.Figure(
        figsize=(11, 4.2 + 0.46 * len(rows)), dpi=130, layout="constrained"
    )
    matplotlib.backends.backend_agg.FigureCanvasAgg(figure)
    ratios = [6.0, *[1.0] * len(rows)]
    axes = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    counts = result.fired_in_all() if several else result.counts(result.ids[0])
    _draw_bars(axes[0], result, counts, _BLUE)
    _finish_axes(axes[0], result, counts)
    shown = title or (f"{len(result):,} filters" if several else result.text(result.ids[0]))
    axes[0].set_title(_cut(shown, 100), loc="left", fontsize=13, fontweight="bold", pad=24)
    axes[0].annotate(
        _summary_line(result, counts, several), (0, 1), xytext=(0, 8), xycoords="axes fraction",
        textcoords="offset points", fontsize=9.5, color=_GREY,
    )  # fmt: skip
    for axis, id_ in zip(axes[1:], rows, strict=True):
        _draw_bars(axis, result, result.counts(id_), _RED)
        _draw_row(axis, result, id_)
    _format_dates(axes[-1])
    try:
        figure.savefig(path, format="png")
    except (ValueError, OverflowError) as problem:  # years that matplotlib can't draw
        raise TidingsError(f"the times of these rows can't be drawn: {problem}") from None


def _draw_bars(axis: Any, result: Result, counts: Array, colour: str) -> None:
    values, per = columns(counts, result.stretches, result.every, MOST_BARS)
    if not len(values):
        return
    numbers = result.every.numbers(result.stretches[:1].astype("datetime64[us]").astype(np.int64))
    edges = result.every.starts(numbers[0] + np.arange(len(values) + 1) * per)
    axis.stairs(values, edges, fill=True, color=colour, linewidth=0)
    axis.set_xlim(edges[0], edges[-1])
    axis.set_ylim(0, max(1, int(values.max(initial=0))) * 1.08)


def _finish_axes(axis: Any, result: Result, counts: Array) -> None:
    ticker = load_matplotlib().ticker
    axis.set_ylabel(f"fired per {result.every.name}")
    axis.yaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
    axis.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    if len(counts) and counts.any():
        at = int(counts.argmax())
        side = "left" if at < len(counts) * 0.1 else "right" if at > len(counts) * 0.9 else "center"
        axis.set_ylim(0, int(counts[at]) * 1.15)  # space for the label
        axis.annotate(
            f"{int(counts[at]):,} on {result.every.label(result.stretches[at])}",
            (result.stretches[at], int(counts[at])),
            xytext=(0, 3),
            textcoords="offset points",
            ha=side,
            va="bottom",
            fontsize=8.5,
            color=_GREY,
        )


def _draw_row(axis: Any, result: Result, id_: Any) -> None:
    """Draw the row of one filter. The row has its own scale, so its label gives the maximum."""
    about = result[id_]
    axis.set_yticks([])
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="x", length=0)
    name = str(id_) if str(id_) == about.filter else f"{id_}: {about.filter}"
    axis.text(
        0.0, 1.0, _cut(name, 100), transform=axis.transAxes, fontsize=7.5, va="bottom", ha="left",
        color="#333333",
    )  # fmt: skip
    axis.text(
        1.0, 1.0, f"{about.total:,}; at most {about.most:,} per time bucket",
        transform=axis.transAxes, fontsize=7.5, va="bottom", ha="right", color=_GREY,
    )  # fmt: skip


def _format_dates(axis: Any) -> None:
    dates = load_matplotlib().dates
    locator = dates.AutoDateLocator(minticks=4, maxticks=10)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axis.set_xlabel("UTC", loc="right", fontsize=8.5, color=_GREY)
    axis.tick_params(axis="x", length=3)


def _summary_line(result: Result, counts: Array, several: bool) -> str:
    """A one-line description of the picture."""
    total = sum(result.total(id_) for id_ in result.ids)
    mean = counts.sum() / len(counts) if len(counts) else 0.0
    silent = len(result.never_fired())
    parts = [
        f"fired {total:,} times on {result.rows:,} rows",
        f"{mean:,.1f} per {result.every.name}",
    ]
    _, per = columns(counts, result.stretches, result.every, MOST_BARS)
    if per > 1:
        parts.append(f"each bar shows the busiest of {per} time buckets")
    if several and silent:
        parts.append(f"{silent:,} never fired")
    if several:
        parts.append(f"below: the {min(NOISIEST, len(result) - silent)} noisiest")
    return "; ".join(parts)


def _cut(text: str, width: int) -> str:
    flat = " ".join(text.split()).replace("$", r"\$")  # matplotlib reads $...$ as a formula
    return flat if len(flat) <= width else flat[: width - 1] + "…"
