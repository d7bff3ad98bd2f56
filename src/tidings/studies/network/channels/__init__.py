"""Measures many channels without traffic: `tidings bench route --only channels`.

    rendezvous points ── upper router ── lower router ── subscribers      2 routers, as processes
    (in this process)                                    (in this process)

    idle_channels.py   the measurement
    idle_ends.py       both ends: rendezvous points and subscribers that only keep channels open

Used only by route_bench.py. Start at idle_channels.py.
"""

from tidings.studies.network.channels.idle_channels import CHANNELS, IdleRun, measure_channels

__all__ = ["CHANNELS", "IdleRun", "measure_channels"]
