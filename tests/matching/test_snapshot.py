"""Snapshots: what is opened is what was saved, and what was tampered with is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidings import Attributes, Ontology, TidingsError
from tidings.filters.values import regular
from tidings.matching import Matcher
from tidings.matching.disk import matcher_folder
from tidings.matching.disk.matcher_folder import VERSION

FILTERS = {
    "late": "dep_delay > 60",
    "tail": "tailnum LIKE 'N_2%'",
    "tags": "array_contains(tags, 'x') AND NOT array_contains(tags, 'y')",
    "never": "a > 5 AND a < 3",
    "always": "true",
    "wide": " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(30)),
    "sets": "a IN (1, 5, 9) AND b NOT IN (2, 4)",
    "lower": "lower(name) = 'bo'",
    "naïve `é`": "`odd name`.`x y` = 'it''s'",
}
EVENTS: list[dict[str, Any]] = [
    {"dep_delay": 61, "tailnum": "N12345", "tags": ["x"], "a": 5, "b": 1, "name": "BO"},
    {"tags": ["x", "y"], "odd name": {"x y": "it's"}},
    {f"a{i}": 1 for i in range(30)},
]


def saved(tmp_path: Path) -> Path:
    matcher = Matcher()
    matcher.add_many(FILTERS.items())
    matcher.save(tmp_path / "snapshot")
    return tmp_path / "snapshot"


def test_what_is_opened_is_what_was_saved(tmp_path: Path) -> None:
    matcher = Matcher()
    matcher.add_many(FILTERS.items())
    opened = Matcher.open(saved(tmp_path))
    assert len(opened) == len(FILTERS)
    for event in EVENTS:
        assert set(opened.match(event)) == set(matcher.match(event))
    assert opened.filter("sets") == matcher.filter("sets")
    opened.remove("always")
    opened.add("new", "dep_delay > 1")
    assert set(opened.match(EVENTS[0])) == {*matcher.match(EVENTS[0]), "new"} - {"always"}


def test_saving_over_a_snapshot_replaces_it(tmp_path: Path) -> None:
    path = saved(tmp_path)
    matcher = Matcher.open(path)
    matcher.remove("late")
    matcher.save(path)
    assert "late" not in Matcher.open(path)
    assert [p.name for p in tmp_path.iterdir()] == ["snapshot"]


def cut_short(path: Path) -> None:
    file = path / "entry_low.arrow"
    file.write_bytes(file.read_bytes()[:-8])


def altered(path: Path) -> None:
    file = path / "filters.arrow"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def missing(path: Path) -> None:
    (path / "terms.arrow").unlink()


def without_manifest(path: Path) -> None:
    (path / "manifest.json").unlink()


def broken_manifest(path: Path) -> None:
    (path / "manifest.json").write_text("{")


def later_version(path: Path) -> None:
    file = path / "manifest.json"
    file.write_text(file.read_text().replace(f'"version": {VERSION}', '"version": 99'))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (cut_short, "entry_low.arrow has .* bytes, expected"),
        (altered, "filters.arrow is corrupt"),
        (missing, "terms.arrow is missing"),
        (without_manifest, "is not a snapshot"),
        (broken_manifest, "manifest.json can't be read"),
        (later_version, f"version 99 in .*, expected .* version {VERSION}"),
    ],
)
def test_a_harmed_snapshot_is_refused(
    tmp_path: Path, harm: Callable[[Path], None], message: str
) -> None:
    path = saved(tmp_path)
    harm(path)
    with pytest.raises(TidingsError, match=message):
        Matcher.open(path)


def test_a_folder_that_is_no_snapshot_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear diary")
    with pytest.raises(TidingsError, match="not replaced"):
        Matcher().save(tmp_path / "mine")
    assert (tmp_path / "mine" / "diary.txt").read_text() == "dear diary"


def test_ids_that_no_column_holds_are_refused(tmp_path: Path) -> None:
    matcher = Matcher()
    matcher.add(("a", 1), "x > 1")
    with pytest.raises(TidingsError, match="found ids with the types tuple; expected"):
        matcher.save(tmp_path / "snapshot")
    assert list(tmp_path.iterdir()) == []


def test_ontologies_come_back_with_their_attributes(tmp_path: Path) -> None:
    attributes = Attributes({"topic": Ontology({"mlb": "baseball", "baseball": "sports"})})
    matcher = Matcher(attributes)
    matcher.add("fan", "isa(topic, 'baseball')")
    matcher.save(tmp_path / "snapshot")
    opened = Matcher.open(tmp_path / "snapshot", attributes)
    assert opened.match({"topic": "mlb"}) == ["fan"]
    assert opened.match({"topic": "sports"}) == []


def test_another_process_opens_it(tmp_path: Path) -> None:
    code = (
        "import sys, tidings; m = tidings.Matcher.open(sys.argv[1]); "
        "print(sorted(m.match({'dep_delay': 61})))"
    )
    path = str(saved(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "['always', 'late']", done.stderr


def test_an_empty_matcher_is_saved_too(tmp_path: Path) -> None:
    Matcher().save(tmp_path / "snapshot")
    opened = Matcher.open(tmp_path / "snapshot")
    assert opened.match({"x": 1}) == []
    opened.add("a", "x = 1")
    assert opened.match({"x": 1}) == ["a"]


@pytest.mark.parametrize("text", [
    "s RLIKE '{}'",
    "a = 1 OR s RLIKE '{}'",
    "coalesce(rlike(t, '{}'), s) = 'q' AND a = 1",
    "a = 1 OR coalesce(rlike(t, '{}'), s) = 'q'",
    "coalesce(rlike(t, '{}'), s) > 'q' OR coalesce(rlike(t, '{}'), s) IN ('a', 'c', 'e')",
    " AND ".join(f"(a = 1 OR b{i} = 2)" for i in range(30)) + " AND s RLIKE '{}'",
])  # fmt: skip
def test_a_filter_that_is_refused_now_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """None of its boxes holds anything, and the others are as they were."""
    refused, plain = text.replace("{}", "x{30}"), text.replace("{}", "x{3}")
    matcher = Matcher(background=False)
    matcher.add_many({"refused": refused, "plain": plain, "other": "a = 1", "s": "s = 'q'"}.items())
    events: list[dict[str, Any]] = [
        {"a": 1, "s": "x" * 30},
        {"a": 1, "s": "q"},
        {"s": "r"},
        {"a": 1},
        {"b1": 2},
    ]
    before = [set(matcher.match(one)) for one in events]
    assert any("refused" in found for found in before)
    matcher.save(tmp_path / "snapshot")
    monkeypatch.setattr(regular, "MOST_POSITIONS", 25)
    regular.forget()
    opened = Matcher.open(tmp_path / "snapshot", background=False)
    assert list(opened.set_aside) == [refused]
    expected = [found - {"refused"} for found in before]
    batch = pa.RecordBatch.from_pylist(events * 20)
    for number in range(2):
        assert [set(opened.match(one)) for one in events] == expected
        assert [set(found) for found in opened.match_batch(batch).to_pylist()] == expected * 20
        opened.add(f"new {number}", "a = 5")
        opened.merge()
    regular.forget()


@pytest.mark.parametrize(
    "texts", [["a = 1"], ["a > 1 AND b < 2 OR array_contains(l, 'x')"], [FILTERS["wide"]], []]
)
def test_all_arrays_of_a_folder_are_read_only(tmp_path: Path, texts: list[str]) -> None:
    """Also the empty ones, or Numba would compile the kernels for each combination of flags."""
    matcher = Matcher(background=False)
    matcher.add_many(enumerate(texts))
    matcher.save(tmp_path / "saved")
    opened = matcher_folder.read(tmp_path / "saved")
    assert opened.probe is not None
    arrays = [*opened.segment.arrays, *opened.probe, opened.segment.many]
    assert (opened.diagrams is not None) is (FILTERS["wide"] in texts)
    if opened.diagrams is not None:
        compiled = opened.diagrams.compiled
        arrays += [*compiled.arrays, *compiled.members, compiled.decided]
    assert any(not one.size for one in arrays)
    assert not any(one.flags.writeable for one in arrays)
