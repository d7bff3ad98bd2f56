"""The machine that measures: what it is, how busy it was, and the processes under measurement.

    machine_info.py     where something was measured, and how busy it was there
    processes.py   memory and processor time of a process and all that it started (Linux: /proc)
    driver.py      a program that measures when it is asked to: a line to it, a line of JSON from it

It knows nothing of what is measured. For the rest of studies and for cli. Start at processes.py.
"""

from tidings.studies.host.processes import Peaks, processor_seconds, watch_peaks

__all__ = [
    "Peaks",
    "processor_seconds",
    "watch_peaks",
]
