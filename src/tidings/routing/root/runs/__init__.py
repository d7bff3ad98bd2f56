"""Publications that wait, many at a time: runs of one publisher.

    many Publish frames ──run──> Run ──run_intake──> tag, number ──> Block ──> journal
                                          └──publishing──> what needs a closer look, one by one

    run.py           finds runs of publications in a buffer of frames
    run_kernels.py   reads their frames and copies payloads, compiled
    run_intake.py    accepts runs, with the results that single publications would have

Used inside `routing`, by the rendezvous point, and by broker for its queues. Start at
run_intake.py.
"""

from tidings.routing.root.runs.run import MOST_ROWS, Run, find_runs, join_runs
from tidings.routing.root.runs.run_intake import RunIntake

__all__ = ["MOST_ROWS", "Run", "RunIntake", "find_runs", "join_runs"]
