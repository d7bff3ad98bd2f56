"""What the owner of a channel declares: attributes, and the kind of interest.

    file ──> attributes, kind ───────┐
    journal ──> what was before ─────┴──replace──> kind now ──> attributes, definition

The journal stores the declaration. The file of a rendezvous point can only add attributes to the
declaration, or change the types of attributes that no filter uses; `tidings channel declare` can
also drop such attributes. If the declaration at a start differs from the stored one, removed topics
are retired, and every process that tags starts over.
"""

from __future__ import annotations

from tidings.filters import Attributes
from tidings.model import TidingsError, write_path
from tidings.preprocessing import (
    Kind,
    KindDefinition,
    declare,
    make_kind,
    replace_definition,
    restore_attributes,
)
from tidings.routing.root import Definition
from tidings.store.declared import StoredDeclaration, join_attributes


class Declaration:
    """The declaration of a channel, from its file and from the journal."""

    def __init__(
        self,
        channel: str,
        attributes: Attributes | None,
        kind: KindDefinition,
        stored: str,
        *,
        is_whole: bool = False,
    ) -> None:
        """`attributes` and `kind` are those of the file; `stored` is the text of the previous
        declaration. A channel of filters also keeps the attributes that were declared before,
        unless `is_whole` is set. Raises TidingsError if the two are not compatible."""
        known = StoredDeclaration.decode(stored)
        before, types, extra = (
            KindDefinition.decode(known.preprocessor), known.types, known.declared_extra
        )  # fmt: skip
        self.before = known
        if kind.kind == before.kind == "content" and not is_whole:
            attributes = _keep(attributes, known.attributes)
        definition, self.revision = replace_definition(before, kind)
        """`revision` says how the ontology changed; None if it has not changed."""
        self._before = before, types, extra
        self.kind: Kind = make_kind(declare(attributes, definition), definition)
        self.definition = _define(channel, self.kind)

    def kind_before(self) -> Kind | None:
        """The kind of interest of the previous declaration; None if that can no longer be created,
        because a class of the application has changed."""
        definition, types, extra = self._before
        try:
            return make_kind(restore_attributes(types, extra, definition), definition)
        except TidingsError:
            return None

    @property
    def text(self) -> str:
        """The declaration as the text that the journal stores; empty if nothing is declared."""
        what = self.definition
        types = None if what.attributes is None else dict(what.attributes)
        return StoredDeclaration(types, what.extra, what.preprocessor).text


def _keep(given: Attributes | None, before: Attributes | None) -> Attributes | None:
    if given is None or before is None:
        return before if given is None else given
    return join_attributes(given, before)


def _define(channel: str, kind: Kind) -> Definition:
    attributes, preprocessor = kind.attributes, kind.definition.encode()
    if attributes is None:
        return Definition(channel, preprocessor=preprocessor)
    types = {write_path((name,)): str(kind) for name, kind in attributes.tree.items()}
    return Definition(channel, types, attributes.extra, preprocessor)
