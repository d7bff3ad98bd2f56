"""Fixtures of the tests of running nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.processes import EDGE, ROOT, Process


@pytest.fixture(autouse=True)
def _forked(forked: None) -> None:
    """All nodes and commands of these tests are forked."""


@pytest.fixture
def routers(tmp_path: Path) -> Iterator[tuple[Process, Process]]:
    """A rendezvous point and a router below it, which end without an error."""
    root = Process(tmp_path, "root", ROOT)
    edge = Process(tmp_path, "edge", EDGE.format(port=root.port))
    yield root, edge
    assert edge.stop() == 0
    assert root.stop() == 0
