"""Bars: figures, each with a target that was set before the measurement.

A benchmark lists its bars in its JSON, and shows them in a table at the end.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Bar(msgspec.Struct, frozen=True):
    """One figure and its target."""

    name: str
    asked: str
    """The target in words; empty if the figure has no target, and is only reported."""
    measured: float | bool | None
    """The figure; None if this run did not measure it."""
    met: bool | None
    """Whether the target is met; None if there is no target, or if this run can't tell."""
    note: str = ""
    """What a reader must know to understand the figure."""


def at_least(name: str, limit: float, measured: float | None, unit: str = "", **more: str) -> Bar:
    """A bar for a figure that should not be below a limit."""
    met = None if measured is None else measured >= limit
    return Bar(name, f"at least {limit:,}{unit}", measured, met, **more)


def at_most(name: str, limit: float, measured: float | None, unit: str = "", **more: str) -> Bar:
    """A bar for a figure that should not be above a limit."""
    met = None if measured is None else measured <= limit
    return Bar(name, f"at most {limit:,}{unit}", measured, met, **more)


def none_of(name: str, measured: float | None, **more: str) -> Bar:
    """A bar for a count that should be 0."""
    return Bar(name, "none", measured, None if measured is None else measured == 0, **more)


def is_true(name: str, measured: bool, **more: str) -> Bar:
    """A bar for a property that should hold."""
    return Bar(name, "yes", measured, measured, **more)


def without_target(name: str, measured: float | None, **more: str) -> Bar:
    """A figure without a target."""
    return Bar(name, "", measured, None, **more)


def notes_of(bars: Iterable[Bar]) -> list[str]:
    """The notes as lines, each with the name of its bar."""
    return [f"{one.name}: {one.note}" for one in bars if one.note]
