""""""

from tidings.studies.host.processes import Peaks, processor_seconds, watched

__all__ = [
    "Peaks",
    "processor_seconds",
    "watched",
]
