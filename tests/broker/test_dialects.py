"""Filters of other dialects at a rendezvous point: placed, stored and refused in the terms of the
dialect; against `Filter` and against the same filter in SQL."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tidings import Delivery, Refusal, connect, parse
from tidings.broker import Door, RootNode
from tidings.channel import ChannelLink
from tidings.channel.interests import ArrayInterests
from tidings.filters import Attributes
from tidings.routing.protocol import messages as m, unpack_interest

PATTERN = '{"kind": ["ale"], "price": [{"numeric": [">", 90]}]}'
TEXTS = {
    "sql": "kind = 'ale' AND startswith(subject, 'shop-')",
    "cesql": "kind = 'ale' AND subject LIKE 'shop-%'",
    "cloudevents": '{"all": [{"exact": {"kind": "ale"}}, {"prefix": {"subject": "shop-"}}]}',
    "eventbridge": '{"kind": ["ale"], "subject": [{"prefix": "shop-"}]}',
}
ATTRIBUTES = Attributes({"kind": "string", "price": "integer"})


@given(st.text(), st.sampled_from([*TEXTS]))
def test_an_interest_is_unpacked_as_it_was_packed(text: str, dialect: str) -> None:
    asked = m.Ask(1, text.encode(), dialect=dialect)
    if dialect != "sql" or not text.startswith("\0"):
        assert unpack_interest(asked.stored) == (text.encode(), dialect)
    assert dialect != "sql" or asked.stored == text.encode()  # as in older journals


def test_what_means_the_same_has_one_node_in_all_dialects() -> None:
    interests = ArrayInterests(ATTRIBUTES)
    for dialect, text in TEXTS.items():
        placed = interests.place(m.Ask(1, text.encode(), dialect=dialect).stored)
        filter_ = parse(text, dialect, attributes=ATTRIBUTES)
        row = {"kind": "ale", "subject": "shop-9"}
        assert filter_.matches(row)
        assert placed.node in interests.tag(json.dumps(row).encode())
        said = interests.text(placed.node)
        assert parse(said, attributes=ATTRIBUTES) == parse(TEXTS["sql"], attributes=ATTRIBUTES)
    assert len(interests.all_placed()) == 1


def test_a_filter_of_another_dialect_survives_a_restart(tmp_path: Path) -> None:
    async def told_by(root: RootNode) -> bytes:
        async with (
            connect(f"tidings://127.0.0.1:{root.port}") as agent,
            agent.subscribe(PATTERN, "eventbridge", timeout=60) as told,
        ):
            await agent.publish({"kind": "ale", "price": 90}, b"no")
            await agent.publish({"kind": "ale", "price": 91}, b"yes")
            found = await told.next(60)
            assert isinstance(found, Delivery)
            with ChannelLink(f"tidings://127.0.0.1:{root.port}") as link:
                changes = await asyncio.to_thread(link.changes)
            (one,) = [change for change in changes.changes if change.filter]
            assert parse(one.filter or "") == parse(PATTERN, "eventbridge")
            return found.payload

    async def main() -> None:
        for _ in range(2):
            root = RootNode("root", tmp_path / "journal", Door())
            await root.start()
            try:
                assert await told_by(root) == b"yes"
            finally:
                await root.stop()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("text", "dialect"),
    [('{"kind": 5}', "eventbridge"), ("kind = ", "cesql"), ('{"exakt": {}}', "cloudevents"),
     ("kind = 'ale'", "latin")],
)  # fmt: skip
def test_a_refusal_has_the_words_of_the_dialect(tmp_path: Path, text: str, dialect: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011
        parse(text, dialect)

    async def main() -> str:
        root = RootNode("root", tmp_path / "journal", Door())
        await root.start()
        try:
            async with connect(f"tidings://127.0.0.1:{root.port}") as agent:
                with pytest.raises(Refusal) as refused:
                    await agent.subscribe(text, dialect, timeout=60).__aenter__()
                return str(refused.value)
        finally:
            await root.stop()

    assert asyncio.run(main()) == str(expected.value)
