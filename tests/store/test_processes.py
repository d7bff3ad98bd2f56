"""Several processes at one log, and processes that are killed while they write."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.waiting import PATIENCE

from tidings.store import Change, ChangeLog

WRITE_SOME = """
import sys
from tidings.store import ChangeLog
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
log = ChangeLog(folder, segment_bytes=2000)
for n in range(count):
    version = log.put(f"{name}-{n}", f"a = {n}")
    print(version, flush=True)
"""

# Groups of three with one number each; what was acknowledged is said, line by line. They come
# slowly and in small pieces, so that many of the kills find half a group.
WRITE_ON = """
import os, sys, time
from tidings.store import ChangeLog
write = os.pwrite
os.pwrite = lambda handle, data, offset: (time.sleep(0.0005), write(handle, data[:11], offset))[1]
log = ChangeLog(sys.argv[1], segment_bytes=2000)
n = log.version
while True:
    version = log.put_many([(f"{part}", f"n = {n}") for part in range(3)])
    sys.stdout.write(f"{version} {n}\\n")
    sys.stdout.flush()
    n += 1
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_at_once_and_a_third_reads(tmp_path: Path) -> None:
    reader = ChangeLog(tmp_path)
    writers = [start(WRITE_SOME, tmp_path, name, 60) for name in ("left", "right")]
    seen: list[Change] = []
    limit = time.monotonic() + 2 * PATIENCE
    while len(seen) < 120 and time.monotonic() < limit:
        seen += reader.changes(len(seen))
    said = [[int(line) for line in writer.communicate()[0].split()] for writer in writers]
    assert sorted(said[0] + said[1]) == list(range(1, 121))
    assert [change.version for change in seen] == list(range(1, 121))
    assert seen == ChangeLog(tmp_path).changes(0)
    for name, versions in zip(("left", "right"), said, strict=True):
        mine = [change for change in seen if str(change.id).startswith(name)]
        assert [change.version for change in mine] == versions
        assert [change.id for change in mine] == [f"{name}-{n}" for n in range(60)]
    # Both wrote the same filters: one number each.
    first: dict[str | None, int] = {}
    for change in seen:
        assert change.node == first.setdefault(change.filter, change.version)
    assert len({(change.filter, change.node) for change in seen}) == 60


def test_what_another_process_wrote_is_seen_at_once(tmp_path: Path) -> None:
    reader = ChangeLog(tmp_path)
    with start(WRITE_SOME, tmp_path, "other", 30) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            assert reader.version >= int(line)
    assert reader.put("x", "a = 7") == 31
    assert reader.changes(30)[0].node == 8


def test_killed_writers_lose_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    reader = ChangeLog(tmp_path)
    said: dict[int, str] = {}
    for kill in range(10):
        with start(WRITE_ON, tmp_path) as writer:
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(rng.random() * 0.03)
            writer.kill()
            for line in [first, *writer.stdout]:
                if line.endswith("\n"):
                    version, n = line.split()
                    said[int(version)] = f"n = {n}"
        log = reader if kill % 2 else ChangeLog(tmp_path)
        changes = log.changes(0)
        assert len(changes) == log.version
        assert log.version >= max(said)
        assert log.version % 3 == 0
        for version, text in said.items():
            group = changes[version - 3 : version]
            assert [(one.id, one.filter) for one in group] == [
                ("0", text),
                ("1", text),
                ("2", text),
            ]


def test_what_a_killed_writer_was_told_and_a_cut_took_is_missing_for_all(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(f"{seed} cuts")
    with start(WRITE_SOME, tmp_path, "one", 10_000) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(20)]
        writer.kill()
        said += list(writer.stdout)
    last = max(int(line) for line in said if line.endswith("\n"))
    assert ChangeLog(tmp_path).version >= last
    path = max(tmp_path.glob("*.log"))
    # not in the last quarter: what was written last may not have been acknowledged
    os.truncate(path, rng.randrange(path.stat().st_size * 3 // 4))
    asks = [
        "ChangeLog(sys.argv[1]).version",
        "ChangeLog(sys.argv[1]).subscriptions()",
        "ChangeLog(sys.argv[1]).put('x', 'a = 1')",
    ]
    for ask in asks:
        program = f"import sys; from tidings.store import ChangeLog; {ask}"
        done = subprocess.run(
            [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "LogError: the log is damaged" in done.stderr
        assert "versions, those after" in done.stderr


def test_readers_while_segments_go(tmp_path: Path) -> None:
    reader, keeper = ChangeLog(tmp_path), ChangeLog(tmp_path)
    with start(WRITE_SOME, tmp_path, "other", 150) as writer:
        while writer.poll() is None:
            pinned = reader.version
            keeper.forget_before(max(0, pinned - 5))
            assert len(reader.subscriptions(pinned)) == pinned
            versions = [change.version for change in reader.changes(pinned)]
            assert versions == list(range(pinned + 1, pinned + 1 + len(versions)))
    assert reader.version == 150
    assert len(reader.subscriptions()) == 150
