"""Which publications a rendezvous point accepts, and which claims of publishers it rejects."""

from __future__ import annotations

import pytest
from tests.routing.world import Disk, Sets

from tidings.routing.protocol import messages as m
from tidings.routing.root.publishing.stamps import MOST_FIRST
from tidings.routing.root.rendezvous import Rendezvous

LIFE = 5


def a_root() -> Rendezvous:
    disk = Disk()
    disk.begin_life(LIFE)
    return Rendezvous("root", Sets(disk), disk, disk.memory())


def publish(root: Rendezvous, stamp: int, first: int, who: str = "p") -> list[m.Published]:
    """Publish a point and sync; what the publisher is told."""
    sent = root.receive("n", m.Publish(who, stamp, first, bytes([1]), b"x"), 0.0)
    sent += root.mark_stored(root.written, 0.0)
    return [one for _, one in sent if isinstance(one, m.Published)]


def written(root: Rendezvous) -> list[int]:
    disk = root.journal
    assert isinstance(disk, Disk)
    return [what.stamp for kind, what in disk.log if kind == "record" and what.serial]


def test_acknowledgments_tell_the_serial() -> None:
    root = a_root()
    assert publish(root, 1, 1) == [m.Published(LIFE, "p", 1, since=1, serial=1)]
    assert publish(root, 1, 1, "q") == [m.Published(LIFE, "q", 1, since=1, serial=2)]
    assert publish(root, 2, 2) == [m.Published(LIFE, "p", 2, since=1, serial=3)]
    assert publish(root, 1, 1) == [m.Published(LIFE, "p", 2, since=1, serial=3)]  # said again


def test_a_jump_of_a_publisher_that_is_known() -> None:
    """One forged publication, and the victim's next were taken for some that were said before."""
    root = a_root()
    publish(root, 1, 1)
    for jump in (2**62, MOST_FIRST, 3):
        assert publish(root, jump, jump) == [m.Published(LIFE, "p", 0, expected=2)]
    assert publish(root, 2, 2) == [m.Published(LIFE, "p", 2, since=1, serial=2)]
    assert written(root) == [1, 2]


def test_a_stamp_that_was_made_up_does_not_lead_acknowledgments_astray() -> None:
    """They went to whoever spoke of the publisher last, and it said everything again."""
    root = a_root()
    publish(root, 1, 1)
    root.receive("n", m.Publish("p", 2, 2, bytes([1]), b"x"), 0.0)
    for stamp, first in ((2**62, 2**62), (2**62, 1), (1, 1)):
        root.receive("other", m.Publish("p", stamp, first, bytes([1]), b"x"), 0.0)
    sent = root.mark_stored(root.written, 0.0)
    assert ("n", m.Published(LIFE, "p", 2, since=1, serial=2)) in sent
    root.receive("moved", m.Publish("p", 3, 3, bytes([1]), b"x"), 0.0)  # to another router
    sent = root.mark_stored(root.written, 0.0)
    assert ("moved", m.Published(LIFE, "p", 3, since=1, serial=3)) in sent


def test_nothing_is_kept_of_publishers_that_are_refused_while_nothing_can_be_written() -> None:
    root = a_root()
    publish(root, 1, 1, "known")
    root.fail("the disk is full")
    for number in range(1000):
        (said,) = publish(root, 1, 1, f"p{number}")
        assert said.refusal == "the disk is full"
    assert len(root.stamps._skipped) <= 1
    for stamp in (2, 3, 4):  # one that is known goes on with the next
        (said,) = publish(root, stamp, stamp, "known")
        assert said.refusal == "the disk is full"
    for stamp in (1, 2, 3):  # and so does one that is not
        (said,) = publish(root, stamp, stamp, "p7")
        assert said.refusal == "the disk is full"


def test_a_jump_of_one_that_is_not() -> None:
    root = a_root()
    assert publish(root, 7, 7) == [m.Published(LIFE, "p", 7, since=7, serial=1)]
    assert publish(root, 8, 8) == [m.Published(LIFE, "p", 8, since=7, serial=2)]
    (refused,) = publish(root, 2**62, 2**62, "q")
    assert refused.refusal.startswith("found 4,611,686,018,427,387,904 as the first stamp")
    assert set(root.publishers) == {"p"}
    assert publish(root, 1, 1, "q") == [m.Published(LIFE, "q", 1, since=1, serial=3)]


def test_a_mistake_of_ours_while_matching(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The stamp was advanced, and the repetition acknowledged though nothing was written."""
    root = a_root()
    publish(root, 1, 1)
    with monkeypatch.context() as broken:
        broken.setattr(Sets, "tag", lambda *_: 1 / 0)
        (refused,) = publish(root, 2, 2)
        assert refused.stamp == 2
        assert "could not match the notification" in refused.refusal
        assert root.publishers == {"p": 1}
        assert publish(root, 3, 2) == []  # it waits for the one before
        assert publish(root, 1, 1)[0].since == 1
    assert "ZeroDivisionError" in caplog.text
    assert publish(root, 2, 2) == [m.Published(LIFE, "p", 2, since=1, serial=2)]
    assert written(root) == [1, 2]


def test_going_on_after_a_mistake_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    root = a_root()
    publish(root, 1, 1)
    with monkeypatch.context() as broken:
        broken.setattr(Sets, "tag", lambda *_: 1 / 0)
        for stamp in (2, 3):
            assert publish(root, stamp, stamp)[0].refusal
    assert publish(root, 5, 5) == [m.Published(LIFE, "p", 0, expected=2)]
    assert publish(root, 4, 4) == [m.Published(LIFE, "p", 4, since=4, serial=2)]
    assert written(root) == [1, 4]
    # those that were refused are not among what is acknowledged with later ones
    assert publish(root, 5, 5) == [m.Published(LIFE, "p", 5, since=4, serial=3)]


def test_a_mistake_while_telling_does_not_keep_others_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root = a_root()
    with monkeypatch.context() as broken:
        broken.setattr(Rendezvous, "release", lambda *_: 1 / 0)
        root.receive("n", m.Ask(1, bytes([1])), 0.0)
        assert publish(root, 1, 1) == [m.Published(LIFE, "p", 1, since=1, serial=1)]
    assert publish(root, 2, 2) == [m.Published(LIFE, "p", 2, since=1, serial=2)]
    assert "could not send a notification" in caplog.text
    assert not root.queue


def test_a_mistake_while_placing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root = a_root()
    with monkeypatch.context() as broken:
        broken.setattr(Disk, "add_node", lambda *_: 1 / 0)
        ((_, answer),) = root.receive("n", m.Ask(1, bytes([1])), 0.0)
        assert isinstance(answer, m.Answer)
        assert "could not place the filter" in answer.refusal
    assert not len(root.graph)
    assert publish(root, 1, 1)[0].stamp == 1
    root.receive("n", m.Ask(2, bytes([1])), 0.0)
    assert len(root.graph) == 1
    assert "ZeroDivisionError" in caplog.text
