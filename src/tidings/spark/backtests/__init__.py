""""""

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
