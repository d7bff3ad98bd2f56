"""What tests of measurements share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _short_collections(short_collections: None) -> None:
    """Most of these tests run benchmarks."""
