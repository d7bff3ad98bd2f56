"""Decides whether one revision is faster than another, or whether the difference is noise. The
decision is deterministic and needs no I/O.

Each round measures both revisions, one right after the other, and gives one ratio. If the machine
is busy for a minute, both revisions are affected, so ratios vary less than times. The confidence
interval of the median uses order statistics. The probability that the true median lies between the
k-th lowest and the k-th highest of n ratios is the probability that n tosses of a fair coin give at
least k heads and at least k tails. The interval assumes nothing about the distribution of times.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

import msgspec

from tidings.model import EnvironmentProblem

CONFIDENCE = 0.95  # the confidence to reach; with few rounds, it is lower
# the least number of ratios: four ratios are all on one side of 1 by chance in one case of eight
FEWEST = 5

Word = Literal["improvement", "regression", "noise", "too few"]


class Measure(msgspec.Struct, frozen=True):
    """A measured quantity, and whether more is better."""

    name: str
    unit: str
    more_is_better: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """The comparison of the second revision with the first, by one measure."""

    measure: Measure
    first: float
    """The median of the first revision."""
    second: float
    ratio: float
    """The median of the ratios `second / first`, over the pairs of adjacent measurements."""
    low: float
    high: float
    """`low` and `high` are the confidence interval of that median."""
    confidence: float
    rounds: int
    word: Word


def judge(
    measure: Measure, first: Sequence[float], second: Sequence[float], threshold: float
) -> Verdict:
    """Compare measurements that were made in pairs. A `threshold` of 0.03 means 3 percent.

    Swapping the revisions turns an improvement into a regression, because a ratio counts as a
    change if it is above 1 + threshold, or below 1 / (1 + threshold).
    """
    if not first or min(*first, *second) <= 0:
        raise EnvironmentProblem(f"there is no measurement of {measure.name} to compare")
    ratios = sorted(b / a for a, b in zip(first, second, strict=True))
    depth, confidence = order_interval(len(ratios))
    low, high = ratios[depth - 1], ratios[-depth]
    word: Word = "noise"
    if len(ratios) < FEWEST:
        word = "too few"
    elif low > 1 + threshold:
        word = "improvement" if measure.more_is_better else "regression"
    elif high < 1 / (1 + threshold):
        word = "regression" if measure.more_is_better else "improvement"
    return Verdict(
        measure=measure,
        first=statistics.median(first),
        second=statistics.median(second),
        ratio=statistics.median(ratios),
        low=low,
        high=high,
        confidence=confidence,
        rounds=len(ratios),
        word=word,
    )


def order_interval(count: int) -> tuple[int, float]:
    """Return k and the confidence of the interval from the k-th lowest to the k-th highest ratio.

    This is the narrowest interval that contains the median with CONFIDENCE. With too few ratios,
    the interval is the whole range.
    """
    depth, beyond = 1, 0.5**count
    while 2 * depth < count:
        wider = beyond + math.comb(count, depth) * 0.5**count
        if 1 - 2 * wider < CONFIDENCE:
            break
        depth, beyond = depth + 1, wider
    return depth, 1 - 2 * beyond
