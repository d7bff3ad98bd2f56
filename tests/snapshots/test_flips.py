"""Altered snapshots: whichever bit is flipped, a snapshot is refused or gives the same answers.

Flips are tried in processes of their own, as Spark's workers are, so that one that crashes is seen.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.archives import unpack

from tidings import Attributes
from tidings.matching.disk.manifest import SnapshotError
from tidings.snapshots import Snapshot

BEFORE = Path(__file__).parents[1] / "store" / "before.tar.gz"
ATTRIBUTES = Attributes(
    {"dest": "string", "origin": "string", "dep_delay": "integer", "day": "date"}
)
FILTERS = {
    "late": "dep_delay > 60",
    "very late": "dep_delay > 120",
    "late at EWR": "dep_delay > 60 AND origin = 'EWR'",
    "all": "true",
    "like": "dest LIKE '%O%'",
    "either": "dest = 'BOS' OR origin IN ('JFK', 'LGA')",
    "day": "day > '2013-01-05'",
    "wide": "dep_delay IN (1, 3, 5, 7, 90, 130) AND dest > 'B' AND origin <> 'LGA'",
}
ROWS = [
    {"dest": "BOS", "origin": "EWR", "dep_delay": 61, "day": "2013-01-01"},
    {"dest": "ORD", "origin": "JFK", "dep_delay": 130, "day": "2013-01-09"},
    {"dest": "IAH", "origin": "LGA", "dep_delay": None, "day": "2013-01-05"},
    {"dest": "CLT", "origin": "EWR", "dep_delay": 90, "day": None},
]

# opens the snapshot as a worker does; says of each flip whether it was refused by name, whether
# the answer was the same, or what else there was
WORKER = """
import json, os, random, sys
from collections import Counter
from pathlib import Path
import pyarrow as pa
from tidings.model import TidingsError
from tidings.spark.tagging import worker

folder, seed, flips = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rows = pa.RecordBatch.from_pylist(json.loads(sys.argv[4]))

def answer():
    worker._opened.clear()
    view = worker.view_of(worker.Pinned(str(folder), 1))
    matched = view.match_places(rows)
    lists = view.node_lists(*matched), view.subscription_lists(*matched)
    return view.nodes(rows).to_pylist(), [sorted(one) for one in lists[1].to_pylist()]

expected, draw, found = answer(), random.Random(seed), Counter()
files = sorted(path for path in folder.rglob("*") if path.is_file())
for flip in range(flips):
    path = files[flip % len(files)]
    whole = path.read_bytes()
    at, bit = draw.randrange(len(whole)), 1 << draw.randrange(8)
    beside = path.with_name(".beside")
    for data in (whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1:], whole):
        beside.write_bytes(data)
        beside.replace(path)
        if data is whole:
            break
        print("flip", flip, path.name, at, bit, file=sys.stderr, flush=True)
        try:
            found["same" if answer() == expected else "other"] += 1
        except TidingsError as problem:
            text = str(problem)
            clear = path.name in text and str(folder) in text and "\\n" not in text
            found["refused" if clear else text] += 1
        except Exception as problem:
            found[repr(problem)] += 1
assert answer() == expected
print(json.dumps(found))
"""


def flipped(folder: Path, seed: int, flips: int) -> dict[str, int]:
    command = [sys.executable, "-c", WORKER, str(folder), str(seed), str(flips), json.dumps(ROWS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_no_flipped_bit_tells_anybody_anything(tmp_path: Path, seed: int) -> None:
    Snapshot.build(FILTERS, ATTRIBUTES).save(tmp_path / "s")
    assert flipped(tmp_path / "s", seed, 400) == {"refused": 400}


def before(tmp_path: Path) -> Path:
    """What version 0.1.0 wrote before manifests had digests."""
    unpack(BEFORE, tmp_path)
    return tmp_path / "before"


def test_snapshots_of_the_format_before_are_read(tmp_path: Path) -> None:
    folder = before(tmp_path) / "snapshot"
    batch = pa.RecordBatch.from_pylist(ROWS)
    opened = Snapshot.open(folder)
    again = {id_: opened.filter(node).sql() for id_, node in opened.nodes_by_id().items()}
    fresh = Snapshot.build(again, opened.attributes)
    assert opened.nodes(batch).to_pylist() == fresh.nodes(batch).to_pylist()
    expected = [sorted(one) for one in fresh.subscriptions(batch).to_pylist()]
    assert [sorted(one) for one in opened.subscriptions(batch).to_pylist()] == expected
    for path in folder.rglob("*.arrow"):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(SnapshotError, match=path.name):
            Snapshot.open(folder)
        path.write_bytes(whole)
    Snapshot.open(folder)


@pytest.mark.parametrize("name", ["nodes", "edges", "subscriptions", "slots", "filters"])
def test_counts_of_the_format_before_are_compared(tmp_path: Path, name: str) -> None:
    folder = before(tmp_path) / "snapshot"
    for path in (folder / "manifest.json", folder / "index" / "manifest.json"):
        told = json.loads(path.read_text())
        if name in told["notes"]:
            told["notes"][name] += 1
            path.write_text(json.dumps(told))
    with pytest.raises(SnapshotError, match=f"manifest.json says {name} = .*, but the files have"):
        Snapshot.open(folder)


def test_an_index_of_another_snapshot_is_refused(tmp_path: Path) -> None:
    Snapshot.build(FILTERS, ATTRIBUTES).save(tmp_path / "one")
    others = {id_: text.replace("60", "70") for id_, text in FILTERS.items()}
    Snapshot.build(others, ATTRIBUTES).save(tmp_path / "other")
    (tmp_path / "one" / "index").rename(tmp_path / "away")
    (tmp_path / "other" / "index").rename(tmp_path / "one" / "index")
    with pytest.raises(SnapshotError, match=r"index/manifest\.json"):
        Snapshot.open(tmp_path / "one")


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    Snapshot.build(FILTERS, ATTRIBUTES).save(tmp_path / "s")
    for path in ((tmp_path / "s"), *(tmp_path / "s").rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
