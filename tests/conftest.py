"""What all tests share: Hypothesis profiles, a seed that can be replayed, one Spark session, and
how tests are dealt out to processes."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from tests.class_archive import PLAIN, java_options, make_archive
from tests.forking import Forked
from tests.kernels import load_all_kernels
from tests.leftovers import (  # noqa: F401  hooks, which pytest finds here
    pytest_runtest_logfinish,
    pytest_runtest_logreport,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `ci` is what `make test` runs; `soak` (`make soak`) looks much longer.
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True)
hypothesis.settings.register_profile(
    "soak", parent=hypothesis.settings.get_profile("ci"), max_examples=5_000
)
hypothesis.settings.load_profile(os.environ.get("TIDINGS_PROFILE", "ci"))

HERE = Path(__file__).parent

# One seed for the whole run, so that one number replays it.
SEED = int(os.environ.get("TIDINGS_SEED") or random.SystemRandom().randrange(2**32))
os.environ["TIDINGS_SEED"] = str(SEED)  # the workers of pytest-xdist draw the same

os.environ.setdefault("SPARK_SUBMIT_OPTS", java_options())

gc.disable()  # until the tests are collected: all that is made before then stays


def pytest_report_header() -> list[str]:
    profile = os.environ.get("TIDINGS_PROFILE", "ci")
    return [f"tidings: TIDINGS_SEED={SEED} TIDINGS_PROFILE={profile}"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Make once what each process of `make test` would make by itself, before they start: kernels,
    and in a new clone the archive of Java's classes and the bytecode of the tests. A router that is
    told to end while it compiles kernels would be killed, because that can't be interrupted."""
    gc.enable()  # this process collects no tests
    with make_archive(), compile_tests():
        load_all_kernels()
    if os.environ["SPARK_SUBMIT_OPTS"] == PLAIN:
        os.environ["SPARK_SUBMIT_OPTS"] = java_options()


@contextmanager
def compile_tests() -> Iterator[None]:
    """Have pytest rewrite and compile the tests of a new clone, in a process beside what the caller
    does meanwhile: it keeps them, and reads them in half the time."""
    if sys.dont_write_bytecode or any(HERE.glob("filters/__pycache__/test_*-pytest-*.pyc")):
        yield
        return
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", str(HERE)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        yield  # and then wait


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end. Without this, each full garbage collection would visit
    them all: 0.2 seconds, and benchmarks collect before each measurement."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "seed" in getattr(item, "fixturenames", ()):
            item.add_marker("random")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.dealing import Dealing

    return Dealing(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and "seed" in getattr(item, "fixturenames", ()):
        report.sections.append(("seed", f"replay with: TIDINGS_SEED={SEED}"))
    return report


@pytest.fixture
def seed() -> int:
    """A seed for `random.Random`: TIDINGS_SEED when set, else fresh. A failure prints it."""
    return SEED


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of tidings are forked, whoever starts them; see tests/forking.py."""
    monkeypatch.setattr(subprocess, "Popen", Forked)


@pytest.fixture
def short_collections() -> None:
    """Garbage collections do not visit what is there before the test: benchmarks collect before
    each measurement, which takes 0.1 to 0.3 seconds in a process with thousands of tests."""
    gc.freeze()


@pytest.fixture
def patient_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Content graphs that find all coverings of a new filter, however long that takes: `insert`
    gives up after PLACING steps, and what compiles graphs in bulk does not."""
    from tidings.graph import content_graph

    monkeypatch.setattr(content_graph, "PLACING", 1 << 60)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of a test run: starting one takes many seconds. Tables of tests are
    small, and to generate code for a query takes longer than to interpret it."""
    from tests.filters.oracle import INTERPRETED

    from tidings.spark import local_session

    session = local_session("tidings-tests", 2, **INTERPRETED)
    yield session
    session.stop()


@pytest.fixture
def shared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Backtests of the command line use the session of the run too, and leave it open."""
    from tidings.cli.backtests import backtest_tables

    @contextmanager
    def session(_master: str) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(backtest_tables, "open_session", session)
