"""Describes the machine of a measurement, and its load."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa


class MachineInfo(msgspec.Struct, frozen=True):
    """A machine, and the versions of its software."""

    system: str
    processor: str
    """The name of the processor, if it is known."""
    processors: int
    python: str
    numpy: str
    pyarrow: str
    load: float | None
    """The load average of the last minute before the measurement."""


def describe_machine() -> MachineInfo:
    """Describe this machine and its current load."""
    try:
        load: float | None = os.getloadavg()[0]
    except (AttributeError, OSError):
        load = None
    return MachineInfo(
        system=f"{platform.system()} {platform.machine()}",
        processor=_processor(),
        processors=os.cpu_count() or 1,
        python=platform.python_version(),
        numpy=np.__version__,
        pyarrow=pa.__version__,
        load=load,
    )


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor()
