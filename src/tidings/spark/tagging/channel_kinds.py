"""The kind of a channel in the processes of a pipeline: the driver and the workers.

Each process needs the code of the kind: an application's class, and the predicates that filters may
call, in the versions that the channel uses. No code is taken from the channel itself.
"""

from __future__ import annotations

import threading

import msgspec

from tidings.model import EnvironmentProblem, need_extra
from tidings.preprocessing import Kind, KindDefinition, make_kind, restore_attributes
from tidings.preprocessing.predicates import need_predicates

MOST_MADE = 4
_lock = threading.Lock()
_made: dict[bytes, Kind] = {}


class ChannelKind(msgspec.Struct, frozen=True):
    """The declaration of a channel, as in its description."""

    attributes: dict[str, str] | None
    extra: str
    preprocessor: str

    @property
    def key(self) -> bytes:
        return msgspec.json.encode(self)

    @property
    def predicates(self) -> tuple[str, ...]:
        """The predicates that filters may call."""
        return tuple(KindDefinition.decode(self.preprocessor).callable_predicates)


def kind_of(told: ChannelKind) -> Kind:
    """The kind of a channel, created once per process; raises EnvironmentProblem if code that the
    kind needs is not installed here."""
    key = told.key
    with _lock:
        if key not in _made:
            while len(_made) >= MOST_MADE:
                del _made[next(iter(_made))]
            _made[key] = _make(told)
        return _made[key]


def _make(told: ChannelKind) -> Kind:
    definition = KindDefinition.decode(told.preprocessor)
    extra = None if told.attributes is None else need_extra(told.extra)
    try:
        _need_predicates(definition)
        return make_kind(restore_attributes(told.attributes, extra, definition), definition)
    except EnvironmentProblem as problem:
        raise EnvironmentProblem(
            f"{problem}; install what the channel uses on the driver and on every worker"
        ) from None


def _need_predicates(definition: KindDefinition) -> None:
    for name, have in need_predicates(definition.callable_predicates).items():
        if have != definition.predicates[name]:
            raise EnvironmentProblem(
                f"found version '{have}' of the predicate '{name}' here, expected version "
                f"'{definition.predicates[name]}', which the channel uses"
            )
