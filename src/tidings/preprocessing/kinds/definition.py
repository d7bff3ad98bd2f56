"""A channel's definition of its kind of interest. The journal stores it as JSON, and the message
`Described` contains this JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from tidings.filters import Ontology
from tidings.model import TidingsError

KindName = Literal["content", "topics", "types", "application"]
DIALECTS = frozenset({"topics", "types", "application"})
"""Each of these dialects exists only in channels of the kind with the same name."""
PREDICATE_MILLIS = 500
_encode = msgspec.json.Encoder(order="sorted").encode


class KindDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """The kind, and what it needs: an ontology for topics and types, or the name of a class."""

    kind: KindName = "content"
    attribute: str = ""
    """The attribute of notifications that has the topic or the type."""
    parents: dict[str, tuple[str, ...]] = {}
    synonyms: dict[str, str] = {}
    retired: dict[str, tuple[str, ...]] = {}
    columns: dict[str, dict[str, str]] = {}
    """For each type, the attributes that it declares itself, without inherited ones."""
    nodes_for_types: int = 0
    """How many nodes may exist only because there were notifications of their types."""
    entry_point: str = ""
    version: str = ""
    """The version of the application's class."""
    settings: dict[str, Any] = {}
    """The settings with which the application's class is instantiated."""
    predicates: dict[str, str] = {}
    """The predicates that filters may call, with the versions of their packages."""
    off: dict[str, str] = {}
    """The predicates among them that are switched off, with the reasons."""
    predicate_millis: int = PREDICATE_MILLIS
    """The most milliseconds that one call of a predicate may take."""

    @property
    def ontology(self) -> Ontology:
        return Ontology(self.parents, self.synonyms, self.retired)

    def with_ontology(self, ontology: Ontology) -> KindDefinition:
        parents = {name: tuple(above) for name, above in ontology.list_parents().items()}
        return msgspec.structs.replace(
            self, parents=parents, synonyms=ontology.synonyms, retired=ontology.retired
        )

    def encode(self) -> str:
        """The definition as JSON; empty for the kind `content` without predicates. Definitions that
        are equal have the same text."""
        is_empty = self.kind == "content" and not self.predicates
        return "" if is_empty else _encode(self).decode()

    @property
    def callable_predicates(self) -> list[str]:
        """The predicates that are not switched off."""
        return [name for name in self.predicates if name not in self.off]

    def switch_off(self, off: Mapping[str, str]) -> KindDefinition:
        """The same definition, but with more predicates switched off."""
        known = {name: reason for name, reason in off.items() if name in self.predicates}
        return msgspec.structs.replace(self, off={**known, **self.off})

    @property
    def digest(self) -> str:
        """A digest of the definition; reports contain it to show which definition a node uses."""
        text = msgspec.structs.replace(self, off={}).encode()
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @classmethod
    def decode(cls, text: str) -> KindDefinition:
        """Decode the text that `encode` returned; raises TidingsError if it is from a newer
        release."""
        if not text:
            return cls()
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as problem:
            raise TidingsError(f"the channel's preprocessor can't be read: {problem}") from None
