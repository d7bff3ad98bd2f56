"""Backtests: how often filters would have fired on a table of past rows, when, and on which rows.

    columns that filters test, time ──Arrow──> workers: match and count ──counts per task──> driver
                                               fire_counts.py, time_buckets.py   adds the parts up

    backtesting.py       the function `backtest`, and the code in the driver
    backtest_worker.py   the code in the workers
    fire_counts.py       counts by filter and time bucket
    time_buckets.py      minutes, hours, days, weeks, months, in UTC
    backtest_result.py, backtest_plots.py    the result as tables and pictures

A backtest has one stage and no shuffle. Users get `backtest` from `tidings.spark`
(docs/backtests.md); the names exported here are for cli. Start at backtesting.py.
"""

from tidings.spark.backtests.backtest_plots import load_matplotlib
from tidings.spark.backtests.backtest_result import Backtest
from tidings.spark.backtests.backtest_worker import peak_memory
from tidings.spark.backtests.backtesting import backtest
from tidings.spark.backtests.time_buckets import TimeBucket

__all__ = [
    "Backtest",
    "TimeBucket",
    "backtest",
    "load_matplotlib",
    "peak_memory",
]
