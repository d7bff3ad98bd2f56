"""A root counts the fields that it does not declare: as many as a pipeline counts in the same
bytes, and its report says so."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.broker.networks import FAST, at, running

from tidings import Attributes
from tidings.broker import Address, Door, RootNode
from tidings.broker.config import ConfigError, load_config
from tidings.channel.interests import ArrayInterests
from tidings.model import NotificationError
from tidings.network.agent import Refusal, connect
from tidings.network.watching import watch
from tidings.notifications import arrow_schema, decode_json

DECLARED = {
    "n": "integer", "user": "struct<city: string, home: struct<zip: integer>>",
    "lines": "list<struct<sku: string>>", "attrs": "map<string, struct<x: integer>>",
    "tags": "list<string>",
}  # fmt: skip


def draw_object(dice: random.Random, **known: Any) -> dict[str, Any]:
    """Some of the declared fields, and up to two others."""
    out = {name: make() for name, make in known.items() if dice.random() < 0.7}
    for name in dice.sample(("p", "q", "city", "sku"), dice.randrange(3)):
        if name not in known:
            out[name] = dice.choice((None, 1, "x", {"z": 1}, [1, None]))
    return {name: dice.choice((None, one, one)) for name, one in out.items()}


def draw_event(dice: random.Random) -> dict[str, Any]:
    def user() -> dict[str, Any]:
        return draw_object(dice, city=lambda: "a", home=lambda: draw_object(dice, zip=lambda: 1))

    def lines() -> list[Any]:
        few = range(dice.randrange(3))
        return [dice.choice((None, draw_object(dice, sku=lambda: "s"))) for _ in few]

    def attrs() -> dict[str, Any]:
        return {name: draw_object(dice, x=lambda: 1) for name in dice.sample("klm", 2)}

    return draw_object(
        dice, n=lambda: 5, user=user, lines=lines, attrs=attrs, tags=lambda: ["a", None]
    )


@pytest.mark.parametrize("extra", ["open", "keep"])
def test_a_root_counts_what_a_pipeline_counts(seed: int, extra: Any) -> None:
    dice = random.Random(seed)
    attributes = Attributes(DECLARED, extra=extra)
    interests = ArrayInterests(attributes)
    interests.place(b"n > 3")
    lines = [json.dumps(draw_event(dice)).encode() for _ in range(300)]
    for line in lines:
        interests.tag(line)
    found = decode_json(pa.array(lines), arrow_schema(attributes), extra=extra)
    assert not found.reasons
    assert (interests.extra.notifications, interests.extra.fields) == (
        found.extra_rows, found.extra_fields,
    )  # fmt: skip
    assert found.extra_fields > found.extra_rows > 100


def test_what_is_refused_is_not_counted() -> None:
    interests = ArrayInterests(Attributes({"n": "integer"}, extra="refuse"))
    with pytest.raises(NotificationError, match="there is no attribute 'm'"):
        interests.tag(b'{"n": 1, "m": 2}')
    assert interests.extra.fields == 0


def test_the_report_of_a_root_says_how_many(tmp_path: Path) -> None:
    async def work() -> None:
        attributes = Attributes({"n": "integer"}, extra="keep")
        root = RootNode(
            "root", tmp_path / "journal", Door(Address("127.0.0.1", 0)),
            attributes=attributes, times=FAST,
        )  # fmt: skip
        await root.start()
        async with connect(at(root), times=FAST) as agent:
            await agent.publish({"n": 1, "x": 2, "y": 3}, b"")
            await agent.publish({"n": 1}, b"")
            await agent.publish({"n": None, "z": None}, b"")
            with pytest.raises(Refusal):
                await agent.publish({"n": "no", "x": 2}, b"")
        async with watch(at(root)) as reports:
            async for report in reports:
                if report.nodes[0].published == 4:
                    assert report.nodes[0].undeclared == 3
                    break
        await root.stop()

    running(work)


def test_a_root_has_nothing_to_drop(tmp_path: Path) -> None:
    file = tmp_path / "root.toml"
    file.write_text('name = "r"\nlisten = "127.0.0.1:0"\njournal = "j"\nextra = "drop"\n')
    with pytest.raises(ConfigError, match="passes on only the payload, so there are no attributes"):
        load_config(file)
