"""Rows of channels of topics and types: what is refused is what `Kind.read` refuses row by row."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.repeats import runs

from tidings.model import EnvironmentProblem, NotificationError
from tidings.notifications import Decoded
from tidings.preprocessing import KindDefinition
from tidings.spark.outbox.batches.kind_rows import read_rows
from tidings.spark.tagging.channel_kinds import ChannelKind, kind_of

PARENTS = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}
COLUMNS = {"a": {"x": "integer"}, "b": {"y": "integer"}, "c": {"z.w": "integer"}}
TYPES = {"kind": "string", "x": "integer", "y": "integer", "z": "struct<w: integer>"}


def told(kind: Any) -> ChannelKind:
    columns = COLUMNS if kind == "types" else {}
    definition = KindDefinition(kind, "kind", PARENTS, {"e": "d"}, columns=columns)
    return ChannelKind(TYPES, "keep", definition.encode())


def draw(chance: random.Random) -> dict[str, Any]:
    return {
        "kind": chance.choice([*PARENTS, "e", "f", None, ""]),
        "x": chance.choice([1, None]),
        "y": chance.choice([1, None, None]),
        "z": chance.choice([{"w": 1}, {"w": None}, None, None]),
    }


@pytest.mark.parametrize("run", runs(4, 20))
@pytest.mark.parametrize("kind", ["topics", "types"])
def test_rows_are_refused_as_one_by_one(seed: int, run: int, kind: str) -> None:
    chance = random.Random(f"{seed} {run}")
    rows = [draw(chance) for _ in range(chance.choice((0, 1, 50, 400)))]
    schema = pa.schema({
        "kind": pa.string(), "x": pa.int64(), "y": pa.int64(), "z": pa.struct({"w": pa.int64()}),
    })  # fmt: skip
    bad = {at: "bad before" for at in range(2 * len(rows)) if at % 2}
    extra = pa.array([str(at) for at in range(len(rows))], pa.string())
    given = Decoded(
        pa.RecordBatch.from_pylist(rows, schema), np.arange(0, 2 * len(rows), 2),
        np.array([*bad], np.int64), [*bad.values()], extra,
    )  # fmt: skip
    found, events = read_rows(told(kind), given, "extra")
    assert events is None
    expected: dict[int, str] = {}
    for at, row in enumerate(rows):
        event = {name: value for name, value in row.items() if value is not None}
        try:
            kind_of(told(kind)).read(event)
        except NotificationError as problem:
            expected[2 * at] = str(problem)
    good = [at for at in range(len(rows)) if 2 * at not in expected]
    assert dict(zip(found.bad_rows.tolist(), found.reasons, strict=True)) == bad | expected
    assert found.bad_rows.tolist() == sorted(bad | expected)
    assert found.rows.tolist() == [2 * at for at in good]
    assert found.good.to_pylist() == [rows[at] for at in good]
    assert found.extra.to_pylist() == [str(at) for at in good]


def test_a_class_that_a_worker_does_not_have() -> None:
    definition = KindDefinition("application", entry_point="nowhere")
    with pytest.raises(EnvironmentProblem) as problem:
        kind_of(ChannelKind({}, "open", definition.encode()))
    assert "the preprocessor 'nowhere' is not installed here" in str(problem.value)
    assert str(problem.value).endswith("on the driver and on every worker")
