"""Fixtures of the engine's tests."""

from __future__ import annotations

import pytest

from tidings.matching import Matcher


@pytest.fixture(params=["auto", "bdd"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The default engine of all matchers in a test: the test runs once with each. With "bdd", all
    filters are evaluated as decision diagrams."""
    return _make_default(str(request.param), monkeypatch)


@pytest.fixture(params=["auto", pytest.param("bdd", marks=pytest.mark.slow)])
def costly_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same for tests that take seconds: diagrams are left to `make soak`."""
    return _make_default(str(request.param), monkeypatch)


@pytest.fixture
def diagrams(monkeypatch: pytest.MonkeyPatch) -> str:
    """All matchers in a test evaluate all filters as decision diagrams."""
    return _make_default("bdd", monkeypatch)


def _make_default(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for function in (Matcher.__init__, Matcher.open.__func__, Matcher.from_segment.__func__):  # type: ignore[attr-defined]
        defaults = function.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "engine", name)
    return name
