"""Runs tidings and its peers on the same filters and events, in turn.

A peer is a folder with a `peer.toml` and a driver. The dependencies of a peer are fetched and built
on first use, in a cache folder outside the repository. A peer is left out if it can't be fetched,
built or run, or if it can't express the workload; the report then has a line with the reason.

    runner                                driver
    filters.jsonl, events.jsonl  ------>  loads them, builds its index
    a line on standard input     ------>  makes a pass over the events
    one JSON line                <------  the number of matches, the time
    another line, later          ------>  makes another pass

Drivers keep running between passes, so that rounds can alternate between systems without a new
build. The matches of every pass are checked against the workload's own answers.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tidings.files import user_cache_folder
from tidings.model import EnvironmentProblem
from tidings.studies.host.driver import Driver, Unavailable, telling_line
from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.workloads.answers import match_counts
from tidings.studies.workloads.workloads import Workload, make_workload

HOME = "tidings"
"""The folder of the driver for tidings, which always takes part."""

BUILD_LIMIT = 900.0  # seconds within which a peer must be fetched and built


class Peer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of `peer.toml`. `{python}`, `{folder}`, `{build}` and `{peers}` are paths."""

    about: str
    operators: list[str]
    """The tests that the peer can express; workloads with other tests are skipped."""
    run: list[str]
    without: str = ""
    """The reason why the peer can't express other tests."""
    needs: list[str] = []
    """Programs that must be on PATH."""
    build: list[list[str]] = []
    environment: dict[str, str] = {}
    variants: dict[str, list[str]] = {}
    """Further arguments of the driver, by system. The default is one system, named after the
    folder."""


class Pass(msgspec.Struct, frozen=True):
    """What a driver prints after a pass."""

    system: str
    version: str
    filters: int
    events: int
    """The number of events that were matched before the time was up."""
    matches: int
    build_seconds: float
    seconds: float
    us_per_event: float
    p50_us: float | None = None
    p99_us: float | None = None


class Outcome(msgspec.Struct, frozen=True):
    """The result of a system. `status` is ok, wrong (wrong matches), failed, cut (too slow) or
    skipped."""

    system: str
    status: str
    note: str = ""
    version: str = ""
    rounds: int = 0
    events: int = 0
    matches: int = 0
    build_seconds: float | None = None
    us_per_event: float | None = None
    """The median of the rounds."""
    p50_us: float | None = None
    p99_us: float | None = None
    peak_bytes: int | None = None


class PeerReport(msgspec.Struct, frozen=True):
    """The results of all systems on one workload."""

    machine: MachineInfo
    workload: str
    filters: int
    events: int
    seed: int
    rounds: int
    outcomes: list[Outcome]

    def ratio(self, system: str, base: str) -> float | None:
        """The time per event of a system, divided by that of `base`."""
        times = {outcome.system: outcome.us_per_event for outcome in self.outcomes}
        mine, other = times.get(system), times.get(base)
        return None if mine is None or not other else mine / other


class PeerSettings(msgspec.Struct, frozen=True):
    """The duration and number of measurements."""

    rounds: int = 3
    warm_up: float = 5.0
    limit: float = 20.0
    """The seconds of a pass."""
    patience: float = 900.0
    """The seconds for loading filters; a system that needs longer is stopped."""


def read_peers(folder: Path) -> dict[str, Peer]:
    """The peers of a folder, by name."""
    found = {}
    for file in sorted(folder.glob("*/peer.toml")):
        try:
            found[file.parent.name] = msgspec.convert(tomllib.loads(file.read_text()), Peer)
        except (msgspec.ValidationError, tomllib.TOMLDecodeError) as problem:
            raise EnvironmentProblem(f"{file} can't be used: {problem}") from problem
    if HOME not in found:
        raise EnvironmentProblem(f"there is no driver for tidings in the folder {folder}")
    return found


def peers_folder() -> Path:
    """The folder `benchmarks/peers` of the checkout that this package runs from."""
    folder = Path(__file__).resolve().parents[4] / "benchmarks" / "peers"
    if not folder.is_dir():
        raise EnvironmentProblem(
            f"there is no folder {folder}; run this from a checkout of tidings, as the package "
            "does not include the peers"
        )
    return folder


def cache_folder() -> Path:
    """The folder in which peers are built."""
    return user_cache_folder("peers")


def compare_peers(
    name: str,
    filters: int,
    events: int,
    *,
    seed: int = 1,
    folder: Path | None = None,
    chosen: Sequence[str] | None = None,
    settings: PeerSettings | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> PeerReport:
    """Run tidings and the chosen peers or systems, by default all of them, on a workload.

    `note` is called with each step, and with the reason if a peer is left out.
    """
    folder = folder or peers_folder()
    settings = settings or PeerSettings()
    peers = read_peers(folder)
    systems = _choose_systems(peers, chosen)
    where = describe_machine()
    note(f"making {name} with {filters:,} filters and {events:,} events")
    workload = make_workload(name, filters, events, seed)
    outcomes: dict[str, Outcome] = {}
    with (
        tempfile.TemporaryDirectory(prefix="tidings-peers-") as scratch,
        contextlib.ExitStack() as up,
    ):
        files = workload.write(Path(scratch))
        drivers: list[Driver] = []
        for peer_name, variants in systems.items():
            peer = peers[peer_name]
            try:
                _refuse_inexpressible(peer, workload)
                build = prepare(peer_name, peer, folder / peer_name, note=note)
            except Unavailable as problem:
                note(f"{peer_name}: skipped: {problem}")
                outcomes[peer_name] = Outcome(peer_name, "skipped", str(problem))
                continue
            for system, more in variants.items():
                command = [
                    *_fill_command(peer.run, folder / peer_name, build),
                    *more,
                    *map(str, files),
                ]
                command += [str(settings.warm_up), str(settings.limit)]
                environment = _environment(peer, folder / peer_name, build)
                driver = Driver(system, command, environment, Path(scratch))
                drivers.append(up.enter_context(driver))
        expected = np.cumsum(match_counts(workload))
        found = _rounds(drivers, settings, expected, note)
        outcomes.update({outcome.system: outcome for outcome in found})
    return PeerReport(where, name, filters, events, seed, settings.rounds, list(outcomes.values()))


def prepare(
    name: str, peer: Peer, folder: Path, note: Callable[[str], None] = lambda _: None
) -> Path:
    """Build a peer in the cache, unless it is already there; return its folder."""
    for program in peer.needs:
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not on PATH")
    target = cache_folder() / f"{name}-{_fingerprint(folder)}"
    if not peer.build:
        return folder
    if (target / ".built").exists():
        return target
    note(f"building {name}")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    for command in peer.build:
        filled = _fill_command(command, folder, target)
        try:
            ran = subprocess.run(
                filled, cwd=target, env=_environment(peer, folder, target),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", timeout=BUILD_LIMIT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            shutil.rmtree(target, ignore_errors=True)
            raise Unavailable(f"{command[0]} did not finish within {BUILD_LIMIT:.0f} s") from None
        except OSError as problem:
            shutil.rmtree(target, ignore_errors=True)
            raise Unavailable(f"{command[0]} can't be run: {problem.strerror}") from None
        if ran.returncode != 0:
            shutil.rmtree(target, ignore_errors=True)
            raise Unavailable(f"{Path(command[0]).name} failed: {telling_line(ran.stdout)}")
    (target / ".built").touch()
    return target


def _choose_systems(
    peers: dict[str, Peer], chosen: Sequence[str] | None
) -> dict[str, dict[str, list[str]]]:
    """The chosen systems of each peer; tidings is always first.

    The name of a peer selects all its systems.
    """
    systems = {name: peer.variants or {name: []} for name, peer in peers.items()}
    known = [*peers, *(system for variants in systems.values() for system in variants)]
    for name in chosen or ():
        if name not in known:
            raise EnvironmentProblem(
                f"there is no peer {name!r}, expected one of: {', '.join(dict.fromkeys(known))}"
            )
    wanted = {HOME: systems.pop(HOME)}
    for peer, variants in systems.items():
        asked = variants
        if chosen is not None and peer not in chosen:
            asked = {system: more for system, more in variants.items() if system in chosen}
        if asked:
            wanted[peer] = asked
    return wanted


def _rounds(
    drivers: list[Driver], settings: PeerSettings, expected: Any, note: Callable[[str], None]
) -> list[Outcome]:
    """Ask the drivers in turn, round after round; a driver that fails is not asked again."""
    passes: dict[str, list[Pass]] = {driver.system: [] for driver in drivers}
    peaks: dict[str, int | None] = {}
    ended: dict[str, Outcome] = {}
    for number in range(settings.rounds):
        for driver in drivers:
            system = driver.system
            if system in ended:
                continue
            note(f"round {number + 1} of {settings.rounds}: {system}")
            patience = 2 * (settings.warm_up + settings.limit) + 10
            patience += 0 if passes[system] else settings.patience
            start = time.monotonic()
            try:
                answer = driver.ask(Pass, patience)
            except TimeoutError:
                ended[system] = Outcome(
                    system, "cut", f"no answer within {time.monotonic() - start:.0f} s"
                )
            except Unavailable as problem:
                ended[system] = Outcome(system, "failed", str(problem))
            else:
                wrong = _mistake(answer, expected)
                passes[system].append(answer)
                peaks[system] = driver.peak_bytes()
                if wrong:
                    ended[system] = Outcome(system, "wrong", wrong, answer.version)
            if system in ended:
                note(f"{system}: {ended[system].status}: {ended[system].note}")
                driver.stop()
    return [
        ended.get(driver.system)
        or _summary(driver.system, passes[driver.system], peaks[driver.system])
        for driver in drivers
    ]


def _mistake(answer: Pass, expected: Any) -> str:
    right = int(expected[answer.events - 1]) if answer.events else 0
    if answer.matches == right:
        return ""
    return f"{answer.matches:,} matches in {answer.events:,} events, expected {right:,}"


def _summary(system: str, passes: list[Pass], peak: int | None) -> Outcome:
    def middle(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    last = passes[-1]
    return Outcome(
        system=system,
        status="ok",
        version=last.version,
        rounds=len(passes),
        events=last.events,
        matches=last.matches,
        build_seconds=last.build_seconds,
        us_per_event=middle([one.us_per_event for one in passes]),
        p50_us=middle([one.p50_us for one in passes]),
        p99_us=middle([one.p99_us for one in passes]),
        peak_bytes=peak,
    )


def _refuse_inexpressible(peer: Peer, workload: Workload) -> None:
    missing = sorted(workload.filters.operators() - set(peer.operators))
    if missing:
        reason = peer.without or f"it can't express {', '.join(missing)}"
        raise Unavailable(f"not measured on {workload.name}: {reason}")


def _fingerprint(folder: Path) -> str:
    """A digest of a peer's files: if a file changes, the peer is built again."""
    digest = hashlib.sha256(sys.version.encode())
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(str(file.relative_to(folder)).encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _fill_command(command: list[str], folder: Path, build: Path) -> list[str]:
    return [_with_paths(part, folder, build) for part in command]


def _with_paths(text: str, folder: Path, build: Path) -> str:
    return text.format(python=sys.executable, folder=folder, build=build, peers=folder.parent)


def _environment(peer: Peer, folder: Path, build: Path) -> dict[str, str]:
    own = {name: _with_paths(text, folder, build) for name, text in peer.environment.items()}
    return {**os.environ, **own}
