"""Topics: an interest is a topic, perhaps with a condition.

    baseball                       isa(topic, 'baseball')
    baseball WHERE innings > 9     isa(topic, 'baseball') AND innings > 9

A topic becomes a filter on the attribute that contains the topic, so the ontology determines which
topic covers which. A notification without a topic, or with an unknown topic, is refused: nobody
would get it, and the publisher should notice a misspelt topic.

Cost: `isa` becomes a test of `preorder(topic)`, a number that one lookup finds. At the rendezvous
point this number is a plain term, like an attribute, so topics are placed and matched by the
indexes of plain filters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidings.filters import Attributes, Filter, Ontology
from tidings.filters.language import Attribute, Call, Literal
from tidings.model import Event, FilterError, NotificationError
from tidings.preprocessing.kinds.definition import KindDefinition
from tidings.preprocessing.kinds.kind import Kind
from tidings.routing.protocol import DEFAULT_DIALECT

_WHERE = re.compile(r"\s+where\s+", re.IGNORECASE)


class Topics(Kind):
    """The kind `topics`."""

    dialect = "topics"
    noun = "topic"
    attributes: Attributes

    def __init__(self, attributes: Attributes, definition: KindDefinition) -> None:
        super().__init__(attributes, definition)
        self.path = (definition.attribute,)
        ontology = attributes.ontology(self.path)
        assert ontology is not None
        self.ontology: Ontology = ontology

    def parse(
        self, text: str, dialect: str = DEFAULT_DIALECT, most_parts: int | None = None
    ) -> Filter:
        if dialect != self.dialect:
            return super().parse(text, dialect, most_parts)
        found = next((one for one in _split(text) if one[0] in self.ontology), None)
        if found is None:
            raise FilterError(self._unknown(_WHERE.split(text, maxsplit=1)[0].strip()), text)
        topic, start = found
        below = self._all_of(topic)
        if start is None:
            return below
        try:
            condition = super().parse(text[start:], "sql", most_parts)
        except FilterError as problem:
            raise type(problem)(problem.reason, text, start + problem.position) from None
        self.check_condition(topic, condition, text)
        return below & condition

    def _all_of(self, topic: str) -> Filter:
        """The filter of a topic without a condition."""
        test = Call("isa", (Attribute(self.path), Literal(topic)), self.ontology)
        return Filter(test, self.attributes)

    def check_condition(self, topic: str, condition: Filter, text: str) -> None:
        """Raises FilterError if the condition can't be used with this topic."""

    def read(self, event: Event) -> Event:
        topic = event.get(self.path[0])
        if not isinstance(topic, str):
            found = f"no {self.noun}" if topic is None else f"{type(topic).__name__}"
            raise NotificationError(
                f"attribute '{self.path[0]}': found {found}, expected the name of a {self.noun}"
            )
        if topic not in self.ontology:
            raise NotificationError(f"attribute '{self.path[0]}': {self._unknown(topic)}")
        return event

    def _unknown(self, topic: str) -> str:
        near = self.ontology.near(topic)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else self._some()
        return f"there is no {self.noun} {topic[:60]!r}; {hint}"

    def _some(self) -> str:
        parents = self.ontology.list_parents()
        tops = sorted(name for name, above in parents.items() if not above)
        rest = len(parents) - len(tops[:8])
        return f"expected one of {', '.join(tops[:8])}" + (f" and {rest} more" if rest else "")


def _split(text: str) -> Iterator[tuple[str, int | None]]:
    """The topics that an interest may name, each with the start of the condition after it. The word
    WHERE may be part of a topic."""
    yield text.strip(), None
    for one in _WHERE.finditer(text):
        yield text[: one.start()].strip(), one.end()
