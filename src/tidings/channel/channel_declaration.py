"""What the owner of a channel declares: attributes, and the kind of interest.

    file ──> attributes, kind ─┐
    journal ──> kind before ───┴──replace──> kind now ──> attributes of the channel, its definition

The journal stores the declaration with which the nodes were computed. If another one is used at the
next start, topics that are gone are retired, and every process that tags starts over.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.filters import Attributes
from tidings.model import Extra, TidingsError, need_extra, write_path
from tidings.preprocessing import (
    Kind,
    KindDefinition,
    declare,
    make_kind,
    replace_definition,
    restore_attributes,
)
from tidings.routing.root import Definition


class Declaration:
    """The declaration of a channel, from its file and from the journal."""

    def __init__(
        self, channel: str, attributes: Attributes | None, kind: KindDefinition, stored: str
    ) -> None:
        """`attributes` and `kind` are those of the file; `stored` is the text of the previous
        declaration. Raises TidingsError if the two are not compatible."""
        before, types, extra = _read_stored(stored)
        definition, self.revision = replace_definition(before, kind)
        """`revision` says how the ontology changed; None if there is none."""
        self._before = before, types, extra
        self.kind: Kind = make_kind(declare(attributes, definition), definition)
        self.definition = _define(channel, self.kind)

    def kind_before(self) -> Kind | None:
        """The kind of the previous declaration; None if it can't be created any more, because the
        class of an application has changed."""
        definition, types, extra = self._before
        try:
            return make_kind(restore_attributes(types, extra, definition), definition)
        except TidingsError:
            return None

    @property
    def text(self) -> str:
        """The text that the journal stores; empty if nothing is declared."""
        what = self.definition
        if what.attributes is None and not what.preprocessor:
            return ""
        parts: tuple[Any, ...] = (what.attributes, what.extra)
        if what.preprocessor:
            parts += (what.preprocessor,)
        return msgspec.json.encode(parts).decode()


def _read_stored(text: str) -> tuple[KindDefinition, dict[str, str] | None, Extra | None]:
    if not text:
        return KindDefinition(), None, None
    types, extra, *rest = msgspec.json.decode(text, type=list[Any])
    return KindDefinition.decode(rest[0] if rest else ""), types, need_extra(extra)


def _define(channel: str, kind: Kind) -> Definition:
    attributes, preprocessor = kind.attributes, kind.definition.encode()
    if attributes is None:
        return Definition(channel, preprocessor=preprocessor)
    types = {write_path((name,)): str(kind) for name, kind in attributes.tree.items()}
    return Definition(channel, types, attributes.extra, preprocessor)
