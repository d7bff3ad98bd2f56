"""The result of a run of the chain, as data."""

from __future__ import annotations

import msgspec

from tidings.studies.chain.chain_stages import Latencies, StageRates
from tidings.studies.host.machine_info import MachineInfo


class AddedInterests(msgspec.Struct, frozen=True):
    """Interests that agents added while rows arrived."""

    interests: int
    counted: int  # interests that match a row of the first batch that began after they were added
    in_next_batch: int  # how many of these interests received all their rows of that first batch


class ChainReport(msgspec.Struct, frozen=True):
    machine: MachineInfo
    source: str
    seed: int
    agents: int
    processes: int  # the number of processes that contain the agents
    routers: int
    interests: dict[str, int]  # by dialect
    rows: int
    batches: int
    published: int  # rows that were published at a router, in addition to those of the source
    preprocessed: int  # published rows that a preprocessor tagged
    seconds: float
    expected: int
    delivered: int
    lost: int
    doubled: int
    strays: int
    altered: int
    misnumbered: int
    breaks: int  # how many objects of the classes `Break` and `Lost` the agents received
    optional: int
    out_of_order: int
    kills: int
    killed: dict[str, int]
    deaths: int  # drivers that ended by themselves, and were started again
    added: AddedInterests
    latencies: Latencies
    rates: StageRates
    problems: list[str]

    @property
    def is_right(self) -> bool:
        wrong = self.lost + self.doubled + self.strays + self.altered + self.misnumbered
        return (
            wrong + self.breaks + self.out_of_order == 0
            and self.added.in_next_batch == self.added.counted
        )
