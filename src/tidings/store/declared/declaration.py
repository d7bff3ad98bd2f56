"""The declaration of a channel, as its log stores it.

[{"price": "double", "tags": "list<string>", ...}, "keep"]                    attributes, extra
[{...}, "open", "..."]                                                        and the kind
(an empty string)                                                             nothing
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from tidings.filters import Attributes
from tidings.model import DataType, Extra, Field, Path, TidingsError, need_extra, write_path


class DeclarationError(TidingsError):
    """The given attributes are not those that the channel declares, or the channel can't declare
    them."""


class StoredDeclaration(msgspec.Struct, frozen=True, dict=True):
    """The declaration of a channel. Without `types`, it declares no attributes, and filters may
    test everything."""

    types: dict[str, str] | None = None
    extra: str | None = None
    preprocessor: str = ""
    """The kind of interest; empty if interests are filters."""

    @classmethod
    def of(cls, attributes: Attributes | None, preprocessor: str = "") -> StoredDeclaration:
        if attributes is None:
            return cls(preprocessor=preprocessor)
        types = {
            write_path((name,)): str(kind)
            for name, kind in attributes.tree.items()
            if name != "subject" or attributes.lists_subject
        }
        return cls(types, attributes.extra, preprocessor)

    @classmethod
    def decode(cls, text: str) -> StoredDeclaration:
        if not text:
            return cls()
        types, extra, *rest = msgspec.json.decode(text, type=list[Any])
        return cls(types, extra, rest[0] if rest else "")

    @cached_property
    def text(self) -> str:
        """The text that the log stores; empty if nothing is declared."""
        if self.types is None and not self.preprocessor:
            return ""
        parts: list[Any] = [self.types, self.extra]
        if self.preprocessor:
            parts.append(self.preprocessor)
        return msgspec.json.encode(parts).decode()

    @cached_property
    def attributes(self) -> Attributes | None:
        """The declared attributes."""
        if self.types is None:
            return None
        if not self.preprocessor:
            return Attributes(self.types, extra=self.declared_extra)
        from tidings.preprocessing import KindDefinition, restore_attributes

        kind = KindDefinition.decode(self.preprocessor)
        return restore_attributes(self.types, self.declared_extra, kind)

    def says_the_same(self, other: StoredDeclaration) -> bool:
        """Whether two declarations mean the same. A rendezvous point always writes `subject`;
        commands write it only if it is listed."""
        if self.text == other.text:
            return True
        if None in (self.types, other.types):
            return False
        one, two = self.attributes, other.attributes
        return (self.extra, self.preprocessor) == (other.extra, other.preprocessor) and (
            one is not None and two is not None and one.tree == two.tree
        )

    @property
    def declared_extra(self) -> Extra | None:
        """What happens to undeclared fields; None if nothing is declared."""
        return None if self.types is None or self.extra is None else need_extra(self.extra)

    @property
    def kind(self) -> str:
        """The kind of interest."""
        if not self.preprocessor:
            return "content"
        from tidings.preprocessing import KindDefinition

        return KindDefinition.decode(self.preprocessor).kind


def may_store(attributes: Attributes | None) -> bool:
    """Whether a log can store the attributes. Ontologies belong to a kind of interest, which only
    the file of a rendezvous point can declare."""
    return attributes is not None and not attributes.ontologies


def find_difference(given: Attributes, declared: Attributes | None, where: str) -> str | None:
    """A sentence on how the given attributes differ from those that a channel declares; None if
    each given attribute is declared with the same type. It makes no difference if the channel
    declares further attributes. `where` names the channel."""
    if declared is None:
        names = [name for name in given.tree if name != "subject"]
        if not names:
            return None
        return f"'{write_path((names[0],))}' is given, but {where} declares no attributes"
    for name, kind in given.tree.items():
        found = _differ((name,), kind, declared.tree.get(name), where)
        if found is not None:
            near = declared.near((name,)) if name not in declared.tree else []
            return f"{found} (did you mean {' or '.join(near)}?)" if near else found
    if given.extra not in ("keep", declared.extra):  # `keep` is also the default value
        return f"extra is '{given.extra}' here, but {where} has '{declared.extra}'"
    return None


def _differ(path: Path, given: DataType, declared: DataType | None, where: str) -> str | None:
    if declared is None:
        return f"'{write_path(path)}' is given, but {where} does not declare it"
    if given.kind == declared.kind == "struct" and given.fields:
        for name, kind in given.fields:
            found = _differ((*path, name), kind, declared.field(name), where)
            if found is not None:
                return found
        return None
    if str(given) != str(declared):
        return f"'{write_path(path)}' is {given} here, but {where} declares {declared}"
    return None


def join_attributes(given: Attributes, more: Attributes) -> Attributes:
    """The given attributes, with the missing ones added from `more`. If an attribute is in both,
    the given type is used; a struct gets the fields of both types."""
    tree: dict[str, DataType] = dict(given.tree)
    for name, kind in more.tree.items():
        tree[name] = _join(tree[name], kind) if name in tree else kind
    if not (given.lists_subject or more.lists_subject):
        del tree["subject"]
    types: Mapping[str, Any] = {write_path((name,)): kind for name, kind in tree.items()}
    return Attributes(types, extra=given.extra)


def _join(given: DataType, more: DataType) -> DataType:
    if given.kind != "struct" or more.kind != "struct" or not (given.fields and more.fields):
        return given
    known = {one.name: one.type for one in more.fields}
    fields = [
        Field(name, _join(kind, known[name]) if name in known else kind)
        for name, kind in given.fields
    ]
    names = {one.name for one in fields}
    fields += [one for one in more.fields if one.name not in names]
    return msgspec.structs.replace(given, fields=tuple(fields))
