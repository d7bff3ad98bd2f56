"""What tests of pipelines share."""

from __future__ import annotations

import pytest
from tests.spark.channels import ToldChannel


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> ToldChannel:
    """The channel that owners of this test speak to."""
    told = ToldChannel()
    monkeypatch.setattr("tidings.spark.channel.owner.ChannelLink", lambda *_, **__: told)
    monkeypatch.setattr("tidings.spark.channel.owner.PAUSE", 0.01)
    return told
