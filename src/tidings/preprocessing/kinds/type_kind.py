"""Types of notifications. A type inherits attributes from other types.

    event  (at)                     'event' gets quotes and trades too;
    |-- quote  (price)              'quote WHERE price > 90' gets quotes. A quote has the attributes
    `-- trade  (price, volume)      at and price; a type may inherit from several types.

A type is a topic that declares attributes. A condition may use only attributes that the type
declares or inherits, and attributes of the whole channel. The same holds for the attributes of a
notification.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.filters import Attributes, Filter
from tidings.filters.language import Attribute, Call, Literal, attributes_of
from tidings.model import Event, FilterError, NotificationError, TidingsError, parse_name
from tidings.preprocessing.kinds.definition import KindDefinition
from tidings.preprocessing.kinds.topic_kind import Topics

_TYPE = "type_"


class Types(Topics):
    """The kind `types`."""

    dialect = "types"
    noun = "type"

    def __init__(self, attributes: Attributes, definition: KindDefinition) -> None:
        from tidings.notifications.content_formats import decode_content, is_json

        super().__init__(attributes, definition)
        self._decode, self._is_json = decode_content, is_json
        names = {
            type_: frozenset(parse_name(name)[0] for name in own)
            for type_, own in definition.columns.items()
        }
        self._all = frozenset[str]().union(*names.values())
        self._foreign: dict[str, frozenset[str]] = {}
        """For each type, the attributes that it does not have, but other types do."""
        for type_ in self.ontology.list_parents():
            above = (own for one, own in names.items() if self.ontology.isa(type_, one))
            self._foreign[type_] = self._all - frozenset[str]().union(*above)
        for type_ in self.ontology.retired:
            # the attributes of a retired type are no longer known
            self._foreign[type_] = frozenset()
        # reads nothing but the type: that is faster than to read all attributes
        typed = msgspec.defstruct("Typed", [(_TYPE, Any, None)], rename={_TYPE: self.path[0]})
        self._typed = msgspec.json.Decoder(typed)

    def type_of(self, content: bytes) -> str:
        """A removed type stands for the nearest type above it, if there is only one."""
        try:
            if self._is_json(content):
                name: Any = getattr(self._typed.decode(content), _TYPE)
            else:
                name = self._decode(content).get(self.path[0])
        except (msgspec.MsgspecError, ValueError, RecursionError, TidingsError):
            return ""
        if not isinstance(name, str) or name not in self.ontology:
            return ""
        type_ = self.ontology.topic_of(name)
        if type_ in self.ontology.retired:
            above = self.ontology.parents(type_)
            return above[0] if len(above) == 1 else ""
        return type_

    def type_interest(self, type_: str) -> str:
        return self._all_of(type_).sql()

    def type_in(self, found: Filter) -> str:
        one = found.expression
        if isinstance(one, Call) and one.name == "isa" and len(one.args) == 2:
            path, name = one.args
            if path == Attribute(self.path) and isinstance(name, Literal):
                return self.ontology.topic_of(str(name.value))
        return ""

    def check_condition(self, topic: str, condition: Filter, text: str) -> None:
        foreign = self._foreign[self.ontology.topic_of(topic)]
        for path in sorted(attributes_of(condition.expression)):
            if path[0] in foreign:
                raise FilterError(self._no_attribute(topic, path[0]), text)

    def read(self, event: Event) -> Event:
        super().read(event)
        type_ = event[self.path[0]]
        foreign = self._foreign[self.ontology.topic_of(type_)]
        for name in event:
            if name in foreign and event[name] is not None:
                raise NotificationError(self._no_attribute(type_, name))
        return event

    def _no_attribute(self, type_: str, name: str) -> str:
        own = self._all - self._foreign[self.ontology.topic_of(type_)]
        has = f"it has {', '.join(sorted(own))}" if own else "it declares no attributes"
        return f"the type '{type_}' has no attribute '{name}'; {has}"
