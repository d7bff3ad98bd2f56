"""Runs: many waiting publications of one publisher that are handled together.

    many Publish frames ──run──> Run ──run_intake──> tag, number ──> Block ──> journal
                                          └──publishing──> special cases, one by one

    run.py           finds runs of publications in a buffer of frames
    run_kernels.py   reads their frames and writes their bodies, compiled
    frame_columns.py what the kernels find in a frame
    run_intake.py    accepts runs, with the results that single publications would have

The rendezvous point uses this folder, and broker uses it for its queues. Start at run_intake.py.
"""

from tidings.routing.root.runs.run import MOST_ROWS, Run, find_runs, join_runs
from tidings.routing.root.runs.run_intake import RunIntake

__all__ = ["MOST_ROWS", "Run", "RunIntake", "find_runs", "join_runs"]
