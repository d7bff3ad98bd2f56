"""What a failed test left open is not blamed on a later test.

A test that fails half-way leaves sockets open and processes running, and its traceback keeps them
alive. They warn when they are collected, a warning is an error here, and it would count against
whichever test runs just then.
"""

from __future__ import annotations

import gc
import sys
import warnings

import pytest

_failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.add(report.nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    if nodeid in _failed:
        _failed.remove(nodeid)
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            setattr(sys, name, None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
