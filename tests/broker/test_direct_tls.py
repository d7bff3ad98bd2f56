"""Links that bypass the tree, with TLS: an agent checks the certificate of the rendezvous point for
the address that it was offered, and otherwise stays at its router."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.broker.certificates import Authority
from tests.broker.networks import payloads, running
from tests.broker.test_trust import World, world_in
from tests.waiting import until

from tidings.broker.admission.listen import Direct
from tidings.broker.config import Tls
from tidings.network import connect
from tidings.network.agents import direct_link
from tidings.network.agents.agent_link import AgentLink
from tidings.studies.host.ports import free_ports


class Watched(AgentLink):
    """Notes how each second link came to an end, or that it was made."""

    said: list[str]

    async def start(self, timeout: float | None) -> None:  # noqa: ASYNC109
        try:
            await super().start(timeout)
        except BaseException as problem:
            self.said.append(str(problem))
            raise
        self.said.append("made")


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(direct_link, "SETTLED", 0.1)
    monkeypatch.setattr(direct_link, "PAUSES", (0.2, 0.5))
    found: list[str] = []
    monkeypatch.setattr(Watched, "said", found, raising=False)
    monkeypatch.setattr(direct_link, "AgentLink", Watched)
    return found


async def tell_one(world: World, port: int, address: str, said: list[str], due: str) -> str:
    """An agent at a router subscribes, with such an address offered; its second link."""
    files = world.ours.sign("by address", hosts=(), addresses=("127.0.0.1",))
    tls = Tls(str(files.certificate), str(files.key), str(world.ours.path))
    await world.start("root", listen=f"127.0.0.1:{port}", tls=tls, direct=Direct(4, address))
    edge = await world.start("edge", upstream=f"127.0.0.1:{port}", tokens={"of anybody": "*"})
    async with (
        connect(
            f"tidings+tls://127.0.0.1:{edge.port}", token="of anybody", tls=world.client()
        ) as agent,
        agent.subscribe("n > 0") as told,
    ):
        await until(lambda: any(due in one for one in said))
        await until(lambda: bool(agent.state.direct) is (due == "made"))
        await agent.publish({"n": 1}, b"1")
        assert await payloads(told, 1) == [b"1"]
        return agent.state.direct


def test_a_certificate_with_the_right_name(tmp_path: Path, said: list[str]) -> None:
    async def work() -> None:
        (port,) = free_ports(1)
        async with world_in(tmp_path) as world:
            found = await tell_one(world, port, f"127.0.0.1:{port}", said, "made")
            assert found == f"127.0.0.1:{port}"

    running(work)


def test_a_certificate_with_another_name(tmp_path: Path, said: list[str]) -> None:
    """The certificate is for 127.0.0.1, and `localhost` is offered."""

    async def work() -> None:
        (port,) = free_ports(1)
        async with world_in(tmp_path) as world:
            assert not await tell_one(world, port, f"localhost:{port}", said, "localhost")
            assert "made" not in said

    running(work)


def test_a_certificate_of_another_authority(tmp_path: Path, said: list[str]) -> None:
    """Somebody else listens at the address that is offered."""

    async def work() -> None:
        port, other = free_ports(2)
        async with world_in(tmp_path) as world:
            theirs = Authority(tmp_path, "strangers")
            files = theirs.sign("root")
            tls = Tls(str(files.certificate), str(files.key), str(world.ours.path))
            stranger = await world.start("stranger", listen=f"127.0.0.1:{other}", tls=tls)
            assert not await tell_one(world, port, f"127.0.0.1:{other}", said, "127.0.0.1")
            assert "made" not in said
            assert not stranger.machine.neighbours

    running(work)
