"""Simulates a power failure at one of the calls that make data durable."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Cut(BaseException):
    """The current is cut off: nothing that handles errors runs."""


CALLS: list[tuple[object, str]] = [
    (os, "fsync"),
    (os, "fdatasync"),
    (os, "pwrite"),
    (Path, "unlink"),
    (Path, "rename"),
    (Path, "replace"),
]


def cut_at(call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut the current off before one of the syncs, writes, removals and renames that follow."""
    count = itertools.count()

    def or_cut(real: Callable[..., Any], *, does: bool) -> Callable[..., Any]:
        def called(*args: Any, **more: Any) -> Any:
            if next(count) == call:
                raise Cut
            return real(*args, **more) if does else None

        return called

    for owner, name in CALLS:
        real = getattr(owner, name)
        monkeypatch.setattr(owner, name, or_cut(real, does="sync" not in name))
