""""""

from tidings.studies.host.processes import Peaks, processor_seconds, watch_peaks

__all__ = [
    "Peaks",
    "processor_seconds",
    "watch_peaks",
]
