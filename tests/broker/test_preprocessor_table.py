"""The table `preprocessor` in the files of rendezvous points and of trees: what it defines, and
what is refused, with its line."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.preprocessing.predicates_for_tests import install

from tidings.broker import load_tree
from tidings.broker.config import ConfigError, load_config
from tidings.broker.trees.running_tree import RunningTree
from tidings.preprocessing import KindDefinition

ROOT = 'name = "root"\nlisten = "127.0.0.1:0"\njournal = "journal.db"\n'
NESTED = """
[preprocessor]
kind = "types"
[preprocessor.types.event]
columns = {at = "timestamp", place = {city = "string"}}
[preprocessor.types."a quote"]
extends = "event"
"""


def load(folder: Path, text: str) -> KindDefinition:
    (folder / "topics.json").write_text('{"sports": {"baseball": ["mlb"]}}')
    (folder / "loop.json").write_text('{"a": "b", "b": "a"}')
    (folder / "root.toml").write_text(ROOT + text)
    return load_config(folder / "root.toml").kind


def test_what_it_defines(tmp_path: Path) -> None:
    assert load(tmp_path, "") == load(tmp_path, "[preprocessor]") == KindDefinition()
    text = '[preprocessor]\nkind = "topics"\nontology = "topics.json"\n'
    topics = {"sports": (), "baseball": ("sports",), "mlb": ("baseball",)}
    assert load(tmp_path, text) == KindDefinition("topics", "topic", topics)
    more = 'attribute = "about"\nsynonyms = {ball = "baseball"}\n'
    made = KindDefinition("topics", "about", topics, {"ball": "baseball"})
    assert load(tmp_path, text + more) == made
    assert load(tmp_path, NESTED) == KindDefinition(
        "types", "type", {"event": (), "a quote": ("event",)},
        columns={"event": {"at": "timestamp", "place": "struct<city: string>"}, "a quote": {}},
    )  # fmt: skip


def test_nodes_for_types(tmp_path: Path) -> None:
    def with_most(most: int) -> str:
        return NESTED.replace('"types"', f'"types"\nnodes_for_types = {most}', 1)

    assert load(tmp_path, with_most(50)).nodes_for_types == 50
    assert load(tmp_path, with_most(0)) == load(tmp_path, NESTED)


def test_predicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any kind may have them."""
    monkeypatch.syspath_prepend(str(install(tmp_path / "site", "2.0")))
    text = '[preprocessor]\npredicates = ["odd", "urgent", "odd"]\n'
    names = {"odd": "2.0", "urgent": "2.0"}
    assert load(tmp_path, text) == KindDefinition(predicates=names)
    found = load(tmp_path, text + "predicate_millis = 50\n" + NESTED.replace("[preprocessor]", ""))
    assert (found.kind, found.predicates, found.predicate_millis) == ("types", names, 50)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('predicates = ["odd"]', "preprocessor: the predicate 'odd' is not installed here; found"),
        ("predicate_millis = 5", "line 5: preprocessor: found predicate_millis without predicates"),
        ("predicate_millis = 0", "line 5: preprocessor.predicate_millis: "),
        ('kind = "topic"', "line 5: preprocessor.kind: "),
        ("knd = 1", "line 5: preprocessor.knd: there is no such setting; did you mean kind?"),
        ('kind = "topics"', "line 4: preprocessor: found no ontology, which the kind 'topics'"),
        ('kind = "types"', "line 4: preprocessor: found no types, which the kind 'types' needs"),
        ('kind = "application"', "preprocessor: found no class, which the kind 'application'"),
        ('ontology = "topics.json"', "line 5: preprocessor: found ontology with the kind "
                                     "'content', expected it only with 'topics'"),
        ('kind = "topics"\nontology = "none.json"', "none.json: the file can't be read"),
        ('kind = "topics"\nontology = "loop.json"', "loop.json: the ontology has a cycle"),
        ('kind = "topics"\nontology = "topics.json"\nsynonyms = {a = "b"}',
         "preprocessor: found the synonym 'a' of 'b', which is not a topic"),
        ('kind = "topics"\nontology = "topics.json"\n[columns]\ntopic = "integer"',
         "preprocessor: 'topic' has the type 'integer', expected string"),
        ('kind = "types"\n[preprocessor.types.a]\nextends = "b"',
         "preprocessor: types.a: found the type 'b' in extends, expected one of a"),
        ('kind = "types"\n[preprocessor.types.a]\ncolumns = {n = "intger"}', "preprocessor: "),
        ('kind = "types"\nnodes_for_types = -1', "line 6: preprocessor.nodes_for_types: "),
        ('kind = "types"\nnodes_for_types = 100001', "line 6: preprocessor.nodes_for_types: "),
        ("nodes_for_types = 5", "line 5: preprocessor: found nodes_for_types with the kind "
                                "'content', expected it only with 'types'"),
        ('kind = "application"\nclass = "none"', "the preprocessor 'none' is not installed here"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, f"[preprocessor]\n{text}\n")
    assert reason in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "root.toml"))


def test_a_router_has_none(tmp_path: Path) -> None:
    path = tmp_path / "edge.toml"
    path.write_text(
        'name = "edge"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:7400"\n'
        '[preprocessor]\nkind = "topics"\nontology = "topics.json"\n'
    )
    with pytest.raises(ConfigError, match="which only a rendezvous point may have"):
        load_config(path)


@pytest.mark.parametrize("text", [NESTED, """
[preprocessor]
kind = "topics"
ontology = "topics.json"
synonyms = {"the ball game" = "baseball"}
"""])  # fmt: skip
def test_a_tree_passes_it_on_to_its_root(tmp_path: Path, text: str) -> None:
    expected = load(tmp_path, text)
    (tmp_path / "network.toml").write_text(f"[root]\nlisten = 7400\n[router.east]\n{text}")
    tree = load_tree(tmp_path / "network.toml")
    tree.folder.mkdir()

    async def check() -> None:
        running = RunningTree(tree, lambda _: None)
        root, east = (running.branches[name] for name in ("root", "east"))
        assert load_config(running._write_config(root)).kind == expected
        assert "preprocessor" not in running._config(east)

    asyncio.run(check())


def test_a_tree_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "network.toml").write_text(
        '[preprocessor]\nkind = "topics"\nontology = "none.json"\n'
    )
    with pytest.raises(
        ConfigError, match=r"network\.toml: preprocessor: .*none\.json: the file can"
    ):
        load_tree(tmp_path / "network.toml")
