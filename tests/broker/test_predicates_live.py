"""Predicates in helper processes: good ones against the functions themselves, and ones that hang,
raise, or kill their process; then all of them in a running network."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.broker.networks import BRIEF, at, connect_writers, payloads, running
from tests.broker.processes import Process
from tests.broker.test_kinds_live import refusal_of, run
from tests.broker.test_preprocessors_live import Preprocessor, kill
from tests.broker.test_revisions_live import Reader
from tests.preprocessing.predicates_for_tests import NAMES, functions, install
from tests.waiting import PATIENCE, until, wait_for

from tidings.broker import Door, PreprocessorNode, RootNode
from tidings.broker.predicates import PredicateHelpers
from tidings.channel import ChannelLink
from tidings.filters import parse
from tidings.network import Refusal, connect
from tidings.network.agent import Subscription
from tidings.preprocessing import Decisions, KindDefinition, PredicateCall
from tidings.studies.host.ports import free_ports

FILE = """
name = "root"
listen = "127.0.0.1:{port}"
journal = "journal.db"
[preprocessor]
predicates = ["urgent", "odd", "fails", "hangs", "dies"]
predicate_millis = 2000
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The predicates, installed for all processes that a test starts."""
    found = install(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(found))
    monkeypatch.setenv("TIDINGS_DIES_ONCE", str(tmp_path / "died"))
    return found


class Asked:
    """Helpers, and the predicates that they want to switch off."""

    def __init__(self, version: str = "1.0", millis: int = 2000) -> None:
        self.decisions = Decisions()
        self.off: dict[str, str] = {}
        definition = KindDefinition(
            predicates=dict.fromkeys(NAMES, version), predicate_millis=millis
        )
        self.helpers = PredicateHelpers(definition, self.decisions, self._switch_off)

    async def _switch_off(self, name: str, reason: str) -> None:
        self.off[name] = reason

    async def __call__(self, name: str, *arguments: Any) -> Any:
        call = PredicateCall(name, arguments)
        await self.helpers.ask([call])
        return self.result(call) if call in self.decisions else "not decided"

    def result(self, call: PredicateCall) -> Any:
        return self.decisions.functions([call.name])[call.name](*call.arguments)


def test_results_are_those_of_the_functions(site: Path, seed: int) -> None:
    chance = random.Random(seed)
    direct: Any = functions()

    async def work() -> None:
        asked = Asked()
        calls = [PredicateCall("odd", (chance.randrange(10**30),)) for _ in range(100)]
        calls += [PredicateCall("odd", (n + 0.5,)) for n in range(5)]
        calls += [PredicateCall("urgent", ("!" * n + "é\ud800", 2)) for n in range(5)]
        await asked.helpers.ask(calls)
        for call in calls:
            assert asked.result(call) == direct[call.name](*call.arguments)
        assert [await asked("fails", n) for n in (3, 4, 5)] == [None, None, True]
        assert await asked("counts", 1) is None  # it returns a number
        assert asked.helpers.raised == 2
        assert not asked.off
        await asked.helpers.stop()

    run(work())


def test_bad_ones_do_not_stall_the_others(site: Path) -> None:
    async def work() -> None:
        asked = Asked()
        assert await asked("odd", 1) is True
        assert await asked("hangs", "abcd") is True
        slow = asyncio.create_task(asked("hangs", "do hang"))
        died = asyncio.create_task(asked("dies", "do die"))
        for n in range(20):
            assert await asked("odd", n) is (n % 2 == 1)
        assert not slow.done()
        assert await died == "not decided"
        assert await slow == "not decided"
        assert asked.off == {
            "hangs": "a call took longer than 2,000 ms, 3 times in a row",
            "dies": "its process ended with signal 9, 3 times in a row",
        }
        assert await asked("hangs", "abcde") is True  # the next caller gets a new process
        await asked.helpers.stop()

    run(work())


def test_a_failure_is_repeated_and_does_not_decide(site: Path) -> None:
    async def work() -> None:
        asked = Asked()
        assert await asked("dies_once", "a") is True
        assert not asked.off
        await asked.helpers.stop()

    run(work())


def test_predicates_that_cannot_be_loaded(site: Path) -> None:
    async def work() -> None:
        asked, other = Asked(), Asked("1.1")
        assert await asked("absent", 1) == "not decided"
        assert asked.off["absent"].startswith("it can't be loaded: AttributeError: ")
        assert await other("odd", 1) == "not decided"
        assert other.off["odd"] == (
            "it can't be loaded: RuntimeError: found version '1.0' here, expected version '1.1', "
            "3 times in a row"
        )
        await asked.helpers.stop()
        await other.helpers.stop()

    run(work())


def test_a_question_that_nobody_waits_for_any_more(site: Path) -> None:
    """Its answer is not taken for that of the next question."""

    async def work() -> None:
        asked = Asked(millis=60_000)
        assert await asked("hangs", "abcd") is True
        task = asyncio.create_task(asked("hangs", "hang"))
        await until((site / "installed_predicates.py.hangs").exists)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert await asked("hangs", "a") is False
        assert await asked("hangs", "abcde") is True
        assert not asked.off
        await asked.helpers.stop()

    run(work())


async def wait_for_end(told: Subscription) -> None:
    """Read a subscription until it raises an error; the items before say that it breaks."""
    async for _ in told:
        pass


def test_only_one_publisher_waits(site: Path, tmp_path: Path) -> None:
    """The event loop does not, nor do other publishers; those of the same publisher stay in
    order. The link of the publisher may end meanwhile."""
    kind = KindDefinition(predicates={"hangs": "1.0"}, predicate_millis=3000)

    async def work() -> None:
        root = RootNode("root", tmp_path / "j", Door(), kind=kind, times=BRIEF)
        await root.start()
        async with (
            connect(at(root), times=BRIEF) as reader,
            connect(at(root), times=BRIEF) as slow,
            connect(at(root), times=BRIEF) as gone,
            reader.subscribe("text LIKE '%a%'") as told,
            reader.subscribe("hangs(text) AND slow") as refused,
        ):
            first = slow.publish_soon({"text": "hang a", "slow": True}, b"first")
            second = slow.publish_soon({"text": "a"}, b"second")
            lost = gone.publish_soon({"text": "hang a too", "slow": True}, b"of one that leaves")
            await until(lambda: len(root._deciding) == 3)
            for n in range(5):
                await reader.publish({"text": f"a {n}"}, b"%d" % n)
            assert not first.done()
            assert not second.done()
            lost.cancel()
            await gone.close()
            await asyncio.gather(first, second)
            assert len(root._deciding) == 0
            assert await payloads(told, 7) == [b"0", b"1", b"2", b"3", b"4", b"first", b"second"]
            with pytest.raises(Refusal, match="the predicate 'hangs' is switched off: a call took"):
                await wait_for_end(refused)
            assert root.status(0).switched_off == "hangs"
        await root.stop()

    running(work)


def test_a_preprocessor_calls_predicates(site: Path, tmp_path: Path) -> None:
    """The rendezvous point does not, for what comes with a tag. If a predicate fails in the
    preprocessor, the rendezvous point calls it, and decides whether it is switched off."""
    kind = KindDefinition(predicates={"odd": "1.0", "dies": "1.0"})

    async def work() -> None:
        root = RootNode("root", tmp_path / "j", Door(), kind=kind, times=BRIEF)
        await root.start()
        asked: list[PredicateCall] = []
        ask = root._helpers.ask

        async def note(calls: Sequence[PredicateCall]) -> None:
            asked.extend(calls)
            await ask(calls)

        root._helpers.ask = note  # type: ignore[method-assign]
        async with (
            connect(at(root), tag="local", times=BRIEF) as tagger,
            connect(at(root), times=BRIEF) as reader,
            reader.subscribe("odd(n)") as told,
            reader.subscribe("dies(text)") as refused,
        ):
            node = PreprocessorNode("pre", tagger, Door(), times=BRIEF)
            await node.start()
            await until(lambda: tagger.view and len(tagger.view) == 2)
            async with connect(at(root), tag="preprocessor", times=BRIEF) as writer:
                assert await writer._preprocessors.wait_for_any(PATIENCE)
                expected: list[bytes] = []
                for n in itertools.count(step=6):
                    asked.clear()  # while its process starts, it may leave some to the root
                    for one in range(n, n + 6):
                        await writer.publish({"n": one}, b"%d" % one)
                        expected += [b"%d" % one] if one % 2 else []
                    if not asked:
                        break
                await tagger.publish({"n": -7}, b"-7")  # an agent has no processes for predicates
                assert asked == [PredicateCall("odd", (-7,))]
                assert await payloads(told, len(expected) + 1) == [*expected, b"-7"]
                await writer.publish({"n": -9, "text": "die"}, b"-9")
                assert PredicateCall("dies", ("die",)) in asked
                assert await payloads(told, 1) == [b"-9"]
                with pytest.raises(Refusal, match="the predicate 'dies' is switched off: its proc"):
                    await wait_for_end(refused)
            await node.stop()
        await root.stop()

    running(work)


def helpers_of(site: Path) -> list[int]:
    """The processes that call the predicates of a folder."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            has_site = os.fsencode(site) in (one / "environ").read_bytes()
            if has_site and b"helper_program.py" in (one / "cmdline").read_bytes():
                found.append(int(one.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_no_helper_outlives_its_parent(site: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    patient = FILE.replace("millis = 2000", "millis = 60_000")
    root = Process(tmp_path, "root", patient.format(port=port))

    async def work() -> None:
        async with (
            connect(f"tidings://127.0.0.1:{port}") as agent,
            agent.subscribe("hangs(text)", timeout=60),
        ):
            waiting = agent.publish_soon({"text": "hang"}, b"")
            await until(lambda: helpers_of(site))
            waiting.cancel()

    try:
        run(work())
    finally:
        kill(root)
    wait_for(lambda: not helpers_of(site))


FILTERS = {
    "urgent(text, 2)": True, "odd(n) AND region = 'EU'": True, "n > 3": True,
    "coalesce(fails(n), true)": True, "hangs(text) AND n > 8": False, "dies(text)": False,
}  # fmt: skip


def test_faults_of_a_pipeline_switch_a_predicate_off_once(site: Path, tmp_path: Path) -> None:
    root = Process(tmp_path, "root", FILE.format(port=0))
    try:
        with ChannelLink(f"tidings://127.0.0.1:{root.port}", name="spark", timeout=60) as link:

            def off() -> dict[str, str]:
                return KindDefinition.decode(link.describe().preprocessor).off

            link.report_fault("odd", "0.9", "an older version")  # it is not the one that is used
            link.report_fault("nobody", "", "there is no such predicate")
            version = link.changes().version
            for at in range(20):
                link.report_fault("odd", "1.0", f"it failed {at}")
            assert wait_for(off)
            assert off() == {"odd": "it failed 0 (at spark)"}
            link.report_fault("odd", "1.0", "again")
            assert link.changes().version > version
        log = (tmp_path / "root.log").read_text()
        assert log.count("the predicate 'odd' is switched off") == 1, log
    finally:
        kill(root)


def test_a_network_with_bad_predicates(tmp_path: Path, site: Path, seed: int) -> None:
    """Everyone gets exactly what `Filter.matches` says. Subscribers of the predicates that hang or
    die are told so, and a restart does not bring these back; another version does."""
    chance = random.Random(seed)
    (port,) = free_ports(1)
    root = Process(tmp_path, "root", FILE.format(port=port))
    tagging = Preprocessor(tmp_path, "tagging", port)
    direct: Any = functions()

    def null_if_raised(name: str) -> Any:
        def call(*values: Any) -> Any:
            try:
                return direct[name](*values)
            except RuntimeError:
                return None

        return call

    oracle = {name: null_if_raised(name) for name in ("urgent", "odd", "fails", "hangs", "dies")}
    good = {text: parse(text, functions=oracle) for text in FILTERS}
    expected: dict[str, list[bytes]] = {text: [] for text in FILTERS}
    number = 0

    def drawn() -> tuple[dict[str, Any], bytes]:
        nonlocal number
        number += 1
        event = {
            "n": chance.randrange(8), "text": chance.choice(["a", "!!b", "cccc!"]),
            "region": chance.choice(["EU", "US"]),
        }  # fmt: skip
        for text, one in good.items():
            if one.matches(event):
                expected[text].append(b"%d" % number)
        return event, b"%d" % number

    async def work() -> None:
        nonlocal root
        place = f"tidings://127.0.0.1:{port}"
        async with contextlib.AsyncExitStack() as stack:
            agent = await stack.enter_async_context(connect(place))
            writers = await connect_writers(stack, place)
            told = {
                text: await stack.enter_async_context(agent.subscribe(text, timeout=60))
                for text in FILTERS
            }
            read = {text: Reader(one) for text, one in told.items()}

            async def publish(count: int) -> None:
                for writer in writers:
                    for _ in range(count):
                        await writer.publish(*drawn())
                    await writer.publish_many([drawn() for _ in range(3 * count)])

            async def check() -> None:
                for text, one in read.items():
                    if not one.refusal:
                        due = expected[text]
                        await until(lambda one=one, due=due: len(one.payloads) >= len(due))  # type: ignore[misc]
                        assert one.payloads == due, text
                        assert not one.breaks, text

            await publish(10)
            await check()
            # these are accepted, after the predicates that fail on them are switched off
            stuck = {"n": 9, "text": "hang and die !!", "region": "EU"}
            del good["hangs(text) AND n > 8"], good["dies(text)"]
            slow = asyncio.create_task(writers[0].publish(stuck, b"stuck"))
            await asyncio.wait_for(agent.publish({"n": 5, "text": "b"}, b"beside"), 60)
            await slow
            for text, one in good.items():
                due = [b"beside"] if one.matches({"n": 5, "text": "b"}) else []
                expected[text] += [*due, b"stuck"] if one.matches(stuck) else due
            for text in ("hangs(text) AND n > 8", "dies(text)"):
                await until(lambda text=text: read[text].refusal)  # type: ignore[misc]
            name = "the predicate 'hangs' is switched off: a call took longer than 2,000 ms, 3"
            assert name in read["hangs(text) AND n > 8"].refusal
            name = "the predicate 'dies' is switched off: its process ended with signal 9, 3 times"
            assert name in read["dies(text)"].refusal
            assert "the predicate 'hangs' is switched off" in root.log()
            for text in good:  # the order of these two is not fixed
                got, due = read[text].payloads, expected[text]
                await until(lambda got=got, due=due: len(got) >= len(due))  # type: ignore[misc]
                assert sorted(got) == sorted(due)
                got[:] = due
            await publish(10)
            await check()
            kill(root)
            root = Process(tmp_path, "root", FILE.format(port=port))
            refusal = await refusal_of(agent, "hangs(text)", "sql")
            assert refusal.startswith("the predicate 'hangs' is switched off: a call took longer")
            await publish(5)
            await check()
            root.stop()
            install(site, "1.1")
            root = Process(tmp_path, "root", FILE.format(port=port))
            async with agent.subscribe("hangs(text)", timeout=60) as again:
                await agent.publish({"text": "abcdef"}, b"back")
                while getattr(await again.__anext__(), "payload", b"") != b"back":
                    pass
            for reader in read.values():
                reader.task.cancel()

    try:
        run(work())
    finally:
        tagging.stop()
        root.stop()
