"""Random tests that are run several times, each time with other values.

`make test` runs the first few, and draws other values each time it is run; `make soak` runs the
rest.
"""

from __future__ import annotations

from typing import Any

import pytest


def runs(few: int, many: int) -> list[Any]:
    """The numbers of the runs, for `parametrize`: those after the first `few` are slow."""
    slow = [pytest.param(number, marks=pytest.mark.slow) for number in range(few, many)]
    return [*range(few), *slow]
