"""What tests of pipelines share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.kills.tree import ROOT
from tests.spark.chain import Chain
from tests.spark.channels import ToldChannel

MakeChain = Callable[..., Chain]


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> ToldChannel:
    """The channel that owners of this test speak to."""
    told = ToldChannel()
    monkeypatch.setattr("tidings.spark.channel.owner.ChannelLink", lambda *_, **__: told)
    monkeypatch.setattr("tidings.spark.channel.owner.PAUSE", 0.01)
    return told


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[MakeChain]:
    """Makes chains of a pipeline, a rendezvous point and one router, which end with the test."""
    made: list[Chain] = []

    def make(**more: Any) -> Chain:
        made.append(Chain(tmp_path, above={"e0": ROOT}, **more))
        return made[-1]

    yield make
    for one in made:
        one.end()
