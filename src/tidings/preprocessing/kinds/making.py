"""Creates the kind of a channel from its definition.

The declared attributes of a channel are those of its file, those that its kind adds (the attribute
with the topic, the attributes of types, the columns of an application's class), and an ontology for
the topic. Every process that reads filters of the channel needs exactly these attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tidings.filters import Attributes
from tidings.filters.values import Revision, revise
from tidings.model import AttributesError, Extra, TidingsError, write_path
from tidings.preprocessing.kinds.application import Application, load_object
from tidings.preprocessing.kinds.definition import KindDefinition
from tidings.preprocessing.kinds.kind import Kind
from tidings.preprocessing.kinds.topic_kind import Topics
from tidings.preprocessing.kinds.type_kind import Types

_WITH_ONTOLOGY = {"topics": Topics, "types": Types}


class Replaced(NamedTuple):
    """The new definition, and the revision of its ontology, if it has an ontology."""

    definition: KindDefinition
    revision: Revision | None = None


def replace_definition(before: KindDefinition, after: KindDefinition) -> Replaced:
    """The definition `after`, in which the topics that only `before` has are retired. A predicate
    that was switched off stays off until its package has another version."""
    same = {
        name: reason
        for name, reason in before.off.items()
        if after.predicates.get(name) == before.predicates.get(name)
    }
    if same:
        after = after.switch_off(same)
    if after.kind not in _WITH_ONTOLOGY or before.kind != after.kind:
        return Replaced(after)
    revision = revise(before.ontology, after.ontology)
    return Replaced(after.with_ontology(revision.ontology), revision)


def declare(attributes: Attributes | None, definition: KindDefinition) -> Attributes | None:
    """The attributes that a channel of this kind declares, including those that its file declares.
    If the file declares none, filters may also use undeclared attributes."""
    if definition.kind == "content":
        return attributes
    given = {} if attributes is None else dict(attributes.tree)
    extra: Extra = "open" if attributes is None else attributes.extra
    types = {write_path((name,)): kind for name, kind in given.items()}
    return Attributes(_add_columns(types, definition), extra=extra)


def restore_attributes(
    types: Mapping[str, str] | None, extra: Extra | None, definition: KindDefinition
) -> Attributes | None:
    """The attributes of a channel, from a description that already has all types."""
    if types is None:
        return None
    given: dict[str, Any] = dict(types)
    if definition.kind in _WITH_ONTOLOGY:
        given[definition.attribute] = definition.ontology
    return Attributes(given, extra=extra)


def make_kind(attributes: Attributes | None, definition: KindDefinition) -> Kind:
    """The kind of a channel with these attributes. Raises TidingsError if this process can't use
    the kind."""
    if definition.kind == "content":
        return Kind(attributes, definition)
    if attributes is None:
        raise TidingsError(
            "found a channel with [preprocessor] but without declared attributes, expected both"
        )
    if definition.kind == "application":
        return Application(attributes, definition)
    return _WITH_ONTOLOGY[definition.kind](attributes, definition)


def _add_columns(types: Mapping[str, Any], definition: KindDefinition) -> dict[str, Any]:
    """The declared types and those that the kind adds; raises AttributesError if they disagree."""
    found = dict(types)
    if definition.kind == "application":
        who = f"the preprocessor '{definition.entry_point}'"
        _add(found, load_object(definition).columns(), who)
        return found
    for type_, columns in definition.columns.items():
        _add(found, columns, f"the type '{type_}'")
    name = definition.attribute
    if str(found.get(name, "string")) != "string":
        raise AttributesError(
            f"'{name}' has the type '{found[name]}', expected string, because the preprocessor "
            "reads it"
        )
    found[name] = definition.ontology
    return found


def _add(found: dict[str, Any], columns: Mapping[str, str], who: str) -> None:
    for name, kind in columns.items():
        known = found.setdefault(name, kind)
        if str(known) != str(kind):
            raise AttributesError(
                f"'{name}' has the type '{known}', but {who} declares it as '{kind}'; expected the "
                "same type everywhere"
            )
