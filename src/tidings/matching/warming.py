"""Load kernels before they are needed.

Matching the first single event on a machine compiles the kernels, which takes six seconds; later
processes load them from the cache. Code that must not block, such as an event loop, needs them to
be loaded beforehand.
"""

from __future__ import annotations

from functools import cache

from tidings.filters import parse
from tidings.matching.matcher import Matcher
from tidings.model import pause_gc

MANY = 500  # with this many filters, a matcher builds an index of pairs of tests
FILTERS = ("n > 2.5 AND s = 'a'", "s > 'b' OR n < 0", "array_contains(l, 'x')", "n IN (3)")
WIDE = " AND ".join(f"(v{number} = 1 OR w{number} = 1)" for number in range(8))  # a diagram
EVENT = {"n": 3, "m": 5, "s": "a", "l": ["x"]}


@cache
def load_kernels() -> None:
    """Compile or load the kernels that single events need, once per process."""
    pairs = (f"n > {number % 25} AND m < {number // 25}" for number in range(MANY))
    with pause_gc():  # for each kernel, Numba creates many objects that are kept
        matcher = Matcher()
        matcher.add_many((text, parse(text)) for text in (*FILTERS, WIDE, *pairs))
        matcher.merge()
        matcher.match(EVENT)
