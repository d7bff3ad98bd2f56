"""Fixtures of the tests of the store."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is cut off from the current, and syncing takes most of the time."""
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda handle: None)
