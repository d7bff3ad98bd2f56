"""Snapshots: tags are those of the content graph, and what was altered is refused."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.filters.strategies import Writer, event, schema
from tests.matching import tables
from tests.repeats import amount, runs

from tidings import Attributes, ContentGraph, Filter, FilterError, GraphError, Ontology, parse
from tidings.matching import Matcher
from tidings.matching.disk.manifest import SnapshotError
from tidings.model import TidingsError
from tidings.snapshots import Snapshot

FLIGHTS = {
    "late": "dep_delay > 60",
    "very late": "dep_delay > 120",
    "late too": "dep_delay > 60.0",
    "late at EWR": "dep_delay > 60 AND origin = 'EWR'",
    "all": "true",
    "none": "dep_delay > 5 AND dep_delay < 3",
}
ROWS = pa.RecordBatch.from_pylist(
    [
        {"dep_delay": 61, "origin": "EWR"},
        {"dep_delay": 130, "origin": "JFK"},
        {"dep_delay": None, "origin": "EWR"},
    ],
    schema=pa.schema({"dep_delay": pa.int64(), "origin": pa.string()}),
)


def many_filters(rng: random.Random, count: int) -> tuple[list[tuple[str, Filter]], Any]:
    of = schema(rng)
    writer = Writer(rng, of, spark=False)
    found: list[tuple[str, Filter]] = []
    while len(found) < count:
        try:
            found.append((f"s{len(found)}", parse(writer.filter(depth=2))))
        except FilterError:
            continue
    return found, of


def test_tags_are_the_lowest_nodes() -> None:
    snapshot = Snapshot.build(FLIGHTS)
    assert len(snapshot) == 6
    assert snapshot.stats()["nodes"] == 5
    node = snapshot.nodes_by_id()
    assert node["late"] == node["late too"]
    assert snapshot.nodes(ROWS).to_pylist() == [
        [node["late at EWR"]], [node["very late"]], [node["all"]],
    ]  # fmt: skip
    assert [set(ids) for ids in snapshot.subscriptions(ROWS).to_pylist()] == [
        {"late", "late too", "late at EWR", "all"},
        {"late", "late too", "very late", "all"},
        {"all"},
    ]
    assert snapshot.parents(node["very late"]) == [node["late"]]
    assert snapshot.members(node["late"]) == ["late", "late too"]
    assert snapshot.filter(node["very late"]) == parse("dep_delay > 120")


@pytest.mark.parametrize("run", runs(1, 4))
@pytest.mark.usefixtures("patient_graphs")
def test_tags_are_those_of_the_content_graph(seed: int, run: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed} tags {run}")
    filters, of = many_filters(rng, 80)
    events = [event(rng, of) for _ in range(60)]
    batch = pa.RecordBatch.from_pylist(events, schema=tables.arrow_schema(of))
    graph = ContentGraph()
    node_of = {id_: graph.insert(one) for id_, one in filters}
    Snapshot.build(filters).save(tmp_path / "snapshot")
    snapshot = Snapshot.open(tmp_path / "snapshot")
    subscribed = snapshot.nodes_by_id()
    assert len(snapshot.numbers) == len({one.key for _, one in filters})
    # filters that cover each other share a node of the content graph; here they are a chain
    chains: dict[int, set[int]] = {}
    for id_, node in node_of.items():
        chains.setdefault(node.id, set()).add(subscribed[id_])
    same = {node: min(chain) for node, chain in chains.items()}
    assert len(same) == len(graph)
    for node in graph:
        *rest, top = sorted(chains[node.id])
        assert [snapshot.parents(one) for one in rest] == [[one] for one in [*rest, top][1:]]
        parents = {same[parent.id] for parent in graph.parents(node)}
        assert set(snapshot.parents(top)) == parents
    nodes = snapshot.nodes(batch).to_pylist()
    told = snapshot.subscriptions(batch).to_pylist()
    for row, one in enumerate(events):
        matched = graph.matching(one)
        assert nodes[row] == sorted(same[node.id] for node in graph.lowest(matched))
        assert sorted(told[row]) == sorted(id_ for id_, f in filters if f.matches(one))


def test_declared_attributes_are_saved(tmp_path: Path) -> None:
    topics = Ontology({"baseball": "sports", "mlb": "baseball"})
    attributes = Attributes(
        {"when": "date", "user.age": "integer", "topic": topics, "other": "struct"}
    )
    filters = {1: "when > '2024-05-01'", 2: "isa(topic, 'sports')", 3: "user.age > 3 + 4"}
    Snapshot.build(filters, attributes).save(tmp_path / "s")
    opened = Snapshot.open(tmp_path / "s")
    rows = pa.RecordBatch.from_pylist(
        [{"when": "2024-06-01", "topic": "mlb", "user": {"age": 8}, "other": {"x": 1}}]
    )
    assert [sorted(ids) for ids in opened.subscriptions(rows).to_pylist()] == [[1, 2, 3]]
    assert opened.attributes is not None
    assert opened.attributes.to_declared() == attributes.to_declared()
    with pytest.raises(FilterError, match="whem"):
        opened.matcher.add(99, "whem > '2024-01-01'")


def test_no_subscriptions_at_all(tmp_path: Path) -> None:
    Snapshot.build({}).save(tmp_path / "s")
    opened = Snapshot.open(tmp_path / "s")
    assert opened.nodes(ROWS).to_pylist() == [[], [], []]
    assert opened.subscriptions(ROWS).to_pylist() == [[], [], []]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ([("a", "x >")], "a filter is refused; 'a': found the end of the filter"),
        ([("a", "x > 1"), ("a", "x > 2")], "the id 'a' occurs twice"),
        ([("a", "x > 1"), (1, "x > 2")], "expected all strings or all integers"),
        ([((1, 2), "x > 1")], "expected a string or a 64-bit integer"),
    ],
)
def test_what_is_refused(filters: list[tuple[Any, str]], message: str) -> None:
    with pytest.raises(TidingsError) as caught:
        Snapshot.build(filters)
    assert message in "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def test_unknown_nodes_are_refused() -> None:
    with pytest.raises(GraphError, match="no node 77"):
        Snapshot.build(FLIGHTS).parents(77)


def test_altered_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    Snapshot.build(FLIGHTS).save(path)
    for name in ("nodes.arrow", "subscriptions.arrow", "index/filters.arrow"):
        whole = (path / name).read_bytes()
        middle = len(whole) // 2
        (path / name).write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        with pytest.raises(SnapshotError, match="checksum"):
            Snapshot.open(path)
        (path / name).write_bytes(whole[:-1])
        with pytest.raises(SnapshotError, match="cut off"):
            Snapshot.open(path)
        (path / name).write_bytes(whole)
    manifest = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(manifest.replace('"version": 3', '"version": 99'))
    with pytest.raises(
        SnapshotError, match=r"99 in manifest\.json, expected tidings-snapshot version 3"
    ):
        Snapshot.open(path)


def test_numbers_that_were_given_before_stay() -> None:
    texts = ["a > 1", "a > 2", "a > 3"]
    keys = [parse(text).key for text in texts]
    snapshot = Snapshot.build(
        dict(zip("xyz", texts, strict=True)), numbers=dict(zip(keys, [30, 7, 12], strict=True))
    )
    assert snapshot.nodes_by_id() == {"x": 30, "y": 7, "z": 12}
    assert snapshot.parents(12) == [7]
    rows = pa.RecordBatch.from_pylist([{"a": 2.5}, {"a": 9}])
    assert snapshot.nodes(rows).to_pylist() == [[7], [12]]


class Replaced:
    """Two snapshots of one path, whose tables do not fit each other's index."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.old = Snapshot.build({"ana": "x > 1", "ben": "x < 0"}, number=1)
        self.new = Snapshot.build({"ben": "x < 0", "ana": "x > 1"}, number=2)
        self.old.save(path)

    def told(self) -> tuple[int, list[str]]:
        found = Snapshot.open(self.path)
        return found.number, found.subscriptions(pa.record_batch({"x": [5]})).to_pylist()[0]

    def beside(self) -> list[str]:
        return [one.name for one in self.path.parent.iterdir() if one != self.path]


@pytest.fixture
def replaced(tmp_path: Path) -> Replaced:
    return Replaced(tmp_path / "s")


@pytest.mark.parametrize("file", ["manifest.json", "terms.arrow", "nodes.arrow"])
def test_a_snapshot_that_is_replaced_while_it_is_opened_is_opened_anew(
    replaced: Replaced, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = [replaced.new]

    def just_before(name: str) -> None:
        if name == file and waiting:
            waiting.pop().save(replaced.path)

    monkeypatch.setattr(pa, "memory_map", _told(pa.memory_map, just_before))
    monkeypatch.setattr(Path, "read_bytes", _told(Path.read_bytes, just_before))
    assert replaced.told() == (2, ["ana"])
    assert not waiting


def test_a_snapshot_that_is_replaced_all_the_time_is_refused(
    replaced: Replaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Matcher.open

    def opening(*args: Any, **more: Any) -> Matcher:
        found = whole(*args, **more)
        replaced.new.save(replaced.path)
        return found

    monkeypatch.setattr(Matcher, "open", opening)
    with pytest.raises(SnapshotError, match="was replaced during each of"):
        replaced.told()


def test_between_two_renames_the_old_one_is_opened(
    replaced: Replaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed there leaves it so; the next save clears up."""
    aside = replaced.path.parent / ".s.old.abc"
    aside.mkdir()
    replaced.path.rename(aside / "snapshot")
    assert replaced.told() == (1, ["ana"])
    assert Snapshot.open(replaced.path).path == replaced.path
    replaced.new.save(replaced.path)
    assert replaced.told() == (2, ["ana"])
    assert replaced.beside() == []


def test_one_that_is_removed_while_it_is_opened_is_opened_anew(
    replaced: Replaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was moved aside; its files go one by one, and its manifest perhaps last."""
    beside, aside = replaced.path.parent / "t", replaced.path.parent / ".s.old.abc"
    replaced.new.save(beside)
    aside.mkdir()
    replaced.path.rename(aside / "snapshot")

    def just_before(name: str) -> None:
        if name == "nodes.arrow" and beside.exists():
            beside.rename(replaced.path)
            (aside / "snapshot" / name).unlink()

    monkeypatch.setattr(pa, "memory_map", _told(pa.memory_map, just_before))
    assert replaced.told() == (2, ["ana"])
    assert not beside.exists()


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError])
def test_one_of_both_is_there_when_a_save_is_interrupted(
    replaced: Replaced, problem: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, left = Path.rename, [None, problem]

    def failing(one: Path, target: Path) -> Path:
        if one.parent == replaced.path.parent and left and left.pop(0) is not None:
            raise problem
        return rename(one, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(problem):
        replaced.new.save(replaced.path)
    monkeypatch.undo()
    assert not left
    assert replaced.told() == (1, ["ana"])
    assert replaced.beside() == []


def test_readers_and_a_writer_at_once(replaced: Replaced) -> None:
    seen: set[int] = set()
    done = threading.Event()

    def write() -> None:
        for turn in range(amount(6, 20)):
            (replaced.new, replaced.old)[turn % 2].save(replaced.path)
        done.set()

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(write)
        while not done.is_set():
            number, told = replaced.told()
            assert told == ["ana"]
            seen.add(number)
        work.result()
    assert seen


def _told(function: Any, note: Callable[[str], None]) -> Any:
    """The same function of a path, after someone was told its name."""

    def run(path: Any, *more: Any) -> Any:
        note(Path(path).name)
        return function(path, *more)

    return run


def test_subscriptions_that_can_never_match(seed: int, tmp_path: Path) -> None:
    snapshot = Snapshot.build({**FLIGHTS, "nothing": "FALSE"})
    assert snapshot.never() == ["none", "nothing"]
    assert snapshot.stats()["never"] == 2
    assert repr(snapshot).endswith("7 subscriptions, 5 nodes; 2 can never match>")
    snapshot.save(tmp_path / "saved")
    assert Snapshot.open(tmp_path / "saved").never() == ["none", "nothing"]
    assert "never" not in repr(Snapshot.build({"a": "x = 1"}))

    filters, _ = many_filters(random.Random(seed), 200)
    never = {id_ for id_, one in filters if one.never}
    assert set(Snapshot.build(filters).never()) == never
