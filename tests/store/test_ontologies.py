"""Ontologies in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings import AttributesError, EnvironmentProblem, load_ontology


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.json", '\ufeff{"mlb": "baseball"}'),
        ("t.YAML", "mlb: baseball"),
        ("t.yml", "baseball: [{mlb: }]"),
        ("t.csv", "child,parent\nmlb,baseball\n"),
        ("t.ttl", "<x:/mlb> <http://www.w3.org/2004/02/skos/core#broader> <x:/baseball> ."),
    ],
)
def test_the_extension_says_the_form(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert load_ontology(path).list_parents() == {"mlb": ["baseball"], "baseball": []}
    assert load_ontology(str(path)).isa("mlb", "baseball")


def test_a_refusal_names_the_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(AttributesError, match=r"bad\.json: found the byte 0xff at 7, expected"):
        load_ontology(bad)
    bad.write_text('{"a": "a"}')
    with pytest.raises(AttributesError, match=r"bad\.json: the ontology has a cycle: 'a' lies"):
        load_ontology(bad)
    with pytest.raises(EnvironmentProblem, match=r"none\.csv: the file can't be read: No such"):
        load_ontology(tmp_path / "none.csv")
    with pytest.raises(
        AttributesError, match=r"found the extension '.txt', expected one of .json, .yaml"
    ):
        load_ontology(tmp_path / "none.txt")
