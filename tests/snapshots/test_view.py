"""Views: a batch in pieces gives the same result as the whole batch."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tidings.snapshots import Snapshot, view as module
from tidings.snapshots.view import View


def some_view(rng: random.Random, texts: bool) -> View:
    ids = [f"{'x' * rng.randrange(60)}{at}" if texts else at for at in range(80)]
    snapshot = Snapshot.build({id_: f"x > {rng.randrange(40)}" for id_ in ids})
    return snapshot.view


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("most", [1, 700, 5_000, 1 << 30])
def test_pieces_are_the_whole_and_no_larger_than_allowed(
    seed: int, texts: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"{seed} pieces {texts} {most}")
    view = some_view(rng, texts)
    batch = pa.record_batch({"x": [rng.randrange(-9, 45) for _ in range(50)]})
    starts, places = view.match_places(batch)
    whole = view.subscription_lists(starts, places)
    monkeypatch.setattr(module, "MOST_BYTES", most)
    at, parts = 0, []
    for first, last, matched in view.pieces(starts, places, each=3):
        assert first == at < last
        at = last
        parts.append(view.subscription_lists(*matched))
        assert len(parts[-1]) == last - first
        told = [str(id_) if texts else "" for ids in parts[-1].to_pylist() for id_ in ids]
        assert last - first == 1 or sum(len(id_) + 16 + 3 for id_ in told) <= most
    assert at == len(whole)
    assert pa.concat_arrays(parts).equals(whole)
    assert (len(parts) == 1) == (most == 1 << 30)
    assert len(parts) < 50 or most < 5_000  # each event alone may be too large


def test_no_events_are_one_piece_and_ids_that_are_a_part_of_others_are_measured() -> None:
    view = some_view(random.Random(1), texts=True)
    starts, places = view.match_places(pa.record_batch({"x": pa.array([], pa.int64())}))
    assert [(first, last) for first, last, _ in view.pieces(starts, places)] == [(0, 0)]
    before = pa.array(["something else"])
    ids = pa.concat_arrays([before, view.ids])[1:]
    same = View(
        view.matcher, view.numbers, (view.parent_starts, view.parents), (view.member_starts, ids)
    )
    assert (same._id_bytes[1:] - same._id_bytes[:-1]).tolist() == (
        view._id_bytes[1:] - view._id_bytes[:-1]
    ).tolist()


def test_texts_beyond_32_bits_have_positions_of_64(monkeypatch: pytest.MonkeyPatch) -> None:
    view = some_view(random.Random(2), texts=True)
    batch = pa.record_batch({"x": [100, 0]})
    told = view.subscriptions(batch)
    monkeypatch.setattr(module, "MOST_TEXT", 100)
    assert view.subscriptions(batch).type.value_type == pa.large_string()
    assert view.subscriptions(batch).to_pylist() == told.to_pylist()
