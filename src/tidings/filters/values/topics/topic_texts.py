"""Parse ontologies from text, in the common formats.

    json, yaml   nested: {"sports": {"baseball": ["mlb", "kbo"], "football": null}}
                 or each topic with its parents: {"mlb": "baseball", "chess": ["a", "b"]}
    csv          the columns child and parent, a row for each edge; a root has no parent
    turtle       SKOS (broader, narrower, Concept) and RDFS (subClassOf, Class)

A JSON or YAML text counts as nested if some value is an object, or a list that contains an object.
A topic may occur in several places and then has several parents.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tidings.filters.values.topics.ontology import Ontology
from tidings.model import AttributesError, EnvironmentProblem

FORMATS = ("json", "yaml", "csv", "turtle")

Edge = tuple[str, str | None]  # child, parent


def read_ontology(text: str, form: str = "json") -> Ontology:
    """Parse an ontology; raise AttributesError if the text is malformed or has no topics."""
    reader = _READERS.get(form)
    if reader is None:
        raise AttributesError(f"found the format '{form}', expected {', '.join(FORMATS)}")
    parents: dict[str, list[str]] = {}
    for child, parent in reader(text):
        for name in (child, parent):
            if name is not None and not name.strip():
                raise AttributesError("found a topic without a name, expected a name")
        listed = parents.setdefault(child, [])
        if parent is not None:
            listed.append(parent)
    if not parents:
        raise AttributesError("found no topic, expected at least one")
    return Ontology(parents)


def _read_json(text: str) -> Iterator[Edge]:
    try:
        value = json.loads(text, object_pairs_hook=_refuse_doubles)
    except RecursionError:
        raise AttributesError("this JSON is nested too deeply") from None
    except ValueError as problem:
        raise AttributesError(f"this is not JSON: {problem}") from None
    return _read_edges(value)


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise AttributesError(f"the topic '{twice}' occurs twice in one object, expected once")
    return made


def _read_yaml(text: str) -> Iterator[Edge]:
    try:
        import yaml
    except ImportError:
        raise EnvironmentProblem(
            "PyYAML is not installed; install tidings with the extra `tidings[ontologies]`"
        ) from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Keeps topics as written: `no` and `2013` are strings, and only an empty value is null."""

        yaml_implicit_resolvers = {  # noqa: RUF012
            first: [(tag, pattern) for tag, pattern in known if tag.endswith((":null", ":merge"))]
            for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            _refuse_doubles([(key, None) for key in keys if key != "<<"])
            return super().construct_mapping(node, deep)

    try:
        value = yaml.load(text, Loader)
    except RecursionError:
        raise AttributesError("this YAML is nested too deeply") from None
    except yaml.YAMLError as problem:
        told = " ".join(str(problem).split())
        raise AttributesError(f"this is not YAML: {told}") from None
    return _read_edges(value)


def _read_edges(value: object) -> Iterator[Edge]:
    if isinstance(value, dict) and not any(_holds_objects(one) for one in value.values()):
        return _read_declared(value)
    return _read_nested(value)


def _holds_objects(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(one, dict) for one in value)
    )


def _read_declared(parents: dict[Any, Any]) -> Iterator[Edge]:
    """Read a mapping of each topic to its parents."""
    for child, given in parents.items():
        yield _need_topic(child), None
        for parent in given if isinstance(given, list) else [given]:
            if parent is not None:
                yield _need_topic(child), _need_topic(parent)


def _read_nested(value: object) -> Iterator[Edge]:
    """Read nested topics. In YAML, the same object can occur in many places, even inside itself, so
    it is read only once under each topic."""
    stack: list[tuple[str | None, object]] = [(None, value)]
    seen: set[tuple[str | None, int]] = set()
    while stack:
        parent, below = stack.pop()
        if isinstance(below, (dict, list)):
            if (parent, id(below)) in seen:
                continue
            seen.add((parent, id(below)))
        if isinstance(below, dict):
            for child, under in below.items():
                yield _need_topic(child), parent
                if isinstance(under, (dict, list)):
                    stack.append((child, under))
                elif under is not None:
                    found = _shorten(under)
                    raise AttributesError(
                        f"found {found} under '{child}', expected an object, a list or null"
                    )
        elif isinstance(below, list):
            for one in below:
                if isinstance(one, dict):
                    stack.append((parent, one))
                else:
                    yield _need_topic(one), parent
        else:
            found = _shorten(below)
            raise AttributesError(f"found {found}, expected an object or a list of topics")


def _need_topic(value: object) -> str:
    if not isinstance(value, str):
        raise AttributesError(f"found {_shorten(value)}, expected a topic, which is a string")
    return value


def _shorten(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _read_csv(text: str) -> Iterator[Edge]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        for name in ("child", "parent"):
            if name not in header:
                found = ", ".join(header) or "nothing"
                raise AttributesError(
                    f"line 1: found {found}, expected the columns child and parent"
                )
        child, parent = header.index("child"), header.index("parent")
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise AttributesError(
                    f"line {rows.line_num}: found {len(row)} fields, expected {len(header)}"
                )
            yield row[child].strip(), row[parent].strip() or None
    except csv.Error as problem:
        raise AttributesError(f"line {rows.line_num}: this is not CSV: {problem}") from None


def _read_turtle(text: str) -> Iterator[Edge]:
    try:
        import rdflib
        from rdflib.namespace import OWL, RDF, RDFS, SKOS
    except ImportError:
        raise EnvironmentProblem(
            "rdflib is not installed; install tidings with the extra `tidings[ontologies]`"
        ) from None
    graph = rdflib.Graph()
    try:
        graph.parse(data=text, format="turtle")
    except RecursionError:
        raise AttributesError("this Turtle is nested too deeply") from None
    except Exception as problem:  # rdflib has no common class for its parse errors
        told = " ".join(str(problem).split())[:200]
        raise AttributesError(f"this is not Turtle: {told}") from None
    pairs: list[tuple[Any, Any]] = [
        (one, None)
        for kind in (SKOS.Concept, OWL.Class, RDFS.Class)
        for one in graph.subjects(RDF.type, kind)
    ]
    for above in (SKOS.broader, RDFS.subClassOf):
        pairs += graph.subject_objects(above)
    pairs += [(child, parent) for parent, child in graph.subject_objects(SKOS.narrower)]
    known = [
        pair for pair in pairs if all(isinstance(x, (rdflib.URIRef, type(None))) for x in pair)
    ]
    names = _names({one for pair in known for one in pair if one is not None})
    # An RDF graph has no order, so its topics are sorted: a topic is numbered under its first
    # parent.
    edges = {(names[child], None if up is None else names[up]) for child, up in known}
    return iter(sorted(edges, key=lambda edge: (edge[0], edge[1] or "")))


def _names(iris: Iterable[str]) -> dict[str, str]:
    """The part of each IRI after its last # or /, or the whole IRI if that part is not unique."""
    ends: dict[str, list[str]] = {}
    for iri in iris:
        ends.setdefault(iri.rstrip("#/").replace("#", "/").rpartition("/")[2], []).append(iri)
    return {iri: end if len(same) == 1 else str(iri) for end, same in ends.items() for iri in same}


_READERS: dict[str, Callable[[str], Iterator[Edge]]] = {
    "json": _read_json,
    "yaml": _read_yaml,
    "csv": _read_csv,
    "turtle": _read_turtle,
}
