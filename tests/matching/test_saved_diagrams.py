"""Diagrams of a saved matcher: they are mapped, with their edges, and nothing is built again."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from tidings import parse
from tidings.matching import Matcher
from tidings.matching.diagrams.diagrams import Diagrams
from tidings.matching.disk import SnapshotError, matcher_folder, read_manifest, write_manifest
from tidings.matching.disk.diagram_folder import DIAGRAMS, FORMAT, VERSION

Event = dict[str, object]


def draw(rng: random.Random, count: int) -> dict[int, str]:
    """Wide filters, and a narrow one after each."""
    texts = {}
    for number in range(count):
        some = rng.sample(range(12), rng.choice([8, 10]))
        texts[2 * number] = " AND ".join(
            f"(a{n} > {rng.randrange(5)} OR b{n} = {rng.randrange(3)})" for n in some
        )
        texts[2 * number + 1] = f"a{some[0]} = {rng.randrange(5)} AND b{some[1]} = 1"
    return texts


def draw_events(rng: random.Random, count: int) -> list[Event]:
    values = [None, 0, 1, 2, 3, 4, 5, 5, 5, 2.5]
    return [
        {f"{name}{n}": rng.choice(values) for name in "ab" for n in range(12)} for _ in range(count)
    ]


def matches(texts: dict[int, str], event: Event) -> set[int]:
    return {id_ for id_, text in texts.items() if parse(text).matches(event)}


def save(texts: dict[int, str], path: Path, engine: str = "auto") -> Path:
    matcher = Matcher(background=False, engine=engine)
    matcher.add_many(texts.items())
    matcher.save(path)
    return path


def forbid_building(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object, **__: object) -> Diagrams:
        raise AssertionError("a diagram is built")

    monkeypatch.setattr(Diagrams, "build", build)


@pytest.mark.parametrize("engine", ["auto", "bdd"])
def test_nothing_is_built_when_a_matcher_is_opened(
    tmp_path: Path, seed: int, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    texts = draw(rng, 20)
    path = save(texts, tmp_path / "m", engine)
    events = draw_events(rng, 40)
    forbid_building(monkeypatch)
    for asked in (engine, "saved"):
        opened = Matcher.open(path, background=False, engine=asked)
        assert opened.stats()["diagrams"] == (20 if engine == "auto" else 40)
        (sealed,) = opened._state.parts
        assert sealed.is_linked
        assert sealed.diagrams is not None
        assert len(sealed.diagrams.arrays.edges) > 0
        batch = opened.match_batch(events).to_pylist()
        for event, ids in zip(events, batch, strict=True):
            assert set(opened.match(event)) == set(ids) == matches(texts, event)
            assert set(opened.iter_matches(event)) == set(ids)
        opened.remove(0)
        assert all(0 not in opened.match(event) for event in events)


def test_an_opened_matcher_does_the_same_steps(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    texts = draw(rng, 30)
    built = Matcher(background=False)
    built.add_many(texts.items())
    built.merge()
    built.save(tmp_path / "m")
    opened = Matcher.open(tmp_path / "m", background=False)
    one, two = (matcher._state.parts[0].diagrams for matcher in (built, opened))
    assert one is not None
    assert two is not None
    dead = np.zeros(100, np.uint8)
    for event in draw_events(rng, 100):
        assert set(one.match(event, dead).tolist()) == set(two.match(event, dead).tolist())
    assert one.total_counts() == two.total_counts()
    assert one.rates() == two.rates()
    assert len(one.rates()) > 20
    gone = np.array([0, 4, 10])
    one = one.remove(gone)
    two = two.remove(gone)
    for name in one.arrays._fields:
        assert getattr(one.arrays, name).tolist() == getattr(two.arrays, name).tolist()


def test_another_engine_builds_its_own(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    texts = draw(rng, 10)
    events = draw_events(rng, 20)
    path = save(texts, tmp_path / "m")
    for engine, count in (("trees", 0), ("bdd", 20), ("saved", 10)):
        opened = Matcher.open(path, background=False, engine=engine)
        assert opened.stats()["diagrams"] == count
        for event in events:
            assert set(opened.match(event)) == matches(texts, event)
        opened.add(99, texts[0])
        opened.merge()
        assert opened.stats()["diagrams"] == (0 if engine == "saved" else count + (count > 0))
        for event in events:
            assert set(opened.match(event)) - {99} == matches(texts, event)


def test_a_folder_without_diagrams_is_read(tmp_path: Path, seed: int) -> None:
    """As versions before 6 wrote it."""
    rng = random.Random(seed)
    texts = draw(rng, 5)
    path = save(texts, tmp_path / "m", "trees")
    notes = read_manifest(path, matcher_folder.FORMAT, matcher_folder.VERSION).notes
    write_manifest(path, matcher_folder.FORMAT, 5, **notes)
    assert not (path / DIAGRAMS).exists()
    for engine, count in (("auto", 5), ("saved", 0)):
        opened = Matcher.open(path, background=False, engine=engine)
        assert opened.stats()["diagrams"] == count
        for event in draw_events(rng, 20):
            assert set(opened.match(event)) == matches(texts, event)


def test_diagrams_of_another_version_are_refused(tmp_path: Path, seed: int) -> None:
    path = save(draw(random.Random(seed), 3), tmp_path / "m")
    manifest = path / DIAGRAMS / "manifest.json"
    told = json.loads(manifest.read_text())
    write_manifest(path / DIAGRAMS, FORMAT, VERSION + 1, **told["notes"])
    notes = read_manifest(path, matcher_folder.FORMAT, matcher_folder.VERSION).notes
    write_manifest(path, matcher_folder.FORMAT, matcher_folder.VERSION, **notes)
    expected = f"found format {FORMAT} version {VERSION + 1} in manifest.json, expected .* version"
    with pytest.raises(SnapshotError, match=expected):
        Matcher.open(path)


@pytest.mark.parametrize("name", ["edges.arrow", "terms.arrow", "units.arrow", "manifest.json"])
def test_harmed_diagrams_are_refused(tmp_path: Path, seed: int, name: str) -> None:
    path = save(draw(random.Random(seed), 3), tmp_path / "m")
    file = path / DIAGRAMS / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(SnapshotError, match=f"{name} (is corrupt|can't be read)"):
        Matcher.open(path)
    with pytest.raises(SnapshotError, match=name):
        matcher_folder.need_matcher_files(path)
