"""The exponent of growth."""

from __future__ import annotations

import numpy as np
import pytest

from tidings.studies.engine.growth import exponent


def test_exponent() -> None:
    sizes = [10, 100, 1000]
    assert exponent(sizes, [3.0, 3.0, 3.0]) == pytest.approx(0)
    assert exponent(sizes, [2 * np.sqrt(size) for size in sizes]) == pytest.approx(0.5)
    assert exponent(sizes, [0.1 * size for size in sizes]) == pytest.approx(1)
