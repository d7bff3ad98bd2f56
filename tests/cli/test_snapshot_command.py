"""`tidings snapshot`: what is built is what is shown, and damage is found."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run, Write

from tidings.snapshots import Snapshot
from tidings.snapshots.building import BuiltNodes
from tidings.snapshots.shape import Shape

FILTERS = {
    "any": "delay > 0",
    "late": "delay > 60",
    "very": "delay > 120",
    "very too": "NOT (delay <= 120)",
    "Newark": "delay > 60 AND origin = 'EWR'",
    "odd": "abs(gate) = 7",
}


@pytest.fixture
def folder(run: Run, write: Write, tmp_path: Path) -> str:
    lines = [json.dumps({"id": id_, "filter": text}) for id_, text in FILTERS.items()]
    file, folder = write("filters.jsonl", "\n".join(lines)), str(tmp_path / "snap")
    done = run("snapshot", "build", file, folder, "--number", "5")
    assert done.out == f"{folder}: 6 subscriptions, 5 nodes, 3 edges\n"
    return folder


def test_show(run: Run, folder: str) -> None:
    [record] = run("snapshot", "show", folder, "--json").records
    wanted = {"version": 5, "subscriptions": 6, "nodes": 5, "edges": 3, "roots": 2, "depth": 3}
    assert {name: record[name] for name in wanted} == wanted
    assert record["deepest"] in ([1, 2, 3], [1, 2, 4])
    assert record["largest"][0] == {"node": 3, "subscriptions": 2, "filter": "delay > 120"}
    assert record["columns"] == {"delay": ["number"], "gate": [], "origin": ["string"]}
    assert record["files"]["nodes.arrow"] == (Path(folder) / "nodes.arrow").stat().st_size
    out = run("snapshot", "show", folder).out
    assert "5; no other node covers 2 of them" in out
    assert "deepest path   3 nodes: 1 > 2 > 3" in out


def test_the_tree_shows_what_covers_what(run: Run, folder: str) -> None:
    lines = run("snapshot", "show", folder, "--tree").out.splitlines()
    assert lines[0] == "5 nodes, 6 subscriptions"
    at = {line.split("  ")[-2].strip(): line.index(line.split("  ")[-2]) for line in lines[1:]}
    assert at["delay > 0"] < at["delay > 60"] < at["delay > 120"]
    assert at["delay > 120"] == at["delay > 60 AND origin = 'EWR'"]


def test_a_very_deep_graph_is_drawn_whole(run: Run, write: Write, tmp_path: Path) -> None:
    file, folder = write("chain.txt", "\n".join(f"a > {n}" for n in range(1500))), tmp_path / "deep"
    assert run("snapshot", "build", file, str(folder)).code == 0
    result = run("snapshot", "show", str(folder), "--tree", "--all")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert [line for line in lines if " a > " in line and "(1)" in line] == [
        line for line in lines if "node" not in line and "further" not in line and line
    ]
    found = [line.split("a > ")[1].split()[0] for line in lines if "a > " in line]
    assert found == [str(n) for n in range(1500)]
    assert sum("further below" in line for line in lines) == 149
    assert "below node 10" in lines
    assert len(run("snapshot", "show", str(folder), "--tree").out.splitlines()) == 6


def test_a_node_of_several_paths_is_drawn_with_what_it_covers_once(
    run: Run, write: Write, tmp_path: Path
) -> None:
    chain = [f"a > {n}" for n in range(20)] + [f"b > {n}" for n in range(20)]
    both = "a > 30 AND b > 30\na > 40 AND b > 40\n"
    file, folder = write("both.txt", "\n".join(chain) + "\n" + both), str(tmp_path / "both")
    assert run("snapshot", "build", file, folder).code == 0
    out = run("snapshot", "show", folder, "--tree", "--all").out
    assert out.count("a > 30 AND b > 30") == 2
    assert out.count("a > 40 AND b > 40") == out.count("as above") == 1


def test_verify_agrees_with_what_was_built(run: Run, folder: str) -> None:
    result = run("snapshot", "verify", folder)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("sound: all checksums match; 5 nodes, 3 edges and ")
    assert run("snapshot", "verify", folder, "--json").records[0]["problems"] == []


def test_verify_finds_altered_bytes(run: Run, folder: str) -> None:
    path = Path(folder) / "subscriptions.arrow"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    result = run("snapshot", "verify", folder)
    assert result.code == 1
    assert "subscriptions.arrow is corrupt" in result.err
    assert len(result.err.splitlines()) == 1


def with_edges(folder: str, edges: list[tuple[int, int]]) -> None:
    """Write the snapshot again with these edges: (parent, child) by place."""
    one = Snapshot.open(folder)
    count = len(one.numbers)
    edges = sorted(edges, key=lambda edge: edge[1])
    nodes = BuiltNodes(
        one.numbers,
        one.keys,
        np.searchsorted([low for _, low in edges], np.arange(count + 1)).astype(np.int64),
        np.array([high for high, _ in edges], np.uint32),
        one.view.member_starts,
        one.ids.to_pylist(),
    )
    Snapshot(one.number, nodes, one.matcher).save(folder)


@pytest.mark.parametrize(
    ("edges", "sentence"),
    [
        ([(0, 1), (1, 2), (1, 3), (4, 3)], "node 5 is above node 4, but does not cover it"),
        ([(0, 1), (1, 3)], "covers node 3, but is not above it"),
    ],
)
def test_verify_finds_wrong_edges(
    run: Run, folder: str, edges: list[tuple[int, int]], sentence: str
) -> None:
    with_edges(folder, edges)
    result = run("snapshot", "verify", folder)
    assert result.code == 1
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1


def test_depths_against_the_definition() -> None:
    one = Snapshot.build({n: f"a > {n % 7} AND b > {n // 7}" for n in range(35)})
    shape = Shape(one)

    def depth(node: int) -> int:
        return 1 + max(map(depth, one.parents(node)), default=0)

    assert shape.depths.tolist() == [depth(int(node)) for node in one.numbers]
    path = shape.deepest()
    assert len(path) == shape.depths.max() == 11
    assert all(high in one.parents(low) for high, low in pairwise(path))


def test_an_empty_snapshot_can_be_shown(run: Run, tmp_path: Path) -> None:
    Snapshot.build({}).save(tmp_path / "none")
    assert "0 nodes" in run("snapshot", "show", str(tmp_path / "none")).out
    assert run("snapshot", "show", str(tmp_path / "none"), "--tree").code == 0
    assert run("snapshot", "verify", str(tmp_path / "none")).code == 0


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("show", "nowhere"), "'nowhere' is not a snapshot"),
        (("verify", "nowhere"), "'nowhere' is not a snapshot"),
        (("build", "nowhere.txt", "x"), "nowhere.txt: there is no such file"),
        (("build", "MIXED", "x"), "expected all strings or all integers"),
        (("build", "GOOD", "FULL"), "exists but is not a snapshot; it was not replaced"),
    ],
)
def test_what_is_refused_is_refused_in_one_sentence(
    run: Run, write: Write, args: tuple[str, ...], sentence: str
) -> None:
    mixed = write("m.jsonl", '{"id": 1, "filter": "a > 1"}\n{"id": "y", "filter": "b > 1"}\n')
    places = {"MIXED": mixed, "GOOD": write("f.txt", "a > 1"), "FULL": str(Path(mixed).parent)}
    result = run("snapshot", *(places.get(arg, arg) for arg in args))
    assert result.code == 2
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1
