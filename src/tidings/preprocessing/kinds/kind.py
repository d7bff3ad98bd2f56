"""What a channel of one kind does: it turns interests into filters, and reads events for them."""

from __future__ import annotations

from tidings.filters import Attributes, Filter, parse
from tidings.model import Event
from tidings.preprocessing.kinds.definition import KindDefinition

CONTENT = KindDefinition()


class Kind:
    """The kind `content`: interests are filters. The other kinds inherit from it."""

    def __init__(
        self,
        attributes: Attributes | None = None,
        definition: KindDefinition = CONTENT,
    ) -> None:
        self.attributes = attributes
        self.definition = definition

    def parse(self, text: str, dialect: str = "sql", most_parts: int | None = None) -> Filter:
        """The filter of an interest; raises FilterError if the interest is refused."""
        return parse(text, dialect, attributes=self.attributes, most_parts=most_parts)

    def read(self, event: Event) -> Event:
        """The event that filters test, before its values are converted to the declared types;
        raises NotificationError if the notification is refused."""
        return event
