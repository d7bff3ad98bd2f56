"""Tokens that limit what their holders may subscribe to, over real connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker.networks import FAST, at, payloads, running, started, stopped

from tidings.broker import Address, Door, RouterNode
from tidings.broker.admission.permissions import TokenRights, Tokens
from tidings.network.agent import Refusal, Subscription, connect
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.protocol.lineage import Break

TOKENS: Tokens = {
    "eu": TokenRights("berlin", within="region = 'EU'"),
    "all": "boss",
    "writes": "writer",
    "edges": TokenRights("r0", frozenset({"route"})),
}


async def _read_breaks(told: Subscription) -> None:
    async for one in told:
        assert isinstance(one, Break | Interrupted | Resumed)


@pytest.mark.parametrize("routers", [0, 1])
def test_only_what_a_limit_covers(tmp_path: Path, routers: int) -> None:
    async def work() -> None:
        network = await started(tmp_path, 0, tokens=TOKENS)
        root, chain = network
        for name in ("r0",)[:routers]:
            above, door = Address("127.0.0.1", root.port), Door(tokens=TOKENS)
            chain.append(RouterNode(name, above, door, times=FAST, token="edges"))
            await chain[0].start()
        last = chain[-1] if chain else root
        async with (
            connect(at(last), name="berlin", token="eu", times=FAST) as berlin,
            connect(at(last), name="boss", token="all", times=FAST) as boss,
            connect(at(last), name="writer", token="writes", times=FAST) as writer,
            boss.subscribe("price > 0") as everything,
        ):
            with pytest.raises(Refusal, match=r"write: \(price > 5\) AND \(region = 'EU'\)"):
                async with berlin.subscribe("price > 5"):
                    pass
            async with boss.subscribe("price > 77 AND region = 'EU'") as seen:
                for node in (everything.node, 999):
                    with pytest.raises(
                        Refusal, match="expected a node of this channel whose"
                    ) as no:
                        async with berlin.subscribe(node=node):
                            pass
                    assert "price" not in str(no.value)  # a refusal shows nobody else's filter
                async with berlin.subscribe(node=seen.node):
                    pass
            async with berlin.subscribe("(price > 5) AND (region = 'EU')") as told:
                for price, region in ((7, "US"), (8, "EU"), (1, "EU"), (9, "EU")):
                    await writer.publish({"price": price, "region": region}, b"%d" % price)
                assert await payloads(told, 2) == [b"8", b"9"]
                assert await payloads(everything, 4) == [b"7", b"8", b"1", b"9"]
        await stopped(network)

    running(work)


def test_rights_change_while_a_node_runs(tmp_path: Path) -> None:
    """A narrower limit ends the link; the filter is then refused, with the text to write."""

    async def work() -> None:
        network = await started(tmp_path, 0, tokens=TOKENS)
        root, _ = network
        async with (
            connect(at(root), name="berlin", token="eu", times=FAST) as berlin,
            berlin.subscribe("region = 'EU'") as told,
        ):
            narrower = {
                **TOKENS,
                "eu": TokenRights("berlin", within="region = 'EU' AND city = 'B'"),
            }
            assert root.renew(narrower) == 1
            with pytest.raises(Refusal, match="AND city = 'B'"):
                await asyncio.wait_for(_read_breaks(told), 20)
        await stopped(network)

    running(work)
