"""An application can have interests of its own: a class that is installed alongside tidings turns
them into filters.

    interest ──read_interest──> filter in SQL ──> node
    event ──read_event──> attributes ──match──> nodes

The class is found by the name of an entry point in the group `tidings.preprocessors`; no code ever
comes over the network. Every process that tags must have the class installed, in the same version,
because the class decides which nodes a notification has.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Protocol

from tidings.filters import Attributes, Filter
from tidings.model import EnvironmentProblem, Event, FilterError, NotificationError, allow_pandas
from tidings.preprocessing.kinds.definition import KindDefinition
from tidings.preprocessing.kinds.kind import Kind
from tidings.routing.protocol import DEFAULT_DIALECT

GROUP = "tidings.preprocessors"
NAME = "application"


class InterestClass(Protocol):
    """The class of an application. The class is instantiated with the channel's settings as keyword
    arguments. The methods must return the same results for the same arguments, in every process. If
    the rules of the class change, its `version` must change too: the stored interests are then read
    again."""

    version: str

    def columns(self) -> Mapping[str, str]:
        """The attributes that the class adds to those of the channel, with their types."""

    def read_interest(self, text: str) -> str:
        """The filter in SQL. To refuse the interest, raise ValueError with the reason."""

    def read_event(self, event: dict[str, Any]) -> Mapping[str, Any]:
        """The attributes that filters test, computed from those of a notification. To refuse the
        notification, raise ValueError with the reason."""


class Application(Kind):
    """The kind `application`."""

    def __init__(self, attributes: Attributes, definition: KindDefinition) -> None:
        super().__init__(attributes, definition)
        self._name = definition.entry_point
        self._object = load_object(definition)

    def parse(
        self, text: str, dialect: str = DEFAULT_DIALECT, most_parts: int | None = None
    ) -> Filter:
        if dialect != NAME:
            return super().parse(text, dialect, most_parts)
        try:
            sql: object = self._object.read_interest(text)
        except Exception as problem:
            raise FilterError(_describe_failure(self._name, problem), text) from None
        if not isinstance(sql, str):
            raise FilterError(
                f"the preprocessor '{self._name}' returned {type(sql).__name__}, expected a filter "
                "in SQL",
                text,
            )
        try:
            return super().parse(sql, "sql", most_parts)
        except FilterError as problem:
            raise type(problem)(
                f"the preprocessor '{self._name}' returned a bad filter: {problem.reason}", sql,
                problem.position,
            ) from None  # fmt: skip

    def read(self, event: Event) -> Event:
        try:
            found: Any = self._object.read_event(dict(event))
        except Exception as problem:
            raise NotificationError(_describe_failure(self._name, problem)) from None
        if not isinstance(found, Mapping):
            raise NotificationError(
                f"the preprocessor '{self._name}' returned {type(found).__name__}, expected a "
                "mapping of names to values"
            )
        for key in found:
            if not isinstance(key, str):
                raise NotificationError(
                    f"the preprocessor '{self._name}' returned a mapping with the key {key!r:.80}, "
                    "expected names, which are strings"
                )
        return dict(found)


def load_object(definition: KindDefinition) -> InterestClass:
    """The application's object. Raises EnvironmentProblem if the class of the object is missing,
    has another version than in the definition, or can't be used."""
    name = definition.entry_point
    found = _load(name)
    have = version_of(name)
    if definition.version != have:
        raise EnvironmentProblem(
            f"found version '{have}' of the preprocessor '{name}' here, expected version "
            f"'{definition.version}', which the channel uses"
        )
    try:
        made: InterestClass = found(**definition.settings)
    except Exception as problem:
        raise EnvironmentProblem(_describe_failure(name, problem)) from None
    for method in ("columns", "read_interest", "read_event"):
        if not callable(getattr(made, method, None)):
            raise EnvironmentProblem(f"the preprocessor '{name}' has no method {method}()")
    return made


def version_of(name: str) -> str:
    """The version of the installed class."""
    return str(getattr(_load(name), "version", ""))


def _load(name: str) -> Any:
    """The installed class with this name; raises EnvironmentProblem if there is none."""
    known = entry_points(group=GROUP)
    if name not in known.names:
        others = ", ".join(sorted(known.names)) or "no such preprocessor"
        raise EnvironmentProblem(
            f"the preprocessor '{name}' is not installed here; found {others} among the entry "
            f"points '{GROUP}'"
        )
    allow_pandas()
    try:
        return known[name].load()
    except Exception as problem:
        raise EnvironmentProblem(_describe_failure(name, problem)) from None


def _describe_failure(name: str, problem: Exception) -> str:
    if isinstance(problem, ValueError):  # the text of a ValueError is the reason
        return str(problem)[:300] or f"the preprocessor '{name}' refuses this"
    return f"the preprocessor '{name}' raised {type(problem).__name__}: {str(problem)[:200]}"
