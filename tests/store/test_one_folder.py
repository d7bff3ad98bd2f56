"""One folder, one log: commands and pipelines, and a rendezvous point, in turn and at once."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from tests.store.test_journal import opened, record, write

from tidings import parse
from tidings.channel.interests import ArrayInterests
from tidings.model import EnvironmentProblem, TidingsError
from tidings.routing.protocol import pack_interest
from tidings.routing.root.interests import Placed
from tidings.routing.root.node_history import RemovedNode
from tidings.spark.pipeline.subscription_source import FollowedSubscriptions
from tidings.store import Change, ChangeLog, LogError
from tidings.store.folder import FORMAT, read_format
from tidings.store.journal import FileJournal, Retention, journal as module, log_segments
from tidings.store.journal.upkeep import upkeep
from tidings.store.owner import change_requests

JOURNAL = Path(__file__).parent / "before" / "journal-2"
PATTERN = '{"n": [{"numeric": [">", 5]}]}'


def interests_of(journal: FileJournal) -> ArrayInterests:
    return ArrayInterests(interests=journal.interests(), last=journal.history.base)


def test_subscriptions_of_commands_are_nodes_of_the_rendezvous_point(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    log.put("a", "n > 1")
    log.put("b", "NOT (n <= 1)")  # the same filter
    log.put("c", PATTERN, "eventbridge")
    log.put("d", "n > 9")
    log.drop("d")
    journal = opened(tmp_path, 7)
    assert journal.interests() == [
        (1, b"n > 1"),
        (3, pack_interest(PATTERN.encode(), "eventbridge")),
    ]
    assert journal.history.version == journal.version == 5
    memory = journal.memory([Placed(1, (), ()), Placed(3, (1,), ())])
    assert memory.held == {1, 3}
    interests = interests_of(journal)
    assert interests.place(b"1 < n").node == 1
    assert interests.place(b"n > 20").node > 5  # the numbers of a life are higher
    journal.close()
    assert ChangeLog(tmp_path).subscriptions() == {
        "a": ("n > 1", 1), "b": ("NOT (n <= 1)", 1), "c": (PATTERN, 3),
    }  # fmt: skip


@pytest.mark.parametrize("forgets", [False, True])
def test_the_ids_of_nodes_stay_reserved_after_a_checkpoint(tmp_path: Path, forgets: bool) -> None:
    log = ChangeLog(tmp_path)
    log.put(5, "n > 1")
    journal = opened(tmp_path, 7)
    node = journal.history.base + 1
    journal.add_node(node, b"n > 2")
    write(journal)
    journal.close()
    if forgets:
        log.forget_before(log.version)
    with pytest.raises(TidingsError, match=r"expected at least 0: negative ids"):
        ChangeLog(tmp_path).put(-node - 1, "n > 3")


def test_nodes_of_the_rendezvous_point_are_subscriptions_of_a_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_requests, "PATIENCE", 0.5)
    log = ChangeLog(tmp_path)
    log.put("a", "n > 1")
    journal = opened(tmp_path, 7)
    node = journal.history.base + 1
    journal.add_node(node, b"n > 2", "ana", parse("n > 2").key)
    journal.add_node(node + 1, b"n > 3")  # an older release stored no identity
    journal.append(record(1, node))
    write(journal)
    # a reader follows it while it runs
    assert log.version == node + 1
    assert log.subscriptions() == {
        "a": ("n > 1", 1),
        f"node {node}": ("n > 2", node),
        f"node {node + 1}": ("n > 3", node + 1),
    }
    journal.drop_node(node + 1, RemovedNode(node + 2))
    write(journal)
    assert log.changes(1) == [
        Change(node, f"node {node}", "n > 2", node, owner="ana"),
        Change(node + 1, f"node {node + 1}", "n > 3", node + 1),
        Change(node + 2, f"node {node + 1}", None, 0),
    ]
    with pytest.raises(LogError, match=r"^a running rendezvous point owns .* or stop it first$"):
        log.put("b", "n > 2")
    journal.close()
    assert log.put("b", "2 < n") == node + 3
    assert log.subscriptions()["b"] == ("2 < n", node)
    # agents may use it, so only the rendezvous point ends it
    log.drop("a")
    assert log.put("again", "n > 1") == node + 5
    assert log.subscriptions()["again"] == ("n > 1", 1)
    journal = opened(tmp_path, 8)
    assert [one for one, _ in journal.interests()] == [1, node]
    journal.close()


def test_one_owner_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_requests, "PATIENCE", 0.5)
    journal = opened(tmp_path, 1)
    with pytest.raises(EnvironmentProblem, match="another rendezvous point is using the journal"):
        FileJournal(tmp_path)
    log = ChangeLog(tmp_path)
    with pytest.raises(LogError, match="a running rendezvous point owns"):
        log.put("a", "n > 1")
    with pytest.raises(LogError, match="a running rendezvous point owns"):
        log.drop("a")
    with pytest.raises(LogError, match="can't be repaired: another rendezvous point is using"):
        log.repair()
    journal.close()
    assert log.put("a", "n > 1") == 1


def test_ids_of_nodes_are_reserved(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    with pytest.raises(TidingsError, match="found the id 'node 17', expected another"):
        log.put("node 17", "n > 1")
    log.put("node seventeen", "n > 1")


def test_a_folder_of_a_later_release_is_one_sentence(tmp_path: Path) -> None:
    ChangeLog(tmp_path).put("a", "n > 1")
    (tmp_path / FORMAT).write_text('{"format": 9, "identities": 2}')
    with pytest.raises(LogError, match=r"channel says .* expected format 5; use the release of"):
        _ = ChangeLog(tmp_path).version
    with pytest.raises(EnvironmentProblem, match=r"expected format 5; use the release of"):
        FileJournal(tmp_path)


def test_a_pipeline_reads_a_journal_of_an_older_release(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(JOURNAL, tmp_path / "journal"))
    shutil.copytree(JOURNAL, tmp_path / "other")
    log = ChangeLog(folder)
    found = log.subscriptions()
    assert read_format(folder) is not None
    journal = opened(tmp_path / "other", 99)
    expected = {f"node {node}": (text.decode(), node) for node, text in journal.interests()}
    assert found == expected
    assert len(found) > 1
    journal.close()
    assert log.put("new", "zzz = 1") == log.version
    assert log.subscriptions()["new"] == ("zzz = 1", log.version)
    journal = opened(folder, 100)
    assert (log.version, b"zzz = 1") in journal.interests()
    journal.close()


def test_integer_ids_of_nodes_of_the_rendezvous_point(tmp_path: Path) -> None:
    """If the ids of subscriptions are integers, such nodes have negative ones, also in a view."""
    log = ChangeLog(tmp_path)
    log.put_many({7: "n > 1", 8: "n > 5"})
    journal = opened(tmp_path, 7)
    node = journal.history.base + 1
    journal.add_node(node, b"n > 3", "ana", parse("n > 3").key)
    journal.add_node(node + 1, b"n > 90", "", parse("n > 90").key)
    journal.drop_node(node + 1, RemovedNode(node + 2))
    write(journal)
    assert log.subscriptions() == {7: ("n > 1", 1), 8: ("n > 5", 2), -node: ("n > 3", node)}
    assert [(one.id, one.filter) for one in log.changes(2)] == [
        (-node, "n > 3"), (-node - 1, "n > 90"), (-node - 1, None),
    ]  # fmt: skip
    rows = pa.record_batch({"n": [1, 4, 7]})
    pipeline = FollowedSubscriptions(tmp_path)
    found = pipeline.view(pipeline.version).subscriptions(rows).to_pylist()
    assert [sorted(one) for one in found] == [[], [-node, 7], [-node, 7, 8]]
    journal.close()
    assert log.id_kind is int
    with pytest.raises(TidingsError, match=rf"^found the id {-node}, expected at least 0"):
        log.put(-node, "n > 4")
    with pytest.raises(TidingsError, match=r"^found the text 'a' as an id"):
        log.put("a", "n > 4")
    assert log.put(9, "n > 3") == node + 3
    assert log.subscriptions()[9] == ("n > 3", node)
    changed = pipeline.view(pipeline.version).subscriptions(rows).to_pylist()  # by the changes
    assert [sorted(one) for one in changed] == [[], [-node, 7, 9], [-node, 7, 8, 9]]
    fresh = FollowedSubscriptions(tmp_path)
    fresh.compile_latest()
    again = fresh.view(fresh.version).subscriptions(rows).to_pylist()
    assert [*map(sorted, again)] == [*map(sorted, changed)]


def test_older_versions_beside_a_busy_rendezvous_point(
    tmp_path: Path, no_sync: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipeline gets the version that it pinned from its snapshot, or one sentence."""
    monkeypatch.setattr(module, "SEGMENT_BYTES", 600)
    monkeypatch.setattr(upkeep, "CHECKPOINT_BYTES", 1_500)
    monkeypatch.setattr(log_segments, "LINGER", 0.0)
    rows = pa.record_batch({"n": [1, 4, 7]})
    log = ChangeLog(tmp_path)
    log.put_many({"a": "n > 1", "b": "n > 5"})
    pipeline = FollowedSubscriptions(tmp_path)  # compiles version 2
    log.put("c", "n > 6")
    journal = opened(tmp_path, 7, Retention(bytes=1_000))
    node = journal.history.base
    for serial in range(1, 300):
        node += 1
        journal.add_node(node, b"n > %d" % (100 + serial), "", parse(f"n > {100 + serial}").key)
        journal.append(record(serial, node))
        journal.prune(serial)
        write(journal)
    expected = [[], ["a"], ["a", "b"]]
    assert [sorted(one) for one in pipeline.view(2).subscriptions(rows).to_pylist()] == expected
    with pytest.raises(
        LogError, match=r"^the state at version 3 was dropped, expected version \d+"
    ):
        pipeline.pin(3)
    with pytest.raises(LogError, match=r"version 3 of the log .* was dropped; the log has only"):
        log.changes(3)
    latest = pipeline.view(pipeline.version)
    assert sorted(latest.subscriptions(rows).to_pylist()[2]) == ["a", "b", "c"]
    assert len(latest.nodes(pa.record_batch({"n": [1_000]})).to_pylist()[0]) >= 1
    journal.close()


class Model:
    """What a channel should say: nodes and named subscriptions at each version."""

    def __init__(self) -> None:
        self.version, self.has_life = 0, False
        self.nodes: dict[int, str] = {}
        self.made: set[int] = set()  # by the rendezvous point
        self.named: dict[str, tuple[str, int]] = {}
        self.states: list[tuple[int, dict[str, tuple[str, int]]]] = [(0, {})]

    def take(self, version: int) -> None:
        assert version > self.version
        self.version = version
        both = self.named | {f"node {n}": (self.nodes[n], n) for n in sorted(self.made)}
        self.states.append((version, both))

    def node_of(self, text: str) -> int | None:
        return next((node for node, one in self.nodes.items() if one == text), None)

    def put(self, id_: str, text: str, version: int) -> None:
        node = self.node_of(text)
        if node is None:
            node = version
            self.nodes[node] = text
        self.named[id_], before = (text, node), self.named.get(id_)
        self._end(before)
        self.take(version)

    def drop(self, id_: str, version: int) -> None:
        self._end(self.named.pop(id_))
        self.take(version)

    def _end(self, before: tuple[str, int] | None) -> None:
        used = {node for _, node in self.named.values()}
        if before and before[1] not in used | self.made and not self.has_life:
            del self.nodes[before[1]]

    def at(self, version: int) -> dict[str, tuple[str, int]]:
        return next(found for one, found in reversed(self.states) if one <= version)


def test_against_a_model(
    tmp_path: Path, seed: int, no_sync: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands and lives of a rendezvous point in turn; a reader follows all of it."""
    monkeypatch.setattr(module, "SEGMENT_BYTES", 600)
    monkeypatch.setattr(upkeep, "CHECKPOINT_BYTES", 1_500)
    monkeypatch.setattr(log_segments, "LINGER", 0.0)
    rng, model, serial, floor = random.Random(seed), Model(), 0, 0
    texts = [f"a = {n}" for n in range(12)]
    follower, followed, seen = ChangeLog(tmp_path), dict[str | int, tuple[str, int]](), 0
    for life in range(1, 9):
        log = ChangeLog(tmp_path, segment_bytes=rng.choice([1, 300, 1 << 20]))
        for _ in range(rng.randrange(12)):
            id_ = f"s{rng.randrange(6)}"
            if id_ in model.named and rng.random() < 0.4:
                model.drop(id_, log.drop(id_))
            else:
                text = rng.choice(texts)
                model.put(id_, text, log.put(id_, text))
            assert log.version == model.version
        if rng.random() < 0.5 and model.version:
            floor = max(floor, rng.choice(model.states)[0])
            log.forget_before(floor)
        if rng.random() < 0.7:
            journal = opened(tmp_path, life, Retention(bytes=rng.choice([1_000, 1 << 20])))
            model.has_life = True
            last = journal.history.base
            assert dict(journal.interests()) == {n: t.encode() for n, t in model.nodes.items()}
            held = journal.memory([]).held
            assert held == {node for _, node in model.named.values()}
            for _ in range(rng.randrange(15)):
                free = [text for text in texts if model.node_of(text) is None]
                unused = [node for node in model.nodes if node not in held]
                last += 1
                if unused and rng.random() < 0.3:
                    node = rng.choice(unused)
                    journal.drop_node(node, RemovedNode(last))
                    del model.nodes[node]
                    model.made.discard(node)
                    model.take(last)
                elif free:
                    text = rng.choice(free)
                    journal.add_node(last, text.encode(), "", parse(text).key)
                    model.nodes[last] = text
                    model.made.add(last)
                    model.take(last)
                serial += 1
                journal.append(record(serial, max(model.nodes, default=7)))
                journal.prune(serial)
                write(journal)
                assert follower.version == model.version
            journal.close()
        # whoever follows has the state of the latest version, or is told that changes are gone
        said, changes = "", list[Change]()
        try:
            changes = follower.changes(seen)
        except LogError as problem:
            said, followed = str(problem), dict(follower.subscriptions())
        assert not said or "the log has only the changes after version" in said
        for one in changes:
            if one.filter is None:
                followed.pop(one.id, None)
            else:
                followed[one.id] = one.filter, one.node
        seen = follower.version
        assert followed == model.at(seen)
        for version, expected in rng.sample(model.states, min(6, len(model.states))):
            said, found = "", None
            try:
                found = ChangeLog(tmp_path).subscriptions(version)
            except LogError as problem:
                said = str(problem)
            assert "was dropped" in said if found is None else found == expected, version
        assert ChangeLog(tmp_path).subscriptions() == model.at(model.version)
