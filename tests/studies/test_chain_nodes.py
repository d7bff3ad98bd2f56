"""The nodes of the chain as processes: they listen, come back at their ports, and end with whoever
started them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import eventually

from tidings.studies.chain import ChainNodes
from tidings.studies.host.ports import is_listening

pytestmark = pytest.mark.usefixtures("forked")

SCRIPT = """
import sys, time
from pathlib import Path
from tidings.studies.chain import ChainNodes
nodes = ChainNodes(Path(sys.argv[1]), {"a": "integer"}, {"edge": "root"})
nodes.start()
print(*(one.rpartition(":")[2] for one in nodes.addresses.values()), flush=True)
time.sleep(600)
"""


def test_nodes_end_when_their_starter_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        ports = [int(one) for one in starter.stdout.readline().split()]
        assert len(ports) == 2
        eventually(lambda: all(map(is_listening, ports)))
        starter.kill()
    eventually(lambda: not any(map(is_listening, ports)))


def test_a_killed_node_comes_back_at_its_port(tmp_path: Path) -> None:
    nodes = ChainNodes(tmp_path, {"a": "integer"}, {"edge": "root"})
    port = int(nodes.addresses["edge"].rpartition(":")[2])
    try:
        nodes.start()
        eventually(lambda: is_listening(port))
        nodes.kill("edge")
        assert not is_listening(port)
        nodes.check()
        nodes.start("edge")
        eventually(lambda: is_listening(port))
    finally:
        nodes.end()
    assert not nodes.running
