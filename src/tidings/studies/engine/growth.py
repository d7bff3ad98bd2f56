"""Computes how the time of matching grows with the number of filters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.studies.engine.match_report import GrowthExponent, MatchRun


def match_growth(runs: Sequence[MatchRun]) -> GrowthExponent:
    """The growth of times over runs that differ in the number of filters."""
    sizes = [run.filters for run in runs]
    counted = [run.counts.median for run in runs if run.counts is not None]
    return GrowthExponent(
        workload=runs[0].workload,
        threads=runs[0].threads,
        smallest=min(sizes),
        largest=max(sizes),
        pairs=exponent(sizes, [run.pairs.median for run in runs]),
        lists=exponent(sizes, [run.lists.median for run in runs]),
        counts=exponent(sizes, counted) if len(counted) == len(sizes) else None,
        one_dict=exponent(sizes, [run.one_dict.p50 for run in runs]),
    )


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope of the line fitted to the points on logarithmic axes."""
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(times, float))
    x = x - x.mean()
    return float((x * y).sum() / (x * x).sum())
