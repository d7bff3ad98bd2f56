"""Snapshots that a channel adopts: the subscriptions, nodes and tags against a plain model, through
later changes, checkpoints and other readers."""

from __future__ import annotations

import errno
import io
import random
import shutil
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.damage import flip_bit
from tests.store.test_compaction import begin_file, make_older, segments_of
from tests.store.test_journal import opened, record, write

from tidings import Attributes, parse
from tidings.channel.interests import ArrayInterests
from tidings.matching.disk import SnapshotError, UnreadableSnapshot
from tidings.model import EnvironmentProblem, Id, TidingsError
from tidings.routing.root.interests import Placed
from tidings.routing.root.node_history import RemovedNode
from tidings.snapshots import LANGUAGE, Snapshot, identity_of, snapshot as snapshot_module
from tidings.spark.loading.log_snapshots import compile_version, path_of
from tidings.spark.pipeline.subscription_source import FollowedSubscriptions
from tidings.store import Adoption, Change, ChangeLog, LogError, bulks as bulks_module, owner_of
from tidings.store.declared import DeclarationError
from tidings.store.folder import CURRENT, read_format
from tidings.store.groups import GroupLog, LostEnd
from tidings.store.journal import FileJournal, checkpoint
from tidings.store.journal.state import JournalState
from tidings.store.journal.upkeep import upkeep
from tidings.store.known_log import KnownLog
from tidings.store.layered import Layer, Layered
from tidings.store.owner import change_requests
from tidings.store.owner.owner_socket import Greeting
from tidings.store.reader import read_mark, state_at

TEXTS = [f"n > {k}" for k in range(12)] + [f"n > {k} AND m = {k % 3}" for k in range(12)]
ROWS = pa.RecordBatch.from_pylist([{"n": n, "m": n % 3} for n in range(14)])


class Model:
    """What a channel without a rendezvous point has: ids with filters, nodes by identity."""

    def __init__(self) -> None:
        self.version = 0
        self.now: dict[Id, tuple[str, int]] = {}
        self.nodes: dict[bytes, int] = {}  # living ones
        self.at: dict[int, dict[Id, tuple[str, int]]] = {0: {}}
        self.adopted: list[tuple[int, int, set[Id]]] = []  # the range of nodes, and the ids
        self.unchanged: set[Id] = set()  # since they were adopted

    def _end(self) -> None:
        living = {node for _, node in self.now.values()}
        self.nodes = {key: node for key, node in self.nodes.items() if node in living}
        self.at[self.version] = dict(self.now)

    def put(self, id_: Id, text: str | None) -> None:
        self.version += 1
        self.unchanged.discard(id_)
        if text is None:
            del self.now[id_]
        else:
            node = self.nodes.setdefault(parse(text).key, self.version)
            self.now[id_] = text, node
        self._end()

    def adopt(self, pairs: dict[Id, str]) -> None:
        first, places = self.version + 1, dict[bytes, tuple[int, str]]()
        for id_, text in pairs.items():
            key = parse(text).key
            place, kept = places.setdefault(key, (len(places), text))
            self.now[id_] = kept, self.nodes.get(key, first + place)
        self.version += len(places)
        for key, (place, _) in places.items():
            self.nodes.setdefault(key, first + place)
        for _, _, ids in self.adopted:
            ids.difference_update(pairs)  # they were dropped, and belong to the new bulk
        self.adopted.append((first, self.version, {*pairs}))
        self.unchanged |= {*pairs}
        self._end()

    def tags(self, version: int) -> list[list[int]]:
        found: list[list[int]] = []
        filters = {node: parse(text) for text, node in self.at[version].values()}
        for row in ROWS.to_pylist():
            hit = {node for node, one in filters.items() if one.matches(row)}
            found.append(
                sorted(a for a in hit if not any(
                    filters[a].covers(filters[b]) for b in hit if b != a
                ))
            )  # fmt: skip
        return found


def state_of(folder: Path) -> JournalState:
    return state_at(folder, read_mark(folder, GroupLog(folder)))


def told(log: ChangeLog, version: int) -> dict[Id, tuple[bytes, int]]:
    return {
        id_: (parse(text).key, node) for id_, (text, node) in log.subscriptions(version).items()
    }


def expected(model: Model, version: int) -> dict[Id, tuple[bytes, int]]:
    return keyed(model.at[version])


def keyed(found: dict[Id, tuple[str, int]]) -> dict[Id, tuple[bytes, int]]:
    return {id_: (parse(text).key, node) for id_, (text, node) in found.items()}


@pytest.mark.parametrize("integer", [False, True])
def test_any_order_of_adoptions_and_changes(tmp_path: Path, seed: int, integer: bool) -> None:
    rng = random.Random(f"{seed} bulks {integer}")
    model, log = Model(), ChangeLog(tmp_path)
    names = [number if integer else f"s{number}" for number in range(60)]
    for step in range(30):
        free = [id_ for id_ in names if id_ not in model.now]
        if step in (3, 11, 19):
            some = rng.sample(free, min(len(free), rng.randrange(1, 25)))
            pairs = {id_: rng.choice(TEXTS) for id_ in sorted(some)}
            model.adopt(pairs)
            assert log.adopt(Snapshot.build(pairs), owner="loader") == model.version
        elif model.now and rng.random() < 0.5:
            id_ = rng.choice(list(model.now))
            model.put(id_, None)
            log.drop(id_)
        else:
            id_, text = rng.choice(names), rng.choice(TEXTS)
            model.put(id_, text)
            assert log.put(id_, text) == model.version
        if rng.random() < 0.2:
            log.forget_before(log.version)  # a checkpoint
            left = {one.name for one in state_of(tmp_path).bulks}
            assert {one.name for one in tmp_path.glob("bulks/*")} == left
            assert len(left) <= len(model.adopted)
            for first, last, ids in model.adopted:
                used = {node for _, node in model.now.values()}
                is_used = any(first <= node <= last for node in used)
                is_left = any(name.startswith(f"{first:020d}-") for name in left)
                # an id that never changed keeps its bulk, even if its node is shared
                assert is_left >= is_used
                assert is_left or not ids & model.unchanged
        if rng.random() < 0.3:
            log = ChangeLog(tmp_path)  # another process
        assert told(log, model.version) == expected(model, model.version)
        nodes = {node: key for key, node in model.nodes.items()}
        assert log.state().identities == nodes
    assert told(ChangeLog(tmp_path), model.version) == expected(model, model.version)


def test_tags_are_equal_everywhere_at_every_version(tmp_path: Path, seed: int) -> None:
    """A pipeline and a rendezvous point that open the folder, against the definition."""
    rng = random.Random(f"{seed} bulk tags")
    model, log = Model(), ChangeLog(tmp_path / "c")
    for number in range(5):
        early = rng.choice(TEXTS)
        model.put(f"a{number}", early)
        log.put(f"a{number}", early)
    pairs: dict[Id, str] = {f"b{number:02}": rng.choice(TEXTS) for number in range(40)}
    model.adopt(pairs)
    log.adopt(Snapshot.build(pairs))
    source = FollowedSubscriptions(tmp_path / "c")
    for _ in range(15):
        id_ = rng.choice([*pairs, *(f"c{number}" for number in range(20))])
        wanted = None if id_ in model.now and rng.random() < 0.5 else rng.choice(TEXTS)
        model.put(id_, wanted)
        log.drop(id_) if wanted is None else log.put(id_, wanted)
        tags = model.tags(model.version)
        assert source.view(model.version).nodes(ROWS).to_pylist() == tags
        ids = source.view(model.version).subscriptions(ROWS).to_pylist()
        for row, found in zip(ROWS.to_pylist(), ids, strict=True):
            now = model.now.items()
            assert sorted(found) == sorted(i for i, (text, _) in now if parse(text).matches(row))
    fresh = FollowedSubscriptions(tmp_path / "c")
    fresh.compile_latest()
    assert fresh.view(model.version).nodes(ROWS).to_pylist() == model.tags(model.version)
    source.close()
    fresh.close()
    shutil.copytree(tmp_path / "c", tmp_path / "root")
    for _ in range(2):  # the second time from a checkpoint
        journal = opened(tmp_path / "root", 7)
        interests = ArrayInterests(interests=journal.interests(), last=journal.history.base)
        memory = journal.memory(interests.all_placed())
        assert memory.held == {node for _, node in model.now.values()}
        found = [interests.tag(str(row).replace("'", '"').encode()) for row in ROWS.to_pylist()]
        assert [sorted(tag) for tag in found] == model.tags(model.version)
        journal.close()
        ChangeLog(tmp_path / "root").forget_before(model.version)


def test_a_channel_from_a_snapshot_is_used_without_a_copy(tmp_path: Path) -> None:
    attributes = Attributes({"n": "integer"})
    log = ChangeLog(tmp_path, attributes)
    pairs: dict[Id, str] = {f"b{k}": f"n > {k}" for k in range(9)}
    version = log.adopt(Snapshot.build(pairs, attributes))
    assert version == 9
    source = FollowedSubscriptions(tmp_path, attributes)
    compiled = path_of(source.home, version, attributes)
    bulk = log.bulk_at(version)
    assert bulk is not None
    assert bulk == log.bulk_of(version)
    for name in ("nodes.arrow", "index/manifest.json"):
        assert (compiled / name).samefile(bulk / name)
    log.put("c", "n > 100")
    pinned = source.pin(10)
    assert len(pinned.changes) == 1  # on top of it
    assert source.view(10).nodes(ROWS.select(["n"])).to_pylist()[3] == [3]
    assert log.bulk_at(10) is None
    more = Attributes({"n": "integer", "m": "integer"})
    assert log.declare(more) == 11
    source.view(11)  # compiled with the new attributes
    assert not (path_of(source.home, 11, more) / "nodes.arrow").samefile(bulk / "nodes.arrow")
    with pytest.raises(DeclarationError, match=r"compiled with other attributes: 'n' is double h"):
        log.adopt(Snapshot.build({"z": "n > 7"}, Attributes({"n": "double"})))
    source.close()
    found = read_format(tmp_path)
    assert found is not None
    assert found.format == CURRENT


@pytest.mark.parametrize("reopens", [False, True])
def test_a_bulk_of_an_older_language_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopens: bool
) -> None:
    """Also if the snapshot that was adopted was older than the release that adopted it."""
    log = ChangeLog(tmp_path / "log")
    with monkeypatch.context() as older:
        older.setattr(snapshot_module, "LANGUAGE", LANGUAGE - 1)
        snapshot = Snapshot.build({f"b{k}": f"n > {k}" for k in range(9)})
        if reopens:
            snapshot.save(tmp_path / "file")
            older.undo()
            snapshot = Snapshot.open(tmp_path / "file")
        version = log.adopt(snapshot)
    bulk = log.bulk_at(version)
    assert bulk is not None
    compiled = compile_version(log, version, tmp_path / "home")
    for name in ("nodes.arrow", "index/manifest.json"):
        assert not (compiled / name).samefile(bulk / name)
    assert Snapshot.open(compiled).language == LANGUAGE
    assert Snapshot.open(compiled).nodes_by_id() == Snapshot.open(bulk).nodes_by_id()


def test_the_log_has_one_entry(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    log.put("a", "n > 1")
    before = sum(path.stat().st_size for path in tmp_path.glob("*.log"))
    log.adopt(Snapshot.build({f"b{k}": f"n > {k}" for k in range(500)}), owner="loader")
    assert sum(path.stat().st_size for path in tmp_path.glob("*.log")) < before + 200
    log.put("b7", "n > 7000")
    log.forget_before(log.version)
    assert (tmp_path / "checkpoint").stat().st_size < 1_000
    assert Counter(log.state().owners.values()) == {"loader": 500}
    log.put("b8", "n > 8", owner="ana")
    assert Counter(ChangeLog(tmp_path).state().owners.values()) == {"loader": 499, "ana": 1}
    assert log.subscriptions()["a"] == ("n > 1", 1)
    assert log.subscriptions()["b1"] == ("n > 1", 1)  # the node of before


@pytest.mark.parametrize(
    ("first", "more", "sentence"),
    [
        ({"a": "x > 1"}, {"a": "x > 2"}, "the id 'a' has a subscription in '.*' already; drop"),
        ({"a": "x > 1"}, {1: "x > 2"}, "found the integer 1 as an id, but the ids"),
        ({"a": "x > 1"}, {"node 7": "x > 2"}, "found the id 'node 7', expected another"),
    ],
)
@pytest.mark.parametrize("adopted", [False, True])
def test_ids_that_are_refused(
    tmp_path: Path, first: Any, more: Any, sentence: str, adopted: bool
) -> None:
    log = ChangeLog(tmp_path)
    log.adopt(Snapshot.build(first)) if adopted else log.put_many(first)
    with pytest.raises(TidingsError, match=sentence):
        log.adopt(Snapshot.build(more))
    assert log.version == 1
    assert [path.name for path in tmp_path.glob("bulks/*")] == ([] if not adopted else [
        log.bulk_of(1).name
    ])  # fmt: skip


def test_changes_before_and_after_an_adoption(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    log.put("a", "x > 1")
    assert log.adopt(Snapshot.build({})) == 1  # nothing to adopt
    log.adopt(Snapshot.build({"b": "x > 2", "c": "x > 3"}))
    assert log.id_kind is str
    log.put("d", "x > 4")
    assert [one.version for one in log.changes(0, 1)] == [1]
    assert [(one.version, one.node) for one in log.changes(3)] == [(4, 4)]
    with pytest.raises(LogError, match="version 3 adopted a whole snapshot, with the nodes from 2"):
        log.changes(0)
    assert log.id_kind is str
    first, adopted, last = log.entries(0)
    assert isinstance(first, Change)
    assert isinstance(last, Change)
    assert (first.id, last.id) == ("a", "d")
    assert adopted == Adoption(3, 2, 2)
    assert log.entries(0, 2) == [first]
    assert log.entries(3) == [last]


def test_an_owner_dies_and_somebody_adopts_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command finds its change among what came since."""
    owner, command = ChangeLog(tmp_path), ChangeLog(tmp_path)
    assert owner.own()
    answer = change_requests._await_answer

    def die(link: socket.socket, greeting: Greeting) -> int:
        monkeypatch.setattr(change_requests, "_await_answer", answer)
        assert answer(link, greeting) == 1
        owner.close()
        assert ChangeLog(tmp_path).adopt(Snapshot.build({"b": "n > 2", "c": "n > 3"})) == 3
        raise EOFError

    monkeypatch.setattr(change_requests, "_await_answer", die)
    assert command.put("a", "n > 1") == 1
    assert command.version == 3
    assert sorted(command.subscriptions()) == ["a", "b", "c"]


def test_a_shared_node_that_ended_does_not_come_back(tmp_path: Path) -> None:
    """The bulk still says that it shared the node."""
    log = ChangeLog(tmp_path)
    log.put("a", "x > 1")
    log.adopt(Snapshot.build({"b": "x > 1", "c": "x > 2"}))
    log.drop("a")
    log.drop("b")
    log.forget_before(log.version)
    known = KnownLog(GroupLog(tmp_path), state_of(tmp_path), lambda *_: None)
    assert dict(known.uses) == {3: 1}
    again = ChangeLog(tmp_path).put("d", "x > 1")
    assert log.subscriptions()["d"] == ("x > 1", again)


@pytest.mark.parametrize("forgets", [False, True])
def test_a_damaged_bulk_is_noticed_and_given_up(tmp_path: Path, forgets: bool) -> None:
    folder = tmp_path / "before"
    log = ChangeLog(folder)
    log.put("a", "x > 1")
    version = log.adopt(Snapshot.build({"b": "x > 2", "c": "x > 3", "d": "x > 1"}))
    log.put("b", "x > 20")
    good = log.adopt(Snapshot.build({"e": "x > 3"}))
    if forgets:
        log.forget_before(log.version)
    assert log.repair().problems == []
    (log.bulk_of(version) / "order.arrow").unlink()
    folder = folder.rename(tmp_path / "moved")  # another path, so it is opened again
    log = ChangeLog(folder)
    sentence = r"subscriptions of the channel are damaged: .*; restore .*subscriptions repair"
    for attempt in (log.subscriptions, lambda: log.put("f", "x > 9")):
        with pytest.raises(LogError, match=sentence):
            attempt()
    done = log.repair()
    assert len(done.problems) == 1
    assert done.lost == [(2, version)]
    left = {"a": ("x > 1", 1), "b": ("x > 20", version + 1), "e": ("x > 3", 3)}
    assert log.subscriptions() == ChangeLog(folder).subscriptions() == left
    journal = FileJournal(folder)
    assert [node for node, _ in journal.interests()] == [1, 3, version + 1]
    journal.close()
    assert log.put("f", "x > 2") > good  # no number is used again
    assert log.subscriptions()["f"][1] == log.version
    assert log.repair().problems == []


def test_a_rendezvous_point_does_not_start_without_a_bulk(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "before")
    log.put("a", "x > 1")
    version = log.adopt(Snapshot.build({"b": "x > 2", "c": "x > 3"}))
    shutil.rmtree(log.bulk_of(version))
    shutil.move(log.path, tmp_path / "moved")
    for _ in range(2):
        with pytest.raises(
            EnvironmentProblem, match=r"are damaged: .* give up the damaged .* repair"
        ):
            FileJournal(tmp_path / "moved")
    assert len(ChangeLog(tmp_path / "moved").repair().problems) == 1
    journal = opened(tmp_path / "moved", 7)
    assert not journal.losses
    assert journal.interests() == [(1, b"x > 1")]
    assert journal.last_node >= version
    journal.close()
    assert ChangeLog(tmp_path / "moved").subscriptions() == {"a": ("x > 1", 1)}


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("name", ["manifest.json", "order.arrow", "index/manifest.json"])
def test_a_passing_error_gives_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, forgets: bool
) -> None:
    """Neither a start nor a repair: the files may be intact."""
    log = ChangeLog(tmp_path / "before")
    log.put("a", "x > 1")
    bulk = log.bulk_of(log.adopt(Snapshot.build({"b": "x > 2", "c": "x > 3"})))
    if forgets:
        log.forget_before(log.version)
    expected = log.subscriptions()
    assert (bulk / name).exists()
    folder = log.path.rename(tmp_path / "moved")  # another path, so it is opened again
    opens = io.open

    def fail(path: Any, *rest: Any, **more: Any) -> Any:
        if str(path).endswith(name) and "bulks" in str(path):
            raise OSError(errno.EMFILE, "Too many open files")
        return opens(path, *rest, **more)

    with monkeypatch.context() as patched:
        patched.setattr(io, "open", fail)
        for attempt in (lambda: FileJournal(folder), ChangeLog(folder).repair):
            with pytest.raises(TidingsError, match=r"can't be read now: .*Too many open files"):
                attempt()
    journal = opened(folder, 7)
    assert not journal.losses
    journal.close()
    assert ChangeLog(folder).subscriptions() == expected


def test_a_file_that_can_not_be_read_is_not_a_damaged_one(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot"
    Snapshot.build({"a": "x > 1"}).save(snapshot)
    manifest = snapshot / "index" / "manifest.json"
    manifest.unlink()
    manifest.mkdir()  # the system refuses to read it
    with pytest.raises(UnreadableSnapshot, match=r"manifest.json can't be read: Is a directory"):
        identity_of(snapshot)
    manifest.rmdir()
    with pytest.raises(SnapshotError, match="is not a snapshot: it has no manifest") as found:
        identity_of(snapshot)
    assert not isinstance(found.value, UnreadableSnapshot)


def layer_of(found: dict[int, str]) -> Layer[int, str]:
    return Layer(found.get, lambda: iter(found.items()), len(found), set())


def test_layers_are_like_dictionaries(seed: int) -> None:
    rng = random.Random(f"{seed} layers")
    plain: dict[int, str] = {}
    layered: Layered[int, str] = Layered({})
    for step in range(300):
        key = rng.randrange(30)
        if step in (50, 150):
            more = {one: f"layer {step}" for one in range(20) if one not in plain}
            layered.layers.append(layer_of(more))
            plain |= more
        elif rng.random() < 0.5:
            plain[key] = layered[key] = str(step)
        else:
            assert plain.pop(key, None) == layered.pop(key, None)
        assert dict(layered.items()) == plain
        assert len(layered) == len(plain)
        assert layered.get(key) == plain.get(key)
        assert sorted(layered) == sorted(plain)


def test_a_rendezvous_point_changes_adopted_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sets owners and removes nodes; checkpoints keep both, and later writers know them."""
    log = ChangeLog(tmp_path)
    log.adopt(Snapshot.build({f"b{k}": f"n > {k}" for k in range(5)}))
    journal = opened(tmp_path, 7)
    journal.set_owners(2, ("ana",))
    base = journal.history.base
    journal.drop_node(4, RemovedNode(base + 1))
    monkeypatch.setattr(upkeep, "CHECKPOINT_BYTES", 1)
    write(journal)
    journal.close()
    assert (tmp_path / "checkpoint").exists()
    for _ in range(2):
        journal = opened(tmp_path, 8)
        assert [node for node, _ in journal.interests()] == [1, 2, 3, 5]
        memory = journal.memory([Placed(node, (), ()) for node in (1, 2, 3, 5)])
        assert memory.owners == {2: ("ana",)}
        journal.close()
    assert log.put("c", "n > 1") > base  # its node lives
    assert log.subscriptions()["c"][1] == 2
    assert log.put("d", "n > 3") == log.subscriptions()["d"][1]  # this one is new
    log.drop("b1")
    log.drop("c")
    assert log.put("e", "n > 1") > 0
    assert log.subscriptions()["e"][1] == 2  # the rendezvous point has not ended it
    assert log.state().identities == ChangeLog(tmp_path).state().identities


def test_a_pipeline_gives_up_the_folder_and_a_rendezvous_point_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = ChangeLog(tmp_path)
    assert owner.own()
    assert owner.adopt(Snapshot.build({"a": "x > 1"})) == 1
    assert ChangeLog(tmp_path).put("b", "x > 1") == 2  # the owner makes this change
    assert ChangeLog(tmp_path).adopt(Snapshot.build({"c": "x > 1", "d": "x > 2"})) == 4
    assert owner_of(tmp_path) is None
    assert owner.put("e", "x > 2") == 5
    nodes = {id_: node for id_, (_, node) in owner.subscriptions().items()}
    assert nodes == {"a": 1, "b": 1, "c": 1, "d": 4, "e": 4}
    owner.close()
    journal = opened(tmp_path, 7)
    monkeypatch.setattr(change_requests, "PATIENCE", 0.1)
    with pytest.raises(LogError, match=r"owns .* and accepts no changes from commands"):
        owner.adopt(Snapshot.build({"f": "x > 1"}))  # this one does not listen
    journal.close()
    assert owner.adopt(Snapshot.build({"f": "x > 9"})) > 5


def test_a_failed_adoption_leaves_the_channel_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ChangeLog(tmp_path)
    log.put("a", "x > 1")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(GroupLog, "append", fail)
        with pytest.raises(LogError, match=r"the log can't be written: .*No space left"):
            log.adopt(Snapshot.build({"b": "x > 2"}))
        assert not [*tmp_path.glob("bulks/*")]
        patched.setattr(bulks_module.bulk_writer, "sync", fail)
        with pytest.raises(LogError, match=r"the log can't be written: .*No space left"):
            log.adopt(Snapshot.build({"b": "x > 2"}))
    assert not [*tmp_path.glob("bulks/*")]
    assert log.subscriptions() == {"a": ("x > 1", 1)}
    assert log.adopt(Snapshot.build({"b": "x > 2"})) == 2
    assert ChangeLog(tmp_path).subscriptions() == {"a": ("x > 1", 1), "b": ("x > 2", 2)}


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    first = log.bulk_of(log.adopt(Snapshot.build({"a": "x > 1"})))
    for adopts in (False, True):
        shutil.copytree(first, tmp_path / "bulks" / "00000000000000000002-left")
        (tmp_path / "bulks" / ".00000000000000000002-half.x").mkdir()
        if adopts:
            second = log.bulk_of(log.adopt(Snapshot.build({"b": "x > 2"})))
            assert {*tmp_path.glob("bulks/*")} == {first, second}
        else:
            log.forget_before(log.version)
            assert {*tmp_path.glob("bulks/*")} == {first}
    assert sorted(ChangeLog(tmp_path).subscriptions()) == ["a", "b"]


def test_an_adoption_that_may_be_in_the_log_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, append = ChangeLog(tmp_path), GroupLog.append

    def fail(self: GroupLog, *rest: Any) -> None:
        append(self, *rest)
        raise LostEnd("the log can't be written")

    with monkeypatch.context() as patched:
        patched.setattr(GroupLog, "append", fail)
        with pytest.raises(LogError, match="until then it accepts no changes"):
            log.adopt(Snapshot.build({"a": "x > 1"}))
    assert ChangeLog(tmp_path).subscriptions() == {"a": ("x > 1", 1)}


@pytest.mark.parametrize("root", [False, True])
def test_a_bulk_of_which_nothing_is_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: bool
) -> None:
    """By whoever writes the next checkpoint. A reader that has read the one before reads again."""
    log = ChangeLog(tmp_path)
    log.put("a", "n > 7")
    last = log.adopt(Snapshot.build({f"b{k}": f"n > {k}" for k in range(3)}))
    bulk = log.bulk_of(last)
    log.adopt(Snapshot.build({"c": "n > 1"}))  # shares a node of the first
    for k in range(3):
        log.drop(f"b{k}")
    log.forget_before(log.version)
    assert bulk.exists()  # a node is used
    if root:
        opened(tmp_path, 7).close()
    log.drop("c")
    reader, reads = ChangeLog(tmp_path), checkpoint.read
    if root:
        journal = opened(tmp_path, 8)
        assert [node for node, _ in journal.interests()] == [1, 3]
        journal.drop_node(3, RemovedNode(journal.history.base + 1))
        journal.append(record(1, 1, bytes(10_000)))
        monkeypatch.setattr(upkeep, "CHECKPOINT_BYTES", 1)
        write(journal)
        assert [node for node, _ in journal.interests()] == [1]
        journal.close()
    else:
        late: list[None] = []

        def read(*rest: Any, **more: Any) -> JournalState:
            bulks_module.bulk._open.cache_clear()
            if not late:  # another process is faster
                late.append(None)
                data = (tmp_path / "checkpoint").read_bytes()
                log.forget_before(log.version)
                new = (tmp_path / "checkpoint").read_bytes()
                (tmp_path / "checkpoint").write_bytes(data)
                try:
                    return reads(*rest, **more)
                finally:
                    (tmp_path / "checkpoint").write_bytes(new)
            return reads(*rest, **more)

        with monkeypatch.context() as patched:
            patched.setattr(checkpoint, "read", read)
            assert reader.subscriptions() == {"a": ("n > 7", 1)}
    assert not [*tmp_path.glob("bulks/*")]
    fresh = ChangeLog(tmp_path)
    assert fresh.subscriptions() == log.subscriptions() == {"a": ("n > 7", 1)}
    assert fresh.put("d", "n > 1") == fresh.subscriptions()["d"][1] > last + 1
    assert fresh.repair().problems == []


def test_a_bulk_whose_entry_is_lost_is_moved_aside(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    bulk = log.bulk_of(log.adopt(Snapshot.build({"a": "x > 1"})))
    log.forget_before(log.version)
    flip_bit(tmp_path / "checkpoint")
    done = ChangeLog(tmp_path).repair()
    assert done.aside
    (left,) = Path(done.aside).glob(f"{bulk.name}.*")
    assert identity_of(left)
    assert not bulk.exists()
    assert ChangeLog(tmp_path).adopt(Snapshot.build({"a": "x > 1"})) > 1


@pytest.mark.parametrize("adopts", [False, True])
def test_who_begins_a_file_drops_old_ones_and_keeps_the_bulks(tmp_path: Path, adopts: bool) -> None:
    """The checkpoint has the bulks of dropped files, and what changed in them since."""
    log = ChangeLog(tmp_path / "log", segment_bytes=150)
    twin = ChangeLog(tmp_path / "twin", segment_bytes=150)
    bulk = Snapshot.build({f"b{k}": f"a > {k}" for k in range(9)})
    more = Snapshot.build({"c": "a > 1", "d": "a > 70"})
    for one in (log, twin):
        one.put("y", "a > 3")
        version = one.adopt(bulk, owner="loader")
        one.drop("b1")
        one.put("b2", "a > 20")
        begin_file(one)
        begin_file(one)
    kept = segments_of(log)[-1]
    make_older(log, segments_of(log)[:-1])
    for one in (log, twin):
        if adopts:  # an adoption that begins a file
            while (one.path / kept).stat().st_size < 150:
                one.put("y", "a > 3")
            one.adopt(more)
        else:
            begin_file(one)
    assert segments_of(log)[0] == kept
    assert len(segments_of(log)) < len(segments_of(twin))
    with pytest.raises(LogError, match="dropped"):
        log.changes(version)
    assert (log.bulk_of(version) / "nodes.arrow").exists()
    for one in (log, ChangeLog(log.path)):
        assert one.version == twin.version
        assert one.state() == twin.state()
    assert log.put("e", "a > 5") == twin.put("e", "a > 5")
    assert log.subscriptions()["e"] == twin.subscriptions()["e"]
    assert ChangeLog(log.path).repair().problems == []
