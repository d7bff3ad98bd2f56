"""Ontologies as texts: every format gives the same ontology, and invalid texts are refused."""

from __future__ import annotations

import builtins
import json
import random
from typing import Any

import pytest

from tidings import AttributesError, EnvironmentProblem, Ontology
from tidings.filters.values.topics import read_ontology

WANTED = {
    "sports": [],
    "games": [],
    "baseball": ["sports"],
    "mlb": ["baseball"],
    "kbo": ["baseball"],
    "chess": ["sports", "games"],
}
NESTED = {"sports": {"baseball": ["mlb", "kbo"], "chess": None}, "games": {"chess": {}}}
YAML = """
sports:
  baseball: [mlb, kbo]
  chess:
games:
- chess
"""
CSV = """child,parent
baseball,sports
mlb,baseball
kbo, baseball

chess,sports
"chess",games
games,
"""
TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix t: <http://example.org/topics#> .
t:sports a skos:Concept ; skos:narrower t:baseball ; skos:prefLabel "Sports"@en .
t:mlb skos:broader t:baseball .
t:kbo rdfs:subClassOf t:baseball , [ a rdfs:Class ] .
t:chess skos:broader t:sports , <http://example.org/topics/games> .
"""


def order(ontology: Ontology) -> dict[str, set[str]]:
    return {topic: set(parents) for topic, parents in ontology.list_parents().items()}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (json.dumps(NESTED), "json"),
        (json.dumps([{"sports": [{"baseball": ["mlb", "kbo"]}, "chess"]}, {"games": ["chess"]}]),
         "json"),
        (json.dumps(WANTED), "json"),
        (json.dumps({**WANTED, "mlb": "baseball", "games": None}), "json"),
        (YAML, "yaml"),
        (CSV, "csv"),
        (TURTLE, "turtle"),
    ],
)  # fmt: skip
def test_all_forms_say_the_same(text: str, form: str) -> None:
    ontology = read_ontology(text, form)
    assert order(ontology) == {topic: set(parents) for topic, parents in WANTED.items()}
    assert ontology.fingerprint == Ontology(WANTED).fingerprint


@pytest.mark.parametrize(
    ("text", "form", "told"),
    [
        ("{", "json", "this is not JSON: "),
        ("{}", "json", "found no topic, expected at least one"),
        ("[]", "json", "found no topic"),
        ("5", "json", "found 5, expected an object or a list of topics"),
        ('{"a": 5}', "json", "found 5, expected a topic, which is a string"),
        ('{"a": {"b": 5}}', "json", "found 5 under 'b', expected an object, a list or null"),
        ('{"a": {"b": "c"}}', "json", "found \"c\" under 'b', expected an object"),
        ('{"a": {}, "b": [["c"]]}', "json", r'found \["c"\], expected a topic'),
        ('{"a": null, "b": null, "a": "b"}', "json", "the topic 'a' occurs twice in one object"),
        ('{"a": {"b": {"a": {}}}}', "json", "a cycle: 'a' lies under 'b', which lies under 'a'"),
        ('{" ": null}', "json", "found a topic without a name"),
        ("[" * 100_000, "json", "nested too deep"),
        ("a: [", "yaml", "this is not YAML: "),
        ("a: 1\nb: 2\na: 3", "yaml", "the topic 'a' occurs twice"),
        ("? [a]\n: b", "yaml", "this is not YAML: "),
        ("!!python/object:os.system {}", "yaml", "this is not YAML: "),
        ("a: &x\n  b: *x", "yaml", "cycle: 'b' lies under itself"),
        ("a,b\n1,2", "csv", "line 1: found a, b, expected the columns child and parent"),
        ("", "csv", "line 1: found nothing"),
        ("child,parent\na,b,c", "csv", "line 2: found 3 fields, expected 2"),
        ('child,parent\n"a,b', "csv", "line 2: this is not CSV"),
        ("child,parent\n,b", "csv", "found a topic without a name"),
        ("<a> <b>", "turtle", "this is not Turtle: "),
        ("", "turtle", "found no topic"),
        ("a", "xml", "found the format 'xml', expected json, yaml, csv, turtle"),
    ],
)
def test_what_is_no_ontology_is_refused(text: str, form: str, told: str) -> None:
    with pytest.raises(AttributesError, match=told) as refused:
        read_ontology(text, form)
    assert "\n" not in str(refused.value)


def test_topics_of_yaml_are_as_they_are_written() -> None:
    ontology = read_ontology("countries: [no, 2013, 1e3, 2013-01-01, 0x10, true]", "yaml")
    assert order(ontology)["countries"] == {"no", "2013", "1e3", "2013-01-01", "0x10", "true"}
    ontology = read_ontology("countries:\n  no:\n  on: [off]", "yaml")
    assert order(ontology) == {
        "countries": set(), "no": {"countries"}, "on": {"countries"}, "off": {"on"},
    }  # fmt: skip


def test_one_object_in_very_many_places_is_read_once_for_each_topic() -> None:
    lines = ["l0: &l0 {x: , y: }"]
    lines += [f"l{n}: &l{n} {{p{n}: *l{n - 1}, q{n}: *l{n - 1}}}" for n in range(1, 40)]
    ontology = read_ontology("\n".join(lines), "yaml")
    assert len(ontology) == 40 + 2 + 2 * 39
    assert ontology.isa("x", "q39")


def test_iris_with_one_ending_keep_all_of_their_name() -> None:
    text = """
    @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
    <http://a.org/x> skos:broader <http://a.org/y> .
    <http://b.org/z/> skos:broader <http://b.org/y> .
    """
    assert order(read_ontology(text, "turtle")) == {
        "x": {"http://a.org/y"}, "http://a.org/y": set(), "http://b.org/y": set(),
        "z": {"http://b.org/y"},
    }  # fmt: skip


def test_random_orders_come_back_from_every_form(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        names = [f"t{n}" for n in range(rng.randint(1, 12))]
        parents = {
            n: rng.sample(names[:at], min(at, rng.randint(0, 3))) for at, n in enumerate(names)
        }
        want = Ontology(parents).fingerprint
        rows = [f"{a},{b}" for a, above in parents.items() for b in above or [""]]
        prefix = "http://x.org/"
        triples = [f"<{prefix}{a}> a skos:Concept ." for a in names]
        triples += [
            f"<{prefix}{a}> skos:broader <{prefix}{b}> ." for a in names for b in parents[a]
        ]
        skos = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
        assert read_ontology(json.dumps(parents), "json").fingerprint == want
        assert read_ontology(json.dumps(parents), "yaml").fingerprint == want
        assert read_ontology("\n".join(["child,parent", *rows]), "csv").fingerprint == want
        assert read_ontology(skos + "\n".join(triples), "turtle").fingerprint == want


@pytest.mark.parametrize(("form", "package"), [("yaml", "yaml"), ("turtle", "rdflib")])
def test_a_package_that_is_not_there_is_named(
    form: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EnvironmentProblem, match=r"is not installed; .*tidings\[ontologies\]"):
        read_ontology("a: b", form)
