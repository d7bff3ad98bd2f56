"""A channel's definition of its kind of interest. The journal stores it and `Described` carries it
as JSON."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec

from tidings.filters import Ontology
from tidings.model import TidingsError

KindName = Literal["content", "topics", "types", "application"]
DIALECTS = frozenset({"topics", "types", "application"})
"""The dialects that only channels of the kind with the same name have."""
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
    """The attributes that each type declares, without inherited ones."""
    entry_point: str = ""
    version: str = ""
    """The version of the application's class."""
    settings: dict[str, Any] = {}
    """The settings that the application's class is made with."""

    @property
    def ontology(self) -> Ontology:
        return Ontology(self.parents, self.synonyms, self.retired)

    def with_ontology(self, ontology: Ontology) -> KindDefinition:
        parents = {name: tuple(above) for name, above in ontology.declared().items()}
        return msgspec.structs.replace(
            self, parents=parents, synonyms=ontology.synonyms, retired=ontology.retired
        )

    def encode(self) -> str:
        """As JSON; empty for the kind `content`. Equal definitions have equal texts."""
        return "" if self.kind == "content" else _encode(self).decode()

    @property
    def digest(self) -> str:
        """Distinguishes definitions in reports."""
        return hashlib.blake2b(self.encode().encode(), digest_size=8).hexdigest()

    @classmethod
    def decode(cls, text: str) -> KindDefinition:
        """Read what `encode` wrote; raises TidingsError if a newer release wrote it."""
        if not text:
            return cls()
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as problem:
            raise TidingsError(f"the channel's preprocessor can't be read: {problem}") from None
