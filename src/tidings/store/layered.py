"""A mapping that consists of fixed layers, whose content is in files, and of changes in a
dictionary.

A key is in use in at most one place: in the dictionary, or in one layer. When a key is set or
removed, the layer that had it marks it as gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Layer(NamedTuple, Generic[K, V]):
    """Fixed content of a mapping."""

    find: Callable[[K], V | None]
    """The value of a key; None if the layer does not have the key."""
    each: Callable[[], Iterator[tuple[K, V]]]
    """All keys of the layer with their values."""
    size: int
    gone: set[K]
    """Keys that were set or removed after the layer was made; the layer's values of these keys no
    longer count."""


class Layered(MutableMapping[K, V]):
    """A mapping with fixed layers below a dictionary of changes."""

    def __init__(self, own: dict[K, V]) -> None:
        self.own = own
        self.layers: list[Layer[K, V]] = []  # the latest last

    def _layer_of(self, key: K) -> tuple[Layer[K, V], V] | None:
        for layer in reversed(self.layers):
            if key not in layer.gone and (value := layer.find(key)) is not None:
                return layer, value
        return None

    def __getitem__(self, key: K) -> V:
        if key in self.own:
            return self.own[key]
        found = self._layer_of(key)
        if found is None:
            raise KeyError(key)
        return found[1]

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self.own and (found := self._layer_of(key)) is not None:
            found[0].gone.add(key)
        self.own[key] = value

    def __delitem__(self, key: K) -> None:
        if key in self.own:
            del self.own[key]
            return
        found = self._layer_of(key)
        if found is None:
            raise KeyError(key)
        found[0].gone.add(key)

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self._each())

    def _each(self) -> Iterator[tuple[K, V]]:
        yield from self.own.items()
        for layer in self.layers:
            for key, value in layer.each():
                if key not in layer.gone:
                    yield key, value

    def items(self) -> Iterator[tuple[K, V]]:  # type: ignore[override]
        return self._each()

    def values(self) -> Iterator[V]:  # type: ignore[override]
        return (value for _, value in self._each())

    def __len__(self) -> int:
        return len(self.own) + sum(layer.size - len(layer.gone) for layer in self.layers)


def put_over(below: MutableMapping[K, V], layer: Layer[K, V]) -> MutableMapping[K, V]:
    """Add a layer to a mapping, which must have none of the layer's keys."""
    found = below if isinstance(below, Layered) else Layered(dict(below))
    found.layers.append(layer)
    return found


def own_part(mapping: MutableMapping[K, V]) -> dict[K, V]:
    """The part of a mapping that is not in layers."""
    if isinstance(mapping, Layered):
        return mapping.own
    assert isinstance(mapping, dict)
    return mapping
