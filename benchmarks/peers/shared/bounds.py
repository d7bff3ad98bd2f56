"""Filters as rows of bounds, two columns per attribute, for systems that join tables.

A filter without a test on an attribute has the widest bounds there. An event without a value is
below every lower bound and above every upper one but the widest, so it has two columns as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

TOP = "\U0010ffff"
WIDEST: dict[str, tuple[Any, Any]] = {"text": ("", TOP), "number": (-math.inf, math.inf)}


class Bounds:
    """The columns that the tests of some filters need."""

    def __init__(self, filters: Sequence[dict[str, Any]]) -> None:
        self.kinds: dict[str, str] = {}
        for filter_ in filters:
            for test in filter_["tests"]:
                kind = "text" if isinstance(test.get("value"), str) else "number"
                self.kinds[test["attribute"]] = kind

    def columns(self) -> dict[str, str]:
        """Names of the columns of either table, with `text` or `number`."""
        return {
            f"{name}_{side}": kind for name, kind in self.kinds.items() for side in ("low", "high")
        }

    def filter_rows(self, filters: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
        """The table of filters."""
        table: dict[str, list[Any]] = {"id": [filter_["id"] for filter_ in filters]}
        bounds = [{test["attribute"]: _range(test) for test in one["tests"]} for one in filters]
        for name, kind in self.kinds.items():
            low, high = WIDEST[kind]
            found = [one.get(name, (low, high)) for one in bounds]
            table[f"{name}_low"] = [low for low, _ in found]
            table[f"{name}_high"] = [high for _, high in found]
        return table

    def event_rows(self, lines: Sequence[bytes]) -> dict[str, list[Any]]:
        """The table of events, from their JSON text."""
        events = [json.loads(line) for line in lines]
        table: dict[str, list[Any]] = {"event": list(range(len(events)))}
        for name, kind in self.kinds.items():
            low, high = WIDEST[kind]
            table[f"{name}_low"] = [_or(event.get(name), low) for event in events]
            table[f"{name}_high"] = [_or(event.get(name), high) for event in events]
        return table


def _or(value: Any, other: Any) -> Any:
    if value is None:
        return other
    return value if isinstance(value, str) else float(value)


def _range(test: dict[str, Any]) -> tuple[Any, Any]:
    if test["op"] == "prefix":
        return test["value"], test["value"] + TOP
    if "value" in test:
        value = _or(test["value"], None)
        return value, value
    return float(test.get("low", -math.inf)), float(test.get("high", math.inf))
