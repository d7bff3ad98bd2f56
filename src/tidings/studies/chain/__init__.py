"""The whole chain on this machine, checked and measured: `tidings bench chain`.

    rows ──> files or Kafka ──> Spark: driver, Java, workers ──> root ──> routers ──> agents
                                       ^ the agents' interests ──┘

    chain_bench.py    a run: its phases            chain_report.py   its result, as data
    chain_rows.py     the rows and the interests, drawn at random
    feeding.py        the sources, and the thread that feeds rows to them
    chain_stream.py   the pipeline as a process       chain_nodes.py  the root and the routers
    listener.py       a process with some of the agents          listener_processes.py   all of them
    killing.py        kills processes in turn, and starts them again
    judging.py        the oracle, and the verdict on what agents received
    chain_stages.py   rates and latencies             chain_tables.py   tables

Used by cli, whose demo also uses chain_nodes.py. Start at chain_bench.py.
"""

from tidings.studies.chain.chain_bench import bench_chain
from tidings.studies.chain.chain_nodes import ChainNodes
from tidings.studies.chain.chain_report import ChainReport
from tidings.studies.chain.chain_tables import chain_lines, chain_sections
from tidings.studies.chain.feeding import SOURCES

__all__ = [
    "SOURCES",
    "ChainNodes",
    "ChainReport",
    "bench_chain",
    "chain_lines",
    "chain_sections",
]
