"""`tidings up` with certificates and with several nodes above a router, as processes."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from tests.broker.certificates import Authority
from tests.broker.processes import write_secret
from tests.broker.test_channels_live import payloads

from tidings.broker.trees.running_tree import RunningTree
from tidings.broker.trees.tree_file import load_tree
from tidings.network import Refusal, client_context, connect, load_certificate, watch

TREE = """
channel = "fx"
[tls]
certificate = "ca-{name}.pem"
key = "ca-{name}.key"
authorities = "ca.pem"
[router.west]
[router.east]
[router.coast]
upstream = ["west", "east"]
[channels.tea]
[preprocessors.tagger]
[times]
beat = 0.2
resubscribe = 0.5
retry = 0.5
"""
NODES = ("root", "root-tea", "west", "east", "coast", "tagger")
DEADLINE = 120.0


async def _wait_above(running: RunningTree, name: str, above: str) -> None:
    """Wait until a router is linked to a node above, as the rendezvous point hears it."""
    address, who, token = running.watch_address()
    async with watch(
        address, name=who, token=token, authorities=running.authorities
    ) as reports:  # fmt: skip
        async for report in reports:
            for node in report.nodes:
                if node.name == name and node.age < 2000:
                    for link in node.links:
                        if (link.kind, link.name) == ("above", above):
                            return


def test_a_tree_with_certificates_and_failover(tmp_path: Path) -> None:
    """All links are encrypted; a router whose node above is killed uses the other one, in every
    channel. An agent needs a certificate, because there are no tokens."""
    authority = Authority(tmp_path, "ca")
    for name in NODES:
        authority.sign(name)
    agent_files = authority.sign("desk")
    tree = load_tree(write_secret(tmp_path / "t.toml", TREE))

    async def work() -> None:
        said: list[str] = []
        running = RunningTree(tree, said.append)
        try:
            await running.start()
            tls = client_context(tmp_path / "ca.pem")
            load_certificate(tls, agent_files.certificate, agent_files.key)
            place = running.branches["coast"].address()
            with pytest.raises(Refusal, match="a certificate was refused"):
                async with connect(
                    f"tidings+tls://{place}/fx", authorities=tmp_path / "ca.pem", timeout=30
                ):
                    pass
            async with connect(
                f"tidings+tls://{place}/fx", name="desk", tls=tls, timeout=60
            ) as agent:
                tea = agent.channel("tea")
                async with agent.subscribe("x > 0") as a, tea.subscribe("x > 0") as b:
                    await _wait_above(running, "coast", "west")
                    for n in range(4):
                        await agent.publish({"x": 1}, b"fx %d" % n, timeout=DEADLINE)
                        await tea.publish({"x": 1}, b"tea %d" % n, timeout=DEADLINE)
                        assert await payloads(a, 1) == [b"fx %d" % n]
                        assert await payloads(b, 1) == [b"tea %d" % n]
                        if n == 1:
                            process = running.branches["west"].process
                            assert process is not None
                            process.send_signal(signal.SIGKILL)
                            async with asyncio.timeout(DEADLINE):
                                await _wait_above(running, "coast", "east")
            assert any("west ended (signal SIGKILL)" in one for one in said)
        finally:
            await running.stop()

    asyncio.run(work())
    logs = "".join(path.read_text() for path in tree.folder.glob("*.log"))
    assert "Traceback" not in logs
