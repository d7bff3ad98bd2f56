"""The agent without `async`: in scripts, in threads, under a loop that runs already."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.broker.networks import FAST
from tests.repeats import amount
from tests.waiting import PATIENCE, eventually, waits_in

import tidings
from tidings.broker import Address, Door, RootNode
from tidings.model import EnvironmentProblem
from tidings.network.agent import Refusal
from tidings.network.blocking import (
    BlockingAgent,
    BlockingSubscription,
    blocking_agent,
    connect_blocking,
    interruptible_waits,
)
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.clients.subscriber import Delivery
from tidings.studies.host.ports import free_ports


class Root:
    """A rendezvous point in a thread of its own, that can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (self.port,) = free_ports(1)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="root")
        self.thread.start()
        self.node: RootNode | None = None

    @property
    def address(self) -> str:
        return f"tidings://127.0.0.1:{self.port}"

    def start(self) -> None:
        async def work() -> None:
            door = Door(Address("127.0.0.1", self.port), tokens={"secret": "*"})
            self.node = RootNode("root", self.folder / "journal.db", door, times=FAST)
            await self.node.start()

        asyncio.run_coroutine_threadsafe(work(), self.loop).result(PATIENCE)

    def stop(self) -> None:
        if self.node is not None:
            asyncio.run_coroutine_threadsafe(self.node.stop(), self.loop).result(PATIENCE)
            self.node = None

    def end(self) -> None:
        self.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    before = set(threading.enumerate())
    one = Root(tmp_path)
    one.start()
    yield one
    one.end()
    left = {thread for thread in set(threading.enumerate()) - before if thread.is_alive()}
    shared = ("asyncio", "tidings-kernels")  # threads of the process, not of a root or an agent
    assert not {one.name for one in left if not one.name.startswith(shared)}


def connected(root: Root) -> BlockingAgent:
    return tidings.connect_blocking(root.address, token="secret", times=FAST)


def payload(one: object) -> bytes:
    assert isinstance(one, Delivery)
    return one.payload


def count_notifications(inbox: Collection[object]) -> int:
    return sum(isinstance(one, Delivery) for one in list(inbox))


def read_many(told: BlockingSubscription, count: int) -> list[bytes]:
    """The payloads of the next notifications; on a busy machine, the link may be interrupted."""
    found: list[bytes] = []
    while len(found) < count:
        one = told.next(PATIENCE)
        if not isinstance(one, Interrupted | Resumed):
            found.append(payload(one))
    return found


def test_the_same_verbs(root: Root) -> None:
    with connected(root) as agent, agent.subscribe("price > 90") as told:
        agent.publish({"price": 95.0}, b"dear")
        agent.publish({"price": 5.0}, b"cheap")
        agent.publish({"price": 96.0}, b"dearer")
        for one in told:
            assert payload(one) == b"dear"
            break
        assert payload(told.next(PATIENCE)) == b"dearer"
        started = time.monotonic()
        assert told.next(timeout=0.1) is None
        assert 0.05 < time.monotonic() - started < PATIENCE


def test_a_name_is_given_up(root: Root) -> None:
    with connect_blocking(root.address, token="secret", name="reader", times=FAST) as agent:
        with agent.subscribe("n > 0", name="mine"):
            pass
        agent.publish({"n": 1}, b"kept")
        agent.drop_named("mine", PATIENCE)
        with agent.subscribe("n > 5", name="mine") as told:  # the name is free for another filter
            agent.publish({"n": 7}, b"7")
            assert payload(told.next(PATIENCE)) == b"7"


def test_a_filter_that_can_never_match_gets_a_word(root: Root) -> None:
    with connect_blocking(root.address, token="secret") as agent:
        for _ in range(2):  # of a new node, and of one that is there
            with agent.subscribe("n > 5 AND n < 3") as told:
                assert told.never
                assert told.note == (
                    "the filter can never match: no value of n is both > 5 and < 3"
                )
        with agent.subscribe("n IS NULL OR n IS NOT NULL") as told:
            assert not told.never
            assert told.note == "the filter matches every event, whatever the value of n is"
        with agent.subscribe("n > 5") as told:
            assert (told.note, told.never) == ("", False)


def test_under_a_loop_that_runs(root: Root) -> None:
    """As in a notebook."""

    async def cell() -> None:
        with connected(root) as agent, agent.subscribe("n > 0") as told:
            agent.publish({"n": 1}, b"1")
            assert payload(told.next(PATIENCE)) == b"1"

    asyncio.run(cell())


def test_errors_are_those_of_the_asynchronous_agent(root: Root) -> None:
    with pytest.raises(Refusal, match="the token is not known here"):
        connect_blocking(root.address, token="wrong")
    with pytest.raises(EnvironmentProblem, match="can't connect to"):
        connect_blocking("tidings://127.0.0.1:1")
    with pytest.raises(EnvironmentProblem, match="expected one such as"):
        connect_blocking("http://127.0.0.1")
    agent = connected(root)
    with pytest.raises(Refusal, match="expected"):
        agent.subscribe("price >")
    with pytest.raises(Refusal, match="found attributes of 20,000,"):
        agent.publish({"n": "x" * 20_000_000})
    with pytest.raises(Refusal, match="found a value of type object"):
        agent.publish({"n": object()})
    agent.publish({"n": 1})
    agent.close()
    agent.close()
    for work in (lambda: agent.publish({"n": 1}), lambda: agent.subscribe("n > 0")):
        with pytest.raises(Refusal, match="the agent is closed"):
            work()


def test_many_at_once(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_agent, "MOST_UNDER_WAY", 100)
    with connected(root) as agent, agent.subscribe("n >= 0") as told:
        assert agent.publish_many(({"n": n}, b"%d" % n) for n in range(2000)) == 2000
        assert [payload(told.next(PATIENCE)) for _ in range(2000)] == [
            b"%d" % n for n in range(2000)
        ]
        assert agent.publish_many([]) == 0


def test_the_first_of_many_that_is_refused(root: Root) -> None:
    with connected(root) as agent, agent.subscribe("n >= 0") as told:
        notifications: list[tuple[dict[str, object], bytes]] = [
            ({"n": 1}, b"1"),
            ({"n": "x" * 20_000_000}, b"2"),
            ({"n": 3}, b"3"),
        ]
        with pytest.raises(Refusal, match="notification 2: found attributes of 20,000,"):
            agent.publish_many(notifications)
        assert payload(told.next(PATIENCE)) == b"1"


def test_who_reads_late_gets_everything(root: Root) -> None:
    """At most `most` notifications wait in the process; the others stay at the rendezvous point."""
    with connected(root) as agent:
        for one in (agent, agent.channel("")):
            with one.subscribe("n >= 0", most=50) as late:
                assert one.publish_many(({"n": n}, b"%d" % n) for n in range(500)) == 500
                inbox = late._subscription.inbox
                eventually(lambda: count_notifications(inbox) >= 50)
                time.sleep(0.5)  # several beats, in which more could be requested
                assert count_notifications(inbox) == 50
                assert read_many(late, 500) == [b"%d" % n for n in range(500)]


def test_attributes_may_change_after_publishing(root: Root) -> None:
    with connected(root) as agent, agent.subscribe("n = 1") as told:
        attributes = {"n": 1}
        done = [agent.publish_soon(attributes, b"1")]
        attributes["n"] = 2
        wait(done)
        assert payload(told.next(PATIENCE)) == b"1"


def test_threads(root: Root) -> None:
    each, threads = 200, 8
    with connected(root) as agent, agent.subscribe("n >= 0") as told:

        def work(thread: int) -> list[bytes]:
            for n in range(each):
                agent.publish_soon({"n": n}, b"%d-%d" % (thread, n))
            return [payload(told.next(120)) for _ in range(each)]

        with ThreadPoolExecutor(threads) as pool:
            found = [one for part in pool.map(work, range(threads)) for one in part]
    assert sorted(found) == sorted(b"%d-%d" % (t, n) for t in range(threads) for n in range(each))


def test_leaving_waits_for_what_was_published(root: Root) -> None:
    with connected(root) as agent:
        done = [agent.publish_soon({"n": n}) for n in range(500)]
    assert all(one.done() and one.exception() is None for one in done)


def test_closing_ends_everything_that_waits(root: Root) -> None:
    agent = connected(root)
    told = agent.subscribe("n > 0")
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(list, told) for _ in range(3)]
        root.stop()
        never = agent.publish_soon({"n": 1})
        asking: Future[object] = pool.submit(agent.subscribe, "n > 1")
        # each in its thread; in `next` readers wait for an item, in `wait` for the agent
        eventually(lambda: all(waits_in(one.ident or 0, "next", "wait") for one in pool._threads))
        assert not any(one.done() for one in readers)
        assert not never.done()
        assert not asking.done()
        agent.close()
        found = [item for one in readers for item in one.result(PATIENCE)]
        assert all(isinstance(item, Interrupted) for item in found)
        with pytest.raises(Refusal, match="closed before the notification was acknowledged"):
            never.result(PATIENCE)
        with pytest.raises(Refusal, match="the agent is closed"):
            asking.result(PATIENCE)
    assert told.next() is None


def test_a_root_that_is_started_again(root: Root) -> None:
    with connected(root) as agent, agent.subscribe("n > 0") as told:
        root.stop()
        waiting = agent.publish_soon({"n": 1}, b"1")
        root.start()
        waiting.result(PATIENCE)
        assert isinstance(told.next(PATIENCE), Interrupted)
        rest = [told.next(PATIENCE), told.next(PATIENCE)]
        assert len([one for one in rest if isinstance(one, Resumed)]) == 1
        assert [one.payload for one in rest if isinstance(one, Delivery)] == [b"1"]


def test_without_order_until_it_is_dropped(root: Root) -> None:
    """An interruption that is too long ends the subscription, and what came before can be read."""
    with (
        connected(root) as agent,
        agent.subscribe("n > 0", order="none", drop_after=0.2) as told,
        agent.subscribe("n > 0", fast=True) as fast,
    ):
        agent.publish_many(({"n": 1}, b"%d" % number) for number in range(3))
        agent.publish({"n": 1}, b"fast", fast=True)
        expected = [b"0", b"1", b"2", b"fast"]
        assert sorted(payload(fast.next(PATIENCE)) for _ in range(4)) == expected
        root.stop()
        items = list(told)
        assert sorted(payload(one) for one in items if isinstance(one, Delivery)) == expected
        assert isinstance(items[-2], Interrupted)
        assert isinstance(items[-1], tidings.Break)
        assert "was dropped after an interruption of more than 0.2 seconds" in items[-1].reason
        assert told.next() is None
        root.start()


def test_what_is_done_in_the_thread_of_the_agent_can_not_wait(root: Root) -> None:
    found: Future[BaseException | None] = Future()
    with connected(root) as agent:

        def after(_: Future[int]) -> None:
            try:
                agent.publish({"n": 2})
            except EnvironmentProblem as problem:
                found.set_result(problem)

        agent.publish_soon({"n": 1}).add_done_callback(after)
        assert "can't wait for itself" in str(found.result(PATIENCE))


def test_ctrl_c_never_leaves_a_lock_locked() -> None:
    """A plain condition is found locked after a tenth of such interrupts, or more."""

    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    condition = interruptible_waits.Condition()
    before = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        for _ in range(100):
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0.001)
                while True:
                    with condition:
                        pass
            except Interrupted:
                assert not condition._is_owned()
    finally:
        signal.signal(signal.SIGVTALRM, before)


def test_ctrl_c_just_before_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread whose wait is about to begin notices it too. Without a limit on each wait, it
    notices nothing in one of 30 rounds or so, and waits forever."""

    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    monkeypatch.setattr(interruptible_waits, "LONGEST_WAIT", 0.05)
    main, begins, noticed = threading.get_ident(), threading.Semaphore(0), threading.Semaphore(0)
    told = BlockingSubscription(
        SimpleNamespace(check_thread=lambda: None),
        SimpleNamespace(inbox=deque()),  # type: ignore[arg-type]
    )
    condition = interruptible_waits.Condition()

    def wait_for_condition() -> None:
        with condition:
            begins.release()
            condition.wait()

    def wait_for_item() -> None:
        begins.release()
        told.next()

    todo = [wait_for_item] * amount(150, 2_000) + [wait_for_condition] * amount(50, 1_000)

    def watch() -> None:
        for _ in todo:
            begins.acquire()
            while not waits_in(main, "next", "wait"):
                pass
            signal.pthread_kill(main, signal.SIGUSR1)
            if not noticed.acquire(timeout=PATIENCE):
                for one in (told._news, condition):
                    with one:
                        one.notify()

    watching = threading.Thread(target=watch, daemon=True)
    before, every = signal.signal(signal.SIGUSR1, interrupt), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        watching.start()
        for one in todo:
            with pytest.raises(Interrupted):
                one()
            noticed.release()
    finally:
        sys.setswitchinterval(every)
        signal.signal(signal.SIGUSR1, before)
    watching.join()


# -- whole processes -----------------------------------------------------------------------------

SCRIPT = """
import signal, sys, threading
from tests.waiting import eventually, waits_in
import tidings
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
agent = tidings.connect_blocking(sys.argv[1], token="secret")
told = agent.subscribe("n > 0")
print("ready", flush=True)
def many():
    for n in range(100_000):
        if n == 10_000:  # no more are published before some are acknowledged
            print("many", flush=True)
        yield {"n": n}, b""
begins = threading.Event()
def say_when_it_waits():
    main = threading.main_thread().ident
    begins.wait()
    eventually(lambda: waits_in(main, "next", "wait"))
    print("waiting", flush=True)
"""
AFTER = """
print("interrupted", flush=True)
agent.close()
print([one.name for one in threading.enumerate()], flush=True)
"""


def started(root: Root, script: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script, root.address], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    "waiting",
    ["for one in told: pass", "[told.next(), told.next()]", "agent.publish({'n': 1})",
     "agent.publish_many(many())", "agent.subscribe('n > 7')"],
)  # fmt: skip
def test_ctrl_c_while_it_waits(root: Root, waiting: str) -> None:
    body = f"""
watching = threading.Thread(target=say_when_it_waits)
watching.start()
sys.stdin.readline()
try:
    begins.set()
    {waiting}
except KeyboardInterrupt:
    watching.join()
"""
    process = started(root, SCRIPT + body + AFTER)
    root.stop()  # so that nothing is acknowledged
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert "many" not in waiting or process.stdout.readline() == "many\n"
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert out == "interrupted\n['MainThread']\n"
    assert err == ""
    assert process.returncode == 0


@pytest.mark.parametrize("how", ["", "sys.exit(3)", "raise ValueError('meant')"])
def test_an_interpreter_that_ends_without_closing(root: Root, how: str) -> None:
    process = started(root, f"{SCRIPT}agent.publish_soon({{'n': 1}})\n{how}\n")
    try:
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == {"": 0, "sys.exit(3)": 3}.get(how, 1)
    assert err == "" or how.startswith("raise")
