"""The machine of a measurement, its load, and the processes that are measured.

    machine_info.py   describes the machine and its load
    process_usage.py  memory and processor time of a process and its descendants (Linux: /proc)
    driver.py         runs a program that measures on request: reads a line, answers with JSON
    sessions.py       programs that are killed and restarted, with all processes that they start
    ports.py          free ports        kafka_broker.py   a Kafka broker from Maven Central

This folder does not depend on what is measured. Used by the rest of studies, cli and tests. Start
at process_usage.py.
"""

from tidings.studies.host.process_usage import Peaks, processor_seconds, watch_peaks

__all__ = [
    "Peaks",
    "processor_seconds",
    "watch_peaks",
]
