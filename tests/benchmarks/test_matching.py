"""Figures of the engine, run by `make bench`."""

from __future__ import annotations

import pytest
from rich.console import Console

from tidings.studies import RECIPES, bench_matching, growth_table, match_table


@pytest.mark.bench
@pytest.mark.timeout(1800)
def test_matching(capsys: pytest.CaptureFixture[str]) -> None:
    report = bench_matching(sorted(RECIPES), [1_000, 10_000])
    assert len(report.runs) == 2 * len(RECIPES)
    with capsys.disabled():
        console = Console(width=160)
        console.print()
        console.print(match_table(report))
        console.print(growth_table(report))
