"""Dotted subjects and their wildcards, and tests on topics."""

from __future__ import annotations

from typing import Any

from tidings.filters.values.topics import Ontology
from tidings.filters.values.work_limit import spend

MAX_FIELDS = 100  # the most fields in a pattern; each field is a separate test


def length(subject: Any) -> int | None:
    """The number of dotted fields."""
    if not isinstance(subject, str):
        return None
    spend(len(subject))
    return subject.count(".") + 1


def field(subject: Any, index: Any) -> str | None:
    """The dotted field at an index that counts from 0; null past the last field."""
    if not isinstance(subject, str) or not isinstance(index, int) or isinstance(index, bool):
        return None
    spend(len(subject))
    fields = subject.split(".")
    return fields[index] if 0 <= index < len(fields) else None


def pattern_problem(pattern: str) -> str | None:
    """Say what is wrong with a subject pattern; None if it is valid."""
    fields = pattern.split(".")
    if len(fields) > MAX_FIELDS:
        return f"a subject has at most {MAX_FIELDS} fields"
    for index, one in enumerate(fields):
        if not one:
            return "a subject can't have empty fields"
        if one == ">" and index < len(fields) - 1:
            return "'>' stands for the rest of a subject and must come last"
        if one not in ("*", ">") and ("*" in one or ">" in one):
            return f"a wildcard must be a whole field, not a part of '{one}'"
    return None


def matches(subject: Any, pattern: Any) -> bool | None:
    """Whether a subject matches a pattern: `*` stands for one field, a trailing `>` for one or
    more."""
    if not isinstance(subject, str) or not isinstance(pattern, str):
        return None
    spend(len(subject))
    have, want = subject.split("."), pattern.split(".")
    if want[-1] == ">":
        want = want[:-1]
        if len(have) <= len(want):
            return False
    elif len(have) != len(want):
        return False
    return all(w in ("*", h) for w, h in zip(want, have, strict=False))


def isa(ontology: Ontology | None, name: Any, topic: Any) -> bool | None:
    """Whether `name` equals `topic` or lies under it: according to the ontology or, without an
    ontology, according to the dotted fields of the name."""
    if not isinstance(name, str) or not isinstance(topic, str):
        return None
    if ontology is not None:
        return ontology.isa(name, topic)
    return name == topic or name.startswith(topic + ".")
